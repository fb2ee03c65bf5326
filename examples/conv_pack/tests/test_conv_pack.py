"""What a user sees of a package whose kernels run several nodes as one."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import timberframe_conv_pack

import timberframe as tf
from timberframe_sdk.testing.installed import installed_plugin
from timberframe_sdk.testing.loaded import loaded_plugin

PARTS = ("conv", "sum", "out")


@pytest.fixture(autouse=True)
def loaded() -> Iterator[None]:
    with loaded_plugin("conv_pack", timberframe_conv_pack), tf.Graph().as_default(), tf.device("/cpu:0"):
        yield


def layer(images: int = 2, channels: int = 4, padding: str = "SAME", strides: int = 1, **attrs: Any) -> Any:
    """Returns the tensors of a layer by name, and what to feed."""
    rng = np.random.default_rng(7)
    x = tf.placeholder(tf.float32, [None, 9, 8, 3], name="x")
    filter = tf.constant(rng.standard_normal((3, 2, 3, channels)), tf.float32)
    conv = tf.nn.conv2d(x, filter, [1, strides, strides, 1], padding, name="conv", **attrs)
    total = tf.nn.bias_add(conv, tf.constant(rng.standard_normal(channels), tf.float32), name="sum")
    feeds = {x: rng.standard_normal((images, 9, 8, 3)).astype(np.float32)}
    return {"x": x, "filter": filter, "conv": conv, "sum": total, "out": tf.nn.relu(total, name="out")}, feeds


def run(fetches: Any, feeds: Any, cover: bool = True) -> Any:
    with tf.Session(config=tf.SessionConfig(optimizations={"cover": cover})) as session:
        return session.run(fetches, feeds)


def explained(fetches: Any, feeds: Any) -> dict[str, Any]:
    """Returns what runs each node."""
    with tf.Session() as session:
        return {k.node: k for k in session.explain(fetches, feeds).kernels}


@pytest.mark.parametrize("last", ["sum", "out"])
@pytest.mark.parametrize(
    "how", [{}, {"padding": "VALID"}, {"strides": 2}, {"dilations": [1, 2, 3, 1]}, {"strides": 3, "padding": "VALID"}]
)
def test_the_result_is_that_of_the_parts(how: dict[str, Any], last: str) -> None:
    tensors, feeds = layer(**how)
    assert explained(tensors[last], feeds)[last].plugin == "conv_pack"
    np.testing.assert_allclose(run(tensors[last], feeds), run(tensors[last], feeds, cover=False), rtol=1e-5, atol=1e-5)


def test_explain_names_the_kernel_its_plugin_and_what_it_covers() -> None:
    tensors, feeds = layer()
    found = explained(tensors["out"], feeds)
    assert list(found) == ["out"]
    assert (found["out"].kernel, found["out"].plugin) == ("timberframe_conv_pack.conv_bias_relu", "conv_pack")
    assert found["out"].covers == PARTS


@pytest.mark.parametrize(("shape", "words"), [({"images": 3}, "3 images"), ({"channels": 5}, "5 output channels")])
def test_odd_shapes_run_on_the_device_s_own_kernel(shape: dict[str, int], words: str) -> None:
    tensors, feeds = layer(**shape)
    found = explained(tensors["out"], feeds)
    assert (found["out"].plugin, found["out"].covers) == ("cpu", PARTS)
    reason = f"timberframe_conv_pack.conv_bias_relu: {words}; an even number is required"
    assert found["out"].declined == (reason,)


def test_odd_shapes_of_a_convolution_alone_run_on_the_device_s_own_kernel() -> None:
    tensors, feeds = layer(images=3)
    found = explained(tensors["conv"], feeds)["conv"]
    assert found.plugin == "cpu"
    assert found.declined == ("timberframe_conv_pack.conv: 3 images; an even number is required",)


def test_each_number_of_images_has_its_own_answer() -> None:
    tensors, feeds = layer(images=4)
    x = tensors["x"]
    found = [explained(tensors["out"], {x: feeds[x][:n]})["out"].plugin for n in (1, 2, 3, 4)]
    assert found == ["cpu", "conv_pack", "cpu", "conv_pack"]


def test_channels_first_run_on_the_device_s_own_kernel() -> None:
    x = tf.placeholder(tf.float32, [2, 3, 9, 8])
    conv = tf.nn.conv2d(x, tf.ones([3, 2, 3, 4]), [1, 1, 1, 1], "SAME", data_format="NCHW", name="conv")
    found = explained(conv, {x: np.ones((2, 3, 9, 8))})["conv"]
    assert found.plugin == "cpu"
    assert found.declined == ("timberframe_conv_pack.conv: data_format of Conv2D is NCHW; NHWC is required",)


@pytest.mark.parametrize(("inner", "covered"), [("conv", ()), ("sum", ("conv", "sum"))])
def test_a_part_that_is_fetched_is_not_covered(inner: str, covered: tuple[str, ...]) -> None:
    tensors, feeds = layer()
    with tf.Session() as session:
        explanation = session.explain([tensors[inner], tensors["out"]], feeds)
    assert explanation.rewritten("cover") == covered
    out = next(k for k in explanation.kernels if k.node == "out")
    assert out.declined[0].startswith(f"timberframe_conv_pack.conv_bias_relu: '{inner}' is fetched")


def test_a_part_that_another_node_reads_is_not_covered() -> None:
    tensors, feeds = layer()
    y = tf.add(tensors["out"], tf.reduce_sum(tensors["conv"], name="all"), name="y")
    found = explained(y, feeds)
    assert found["conv"].covers == ()
    assert "'conv' is also read by 'all'" in str([k.declined for k in found.values()])


def test_images_without_rows_have_results_without_rows() -> None:
    x = tf.placeholder(tf.float32, [2, 0, 8, 3])
    conv = tf.nn.conv2d(x, tf.ones([3, 2, 3, 4]), [1, 1, 1, 1], "SAME")
    assert run(conv, {x: np.zeros((2, 0, 8, 3))}).shape == (2, 0, 8, 4)


def test_gradients_are_those_of_the_parts() -> None:
    tensors, feeds = layer()
    made = tf.gradients(tf.reduce_sum(tf.square(tensors["out"])), [tensors["x"], tensors["filter"]])
    assert explained(made, feeds)["out"].covers == PARTS
    for covered, apart in zip(run(made, feeds), run(made, feeds, cover=False), strict=True):
        np.testing.assert_allclose(covered, apart, rtol=1e-4, atol=1e-3)


PROGRAM = """
import numpy as np, timberframe as tf
with tf.device("/cpu:0"):
    x = tf.placeholder(tf.float32, [2, 4, 4, 1], name="x")
    y = tf.nn.relu(tf.nn.bias_add(tf.nn.conv2d(x, tf.ones([2, 2, 1, 2]), [1, 1, 1, 1], "SAME"), tf.ones([2])), name="y")
with tf.Session() as session:
    print(*(k.plugin for k in session.explain(y, {x: np.ones((2, 4, 4, 1))}).kernels))
"""


@pytest.mark.slow
@pytest.mark.parametrize(("selection", "plugins"), [("", "conv_pack"), ("-conv_pack", "cpu")])
def test_an_installed_package_is_used_unless_it_is_switched_off(tmp_path: Path, selection: str, plugins: str) -> None:
    with installed_plugin(tmp_path, "conv_pack", "timberframe_conv_pack"):
        path = os.pathsep.join([str(Path(timberframe_conv_pack.__file__).parents[1]), os.environ["PYTHONPATH"]])
        environment = {**os.environ, "PYTHONPATH": path, "TIMBERFRAME_PLUGINS": selection}
        command = [sys.executable, "-c", PROGRAM]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.split() == plugins.split()
