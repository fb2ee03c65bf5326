"""The convolutions of whole networks, one by one: which there are, and what ONNX Runtime says of them."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from rich.console import Console

import timberframe as tf
from timberframe_conformance.bench.models import catalogue
from timberframe_conformance.bench.models.convolutions import (
    OPS,
    Convolution,
    Figures,
    compare,
    markdown,
    show,
    sizes_of,
    total,
    traced_convolutions,
)
from timberframe_conformance.bench.models.sides import ONNXRUNTIME, Sides, installed
from timberframe_conformance.options import Options
from timberframe_conformance.target import Target, open_target


@pytest.fixture(scope="module")
def cpu() -> Target:
    return open_target(Options("cpu"))


def nodes(model: catalogue.Model) -> list[Any]:
    return [op for op in model.graph.get_operations() if op.type in OPS]


def test_sizes_are_those_of_the_convolution_that_a_kernel_begins_with() -> None:
    with tf.Graph().as_default():
        x = tf.placeholder(tf.float32, [2, 9, 9, 6])
        y = tf.nn.conv2d(x, tf.zeros([3, 2, 3, 8]), [1, 2, 2, 1], "SAME")
        last = tf.nn.relu(tf.nn.bias_add(y, tf.zeros([8])))
        deep = tf.nn.depthwise_conv2d(y, tf.zeros([3, 3, 8, 2]), [1, 1, 1, 1], "VALID")
    assert sizes_of(last.op) == (5, 5, 3, 8, 3, 2)
    assert sizes_of(deep.op) == (3, 3, 1, 16, 3, 3)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["ResNet-50", "MobileNetV2", "EfficientNet-B0", "U-Net", "MLP"])
def test_a_trace_has_each_convolution_of_the_network(cpu: Target, name: str) -> None:
    model = catalogue.build(name, small=True, device=cpu.spec)
    with Sides(cpu, 1) as sides:
        found = traced_convolutions(model.graph, sides.device_call(model))
    assert {k: len(v) for k, v in found.items()} == Counter(map(sizes_of, nodes(model)))


@pytest.mark.slow
@pytest.mark.skipif(not installed([ONNXRUNTIME])[0], reason="needs onnxruntime and tf2onnx")
def test_onnxruntime_has_the_same_convolutions(cpu: Target) -> None:
    model = catalogue.build("ResNet-50", device=cpu.spec)
    with Sides(cpu, 1) as sides:
        found, lacking = compare(model, sides.device_call(model), 1)
    assert lacking == []
    assert sum(row.count for row in found) == len(nodes(model))
    assert all(row.device.median >= row.device.least > 0 for row in found)
    assert all(row.onnxruntime.median >= row.onnxruntime.least > 0 for row in found)


def test_times_of_runs_are_the_median_of_means_and_the_mean_of_least_times() -> None:
    runs = [[1.0, 5.0], [3.0, 3.0], [9.0, 1.0]]  # of two convolutions of the same sizes
    assert Figures.of_runs(runs) == Figures(median=3.0, least=1.0)


@pytest.fixture
def made() -> list[Convolution]:
    return [
        Convolution("Net", 1, (9, 9), 2, (5, 5, 3, 8, 3, 3), 1, Figures(2e-6, 1e-6), Figures(1e-6, 1e-6)),
        Convolution("Net", 1, (5, 5), 1, (5, 5, 1, 8, 3, 3), 4, Figures(1e-6, 1e-6), Figures(2e-6, 2e-6), True),
    ]


def test_a_row_names_its_image(made: list[Convolution]) -> None:
    assert [row.name for row in made] == ["9x9, 3-8, 3x3, stride 2", "5x5, 8 depthwise, 3x3"]


def test_the_total_weighs_by_time(made: list[Convolution]) -> None:
    assert total(made) == Figures(median=1.5, least=pytest.approx(1.8))


def test_the_table_has_medians_and_least_times_and_the_ratios_of_both(made: list[Convolution]) -> None:
    assert markdown(made).splitlines()[2:] == [
        "|Net (1)|9x9, 3-8, 3x3, stride 2|1|2 us|1 us|0.50x|1 us|1 us|1.00x|",
        "|Net (1)|5x5, 8 depthwise, 3x3|4|1 us|2 us|2.00x|1 us|2 us|2.00x|",
    ]


def test_a_network_is_shown_with_the_slowest_convolution_by_least_times_first(
    made: list[Convolution], capsys: pytest.CaptureFixture[str]
) -> None:
    show([made[1], made[0]], [], Console())
    _, first, _, last = capsys.readouterr().out.splitlines()
    assert "9x9, 3-8" in first
    assert last == "Net: all of them 1.50x of ONNX Runtime by medians, 1.80x by least times"
