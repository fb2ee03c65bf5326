"""TensorFlow loads what we write, and both live in one process."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import timberframe as ours
from timberframe_core.graph.apply import apply_op

X = np.array([[1.0, -2.0, 3.0], [0.5, 0.25, -1.0]], np.float32)


def arithmetic(x: Any) -> list[Any]:
    return [apply_op("AddV2", [apply_op("Mul", [x, 2.0]), [1.0, 2.0, 3.0]])]


def constants(x: Any) -> list[Any]:
    values = [1.5, 7, 2**40, True, "text", 1 + 2j, np.float16(0.5), np.uint8([1, 2]), np.zeros((0, 2)), [[3] * 4] * 3]
    return [ours.constant(v) for v in values] + [ours.constant(1.25, ours.bfloat16)]


def lists(x: Any) -> list[Any]:
    packed = apply_op("Pack", [[x, x, x]], {"axis": 1})
    return [packed, *apply_op("Unpack", [packed], {"num": 2, "axis": 0}), apply_op("ConcatV2", [[x, x], 0])]


def slices(x: Any) -> list[Any]:
    return [apply_op("StridedSlice", [x, [0, 1], [2, 3], [1, 1]], {"shrink_axis_mask": 2})]


def scopes(x: Any) -> list[Any]:
    with ours.name_scope("a"), ours.name_scope("b"), ours.control_dependencies([x.op]):
        return [apply_op("Identity", [x], name="c")]


def branch(x: Any) -> list[Any]:
    return [ours.cond(ours.constant(True), lambda: apply_op("AddV2", [x, 1.0]), lambda: x)]


def numbered_branches(x: Any) -> list[Any]:
    made = [ours.switch_case(i, [lambda: x + 1.0, lambda: x * 2.0, lambda: x * x * x]) for i in (0, 1, 5)]
    return [*made, *ours.gradients(made, x)]


def loop(x: Any) -> list[Any]:
    return list(
        ours.while_loop(
            lambda i, y: apply_op("Less", [i, 4]),
            lambda i, y: (apply_op("AddV2", [i, 1]), apply_op("Mul", [y, x])),
            [0, x],
        )
    )


def nested_loop(x: Any) -> list[Any]:
    def inner(y: Any) -> Any:
        return ours.while_loop(
            lambda j, z: apply_op("Less", [j, 2]),
            lambda j, z: (apply_op("AddV2", [j, 1]), apply_op("AddV2", [z, x])),
            [0, y],
        )[1]

    return list(
        ours.while_loop(
            lambda i, y: apply_op("Less", [i, 3]), lambda i, y: (apply_op("AddV2", [i, 1]), inner(y)), [0, x]
        )
    )


def variables(x: Any) -> list[Any]:
    v = ours.Variable([1.0, 2.0, 3.0], name="v")
    return [v.assign_add([1.0, 1.0, 1.0]), v.initialized_value()]


@pytest.mark.parametrize(
    "build",
    [arithmetic, constants, lists, slices, scopes, branch, numbered_branches, loop, nested_loop, variables],
    ids=lambda build: build.__name__,
)
def test_tensorflow_runs_our_graph(build: Callable[[Any], list[Any]], tensorflow: Any) -> None:
    tf = tensorflow
    with ours.Graph().as_default() as graph:
        x = ours.placeholder(ours.float32, [2, 3], "x")
        fetches = build(x)
        initializer = ours.global_variables_initializer()
        with ours.Session() as session:
            session.run(initializer)
            expected = [np.asarray(session.run(fetch, {x: X})) for fetch in fetches]
    with tf.Graph().as_default() as theirs:
        tf.import_graph_def(tf.GraphDef.FromString(graph.as_graph_def().SerializeToString()), name="")
        with tf.Session(graph=theirs) as session:
            session.run(initializer.name)
            for fetch, want in zip(fetches, expected, strict=True):
                got = np.asarray(session.run(fetch.name, {"x:0": X}))
                assert (got.dtype, got.shape) == (want.dtype, want.shape)
                np.testing.assert_array_equal(got, want)


def test_graph_def_survives_tensorflow(tensorflow: Any) -> None:
    tf = tensorflow
    with ours.Graph().as_default() as graph:
        loop(ours.placeholder(ours.float32, [2, 3]))
        message = graph.as_graph_def()
    with tf.Graph().as_default() as theirs:
        tf.import_graph_def(tf.GraphDef.FromString(message.SerializeToString()), name="")
        back = theirs.as_graph_def()
    with ours.Graph().as_default() as graph:
        ours.import_graph_def(back, name="")
        assert [n.name for n in graph.as_graph_def().node] == [n.name for n in message.node]


def test_tensorflows_config_is_a_session_config(tensorflow: Any) -> None:
    config = tensorflow.ConfigProto(allow_soft_placement=True, intra_op_parallelism_threads=1)
    assert ours.SessionConfig.of(config).allow_soft_placement


@pytest.mark.parametrize("first", ["timberframe", "tensorflow"])
def test_either_may_be_imported_first(first: str, tensorflow: Any) -> None:
    second = "tensorflow" if first == "timberframe" else "timberframe"
    program = (
        f"import {first}, {second}\n"
        "import tensorflow.compat.v1 as tf, timberframe\n"
        "with tf.Graph().as_default() as graph: tf.constant([1.0, 2.0], name='c')\n"
        "with timberframe.Graph().as_default() as ours:\n"
        "    timberframe.import_graph_def(graph.as_graph_def(), name='')\n"
        "back = tf.GraphDef.FromString(ours.as_graph_def().SerializeToString())\n"
        "print(tf.make_ndarray(back.node[0].attr['value'].tensor).tolist())\n"
    )
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path), "TF_CPP_MIN_LOG_LEVEL": "3"}
    done = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.stdout == "[1.0, 2.0]\n", done.stderr
