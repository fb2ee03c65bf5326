"""The convolutions of whole networks, one by one: which there are, and what ONNX Runtime says of them."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

import timberframe as tf
from timberframe_conformance.bench.models import catalogue
from timberframe_conformance.bench.models.convolutions import (
    OPS,
    Convolution,
    compare,
    markdown,
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
    assert all(row.device > 0 < row.onnxruntime for row in found)


def test_a_row_names_its_image_and_the_total_weighs_by_time() -> None:
    made = [
        Convolution("Net", 1, (9, 9), 2, (5, 5, 3, 8, 3, 3), 1, 2e-6, 1e-6),
        Convolution("Net", 1, (5, 5), 1, (5, 5, 1, 8, 3, 3), 4, 1e-6, 2e-6),
    ]
    assert [row.name for row in made] == ["9x9, 3-8, 3x3, stride 2", "5x5, 8 depthwise, 3x3"]
    assert total(made) == 1.5
    assert markdown(made).splitlines()[2:] == [
        "|Net (1)|9x9, 3-8, 3x3, stride 2|1|2 us|1 us|0.50x|",
        "|Net (1)|5x5, 8 depthwise, 3x3|4|1 us|2 us|2.00x|",
    ]
