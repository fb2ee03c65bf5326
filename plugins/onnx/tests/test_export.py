"""Graphs as ONNX models: ONNX's checker takes them, and what is imported of them gives equal results."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

import timberframe as tf
import timberframe_onnx
from timberframe_conformance.bench.models import catalogue
from timberframe_core.errors import InvalidArgumentError, UnimplementedError
from timberframe_onnx.exporting.writer import written_by


def round_trip(fetches: Any, feeds: dict[str, Any], opset: int = 21, session: Any = None) -> list[Any]:
    """Returns what the imported export of fetches gives."""
    made = timberframe_onnx.export_model(fetches, opset, session=session)
    onnx.checker.check_model(made, full_check=True)
    return list(timberframe_onnx.load(made).run(feeds).values())


@pytest.mark.slow
@pytest.mark.parametrize("name", ["ResNet-50", "MobileNetV2", "U-Net", "LeNet", "BERT small", "LSTM", "GRU"])
def test_networks_give_the_same_after_a_round_trip(name: str) -> None:
    net = catalogue.build(name, batch=2, small=True)
    with tf.Session(graph=net.graph) as session:
        wanted = session.run(net.fetches, net.feeds)
    feeds = {tensor.op.name: value for tensor, value in net.feeds.items()}
    for got, want in zip(round_trip(net.fetches, feeds), wanted, strict=True):
        np.testing.assert_allclose(got, want, rtol=0, atol=2e-6 * np.abs(want).max())


CASES = {
    "slices": lambda x: [x[1:, ::-1], x[0], x[:, tf.newaxis, 1], x[..., -1]],
    "joins": lambda x: [tf.concat([x, x], 1), tf.stack([x, x], -1), *tf.unstack(x, axis=1), *tf.split(x, [1, 2], 1)],
    "reductions": lambda x: [tf.reduce_sum(x), tf.reduce_mean(x, 0), tf.reduce_max(x, [0, 1], keepdims=True)],
    "choices": lambda x: [tf.where_v2(x > 0, x, -x), tf.argmax(x, 1), *tf.nn.top_k(x, 2), tf.one_hot([1, 5], 3)],
    "numbers": lambda x: [tf.floormod(x, 2.0), tf.floordiv(x, 2.0), tf.math.expm1(x), tf.nn.relu6(x), tf.rsqrt(x * x)],
    "shapes": lambda x: [tf.shape(x), tf.size(x), tf.reshape(x, [3, -1]), tf.transpose(x), tf.tile(x, [2, 1])],
    "padding": lambda x: [tf.pad(x, [[1, 0], [0, 2]]), tf.pad(x, [[1, 1], [0, 1]], "REFLECT")],
    "integers": lambda x: [tf.cast(x * 3, tf.int32) // 2, tf.cast(x * 3, tf.int32) % 2, tf.cast(x, tf.bool)],
}


@pytest.mark.parametrize("name", CASES)
def test_ops_give_the_same_after_a_round_trip(name: str) -> None:
    value = np.array([[1.5, -2, 3], [-4, 5.25, -6]], np.float32)
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.float32, [2, 3], name="x")
        fetches = {f"y{i}": tf.identity(t) for i, t in enumerate(CASES[name](x))}
        wanted = session.run(list(fetches.values()), {x: value})
        got = round_trip(fetches, {"x": value} if name != "none" else {})
    for g, want in zip(got, wanted, strict=True):
        assert g.dtype == want.dtype
        np.testing.assert_allclose(g, want, rtol=1e-6)


def test_a_branch_and_a_loop_are_exported() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.float32, [2], name="x")
        factor = tf.constant(3.0)
        chosen = tf.cond(tf.reduce_sum(x) > 0, lambda: x * factor, lambda: x - factor)
        _, grown = tf.while_loop(lambda i, _: i < 4, lambda i, v: (i + 1, v + chosen), [0, x])
        for value in ([1.0, 2.0], [-1.0, -2.0]):
            fed = np.array(value, np.float32)
            np.testing.assert_allclose(round_trip([grown], {"x": fed})[0], session.run(grown, {x: fed}))


def test_variables_become_constants_of_their_values() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.float32, [2], name="x")
        v = tf.get_variable("v", initializer=[1.0, 2.0])
        session.run(v.initializer)
        session.run(v.assign_add([1.0, 1.0]))
        np.testing.assert_array_equal(round_trip([x * v], {"x": np.ones(2, np.float32)}, session=session)[0], [2, 3])


def test_sizes_that_are_left_open_stay_open(tmp_path: Path) -> None:
    with tf.Graph().as_default():
        x = tf.placeholder(tf.float32, [None, 2], name="x")
        timberframe_onnx.export({"y": tf.nn.softmax(x)}, tmp_path / "open.onnx")
    loaded = timberframe_onnx.load(tmp_path / "open.onnx")
    assert loaded.signature == "(x: float[?,2]) -> (y: float[?,2])"
    assert loaded.run({"x": np.ones((5, 2), np.float32)})["y"].shape == (5, 2)


def test_all_operations_that_cannot_be_exported_are_named() -> None:
    with tf.Graph().as_default():
        x = tf.placeholder(tf.float32, [2, 2], name="x")
        y = tf.linalg.inv(x, name="inverse") + tf.cholesky(x, name="root")
        message = r"(?s)2 operation\(s\).*MatrixInverse 'inverse': no exporter.*Cholesky 'root': no exporter"
        with pytest.raises(UnimplementedError, match=message):
            timberframe_onnx.export_model([y])


def test_an_opset_that_is_not_written_is_refused() -> None:
    with tf.Graph().as_default(), pytest.raises(InvalidArgumentError, match="opset is 9; 18 to"):
        timberframe_onnx.export_model([tf.constant(1.0)], opset=9)


def test_exporting_needs_the_core_alone() -> None:
    program = "import sys, timberframe_onnx; timberframe_onnx.export; print('timberframe' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


FORMS = {
    "window of one, stride of three": lambda x: tf.nn.max_pool(x, [1, 1, 1, 1], [1, 3, 3, 1], "SAME"),
    "mean of padded windows": lambda x: tf.nn.avg_pool(x, [1, 2, 2, 1], [1, 3, 4, 1], "SAME"),
    "dilated filters": lambda x: tf.nn.conv2d(x, tf.ones([3, 3, 2, 3]), [1, 1, 1, 1], "SAME", dilations=[1, 2, 3, 1]),
    "transposed groups": lambda x: tf.raw_ops.Conv2DBackpropInput(
        input_sizes=[1, 7, 5, 4], filter=tf.ones([3, 3, 2, 2]), out_backprop=x, strides=[1, 1, 1, 1], padding="SAME"
    ),
    "negative axes": lambda x: tf.transpose(x, [-1, 1, -4, 2]),
    "no images": lambda x: tf.reshape(x[:0], [-1, 5]),
    "one scalar's row": lambda x: tf.one_hot(tf.cast(x[0, 0, 0, 0], tf.int32), 3),
    "rows of indices below zero": lambda x: tf.one_hot(tf.cast(x[0, 0], tf.int32) - 1, 3),
    "moments of inference": lambda x: tf.raw_ops.FusedBatchNormV3(
        x=x, scale=[1.0, 2.0], offset=[0.0, 1.0], mean=[0.5, 0.25], variance=[1.0, 4.0], is_training=False
    )[4],
}


@pytest.mark.parametrize("name", FORMS)
def test_a_form_that_onnx_has_otherwise_gives_the_same(name: str) -> None:
    value = np.arange(70, dtype=np.float32).reshape(1, 7, 5, 2) / 32
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.float32, [1, 7, 5, 2], name="x")
        y = tf.identity(FORMS[name](x))
        got, wanted = round_trip([y], {"x": value})[0], session.run(y, {x: value})
    assert got.shape == wanted.shape
    np.testing.assert_allclose(got, wanted, rtol=1e-5)


def test_windows_over_channels_are_refused() -> None:
    with tf.Graph().as_default():
        x = tf.placeholder(tf.float32, [1, 4, 4, 6], name="x")
        y = tf.nn.max_pool(x, [1, 1, 1, 2], [1, 1, 1, 2], "VALID", name="deep")
        with pytest.raises(UnimplementedError, match=r"MaxPool 'deep': its ksize is \(1, 1, 1, 2\); ONNX has windows"):
            timberframe_onnx.export_model([y])


def test_nodes_are_named_after_the_operation_that_they_stand_for() -> None:
    with tf.Graph().as_default():
        x = tf.placeholder(tf.float32, [2, 2], name="x")
        made = timberframe_onnx.export_model([tf.nn.relu6(x, name="layer/clipped")])
    assert [written_by(n.name) for n in made.graph.node if n.op_type == "Clip"] == ["layer/clipped"]
