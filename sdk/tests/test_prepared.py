"""What kernels derive from constants and variables is made once, and dropped in time."""

from __future__ import annotations

import gc
import types
import weakref
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import timberframe as tf
from timberframe_core.graph.apply import apply_op
from timberframe_sdk import EXACT, KernelDef, KernelNode, Launcher, define_op, hookimpl
from timberframe_sdk.testing.loaded import loaded_plugin, temporary_ops

F = np.float32
made: list[Any] = []
forms: list[weakref.ref[np.ndarray]] = []
fails: list[bool] = []


def transposed(w: Any) -> Any:
    if fails:
        raise KeyError("panel")
    made.append(weakref.ref(w))
    form = np.ascontiguousarray(w.T)
    forms.append(weakref.ref(form))
    return form


def build(node: KernelNode) -> Launcher:
    shape = node.inputs[1].shape
    if node.prepared(1, "transposed", transposed, shape[::-1]):
        return lambda x, w, out: np.copyto(out, x @ w.T)
    return lambda x, w, out: np.matmul(x, w, out=out)


@pytest.fixture(autouse=True, scope="module")
def plugin() -> Iterator[None]:
    kernels = [KernelDef("Acme>ByRows", device, build) for device in ("CPU", "NUMPY")]
    with (
        temporary_ops(),
        loaded_plugin("rows", types.SimpleNamespace(timberframe_kernels=hookimpl(lambda: kernels))),
    ):
        define_op(
            "Acme>ByRows", inputs=["x: float", "w: float"], outputs=["y: float"],
            doc="x times the matrix w, whose transpose a kernel prepares.",
            shape=lambda c: [(c.shapes[0][0], c.shapes[1][1])], reference=lambda attrs, x, w: x @ w, accuracy=EXACT,
        )  # fmt: skip
        yield


@pytest.fixture(autouse=True)
def nothing_made() -> None:
    made.clear()
    forms.clear()
    fails.clear()


@pytest.fixture(params=["/device:CPU:0", "/device:NUMPY:0"])
def device(request: pytest.FixtureRequest) -> Iterator[str]:
    with tf.Graph().as_default(), tf.device(request.param):
        yield str(request.param)


def by_rows(x: Any, w: Any) -> tf.Tensor:
    found: tf.Tensor = apply_op("Acme>ByRows", [x, w])
    return found


W = np.arange(6, dtype=F).reshape(2, 3)


def test_a_constant_is_prepared_once_for_all_shapes_nodes_and_sessions(device: str) -> None:
    x, w = tf.placeholder(tf.float32, [None, 2]), tf.constant(W.copy())
    first, second = by_rows(x, w), by_rows(x + 1.0, w)
    for _ in range(2):
        with tf.Session() as session:
            for n in (1, 3, 1):
                got = session.run([first, second], {x: np.ones((n, 2))})
                np.testing.assert_array_equal(got, [np.ones((n, 2)) @ W, 2 * np.ones((n, 2)) @ W])
    assert len(made) == 1


def test_the_form_of_a_constant_goes_with_its_graph() -> None:
    with tf.Graph().as_default(), tf.device("/device:NUMPY:0"):
        x = tf.placeholder(tf.float32, [1, 2])
        y = by_rows(x, tf.constant(W.copy()))
        with tf.Session() as session:
            session.run(y, {x: np.ones((1, 2))})
    assert [f() is None for f in forms] == [False]
    del x, y, session
    gc.collect()
    assert [f() is None for f in forms] == [True]


def test_a_version_of_a_variable_is_prepared_once(device: str) -> None:
    x, v = tf.placeholder(tf.float32, [None, 2]), tf.Variable(W)
    y, double = by_rows(x, v), v.assign(v * 2.0)
    with tf.Session() as session:
        session.run(v.initializer)
        for n in (1, 3, 1):
            np.testing.assert_array_equal(session.run(y, {x: np.ones((n, 2))}), np.ones((n, 2)) @ W)
        assert len(made) == 1
        for factor in (2, 4):
            session.run(double)
            for _ in range(2):
                np.testing.assert_array_equal(session.run(y, {x: np.ones((1, 2))}), np.ones((1, 2)) @ W * factor)
    assert len(made) == 3


def test_a_version_written_in_place_is_prepared_again(device: str) -> None:
    x, v = tf.placeholder(tf.float32, [1, 2]), tf.Variable(W)
    y, update = by_rows(x, v), v.assign_add(np.ones_like(W)).op
    with tf.Session() as session:
        session.run(v.initializer)
        for step in range(4):
            np.testing.assert_array_equal(session.run(y, {x: np.ones((1, 2))}), np.ones((1, 2)) @ (W + step))
            session.run(update)
    assert len(made) == 4


def test_the_form_of_an_old_version_is_dropped(device: str) -> None:
    x, v = tf.placeholder(tf.float32, [1, 2]), tf.Variable(W)
    y = by_rows(x, v)
    with tf.Session() as session:
        session.run(v.initializer)
        session.run(y, {x: np.ones((1, 2))})
        session.run(v.assign(v + 1.0).op)
        gc.collect()
        assert made[0]() is None


def test_a_variable_that_the_run_itself_updates_is_not_prepared(device: str) -> None:
    x, v = tf.placeholder(tf.float32, [1, 2]), tf.Variable(W)
    y = by_rows(x, v)
    with tf.control_dependencies([y]):
        update = v.assign_add(np.ones_like(W)).op
    with tf.Session() as session:
        session.run(v.initializer)
        for step in range(3):
            got, _ = session.run([y, update], {x: np.ones((1, 2))})
            np.testing.assert_array_equal(got, np.ones((1, 2)) @ (W + step))
    assert made == []


def test_what_is_fed_is_not_prepared(device: str) -> None:
    x, w = tf.placeholder(tf.float32, [1, 2]), tf.placeholder(tf.float32, [2, 3])
    with tf.Session() as session:
        np.testing.assert_array_equal(session.run(by_rows(x, w), {x: np.ones((1, 2)), w: W}), np.ones((1, 2)) @ W)
    assert made == []


def test_a_constant_in_a_loop_is_prepared_once(device: str) -> None:
    x, w = tf.placeholder(tf.float32, [1, 2]), tf.constant(np.array([[0, 1], [2, 0]], F))
    _, y = tf.while_loop(lambda i, z: i < 4, lambda i, z: (i + 1, by_rows(z, w)), [tf.constant(0), x])
    with tf.Session() as session:
        np.testing.assert_array_equal(session.run(y, {x: np.ones((1, 2))}), [[4, 4]])
    assert len(made) == 1


def test_an_error_while_preparing_names_the_node(device: str) -> None:
    x, v = tf.placeholder(tf.float32, [1, 2]), tf.Variable(W)
    fails.append(True)
    with tf.Session() as session:
        session.run(v.initializer)
        for w in (tf.constant(W.copy()), v):
            words = r"Acme>ByRows 'Acme.*': preparing input 1 raised KeyError: 'panel'"
            with pytest.raises(tf.errors.UnknownError, match=words):
                session.run(by_rows(x, w), {x: np.ones((1, 2))})


@pytest.mark.parametrize("variable", [False, True])
def test_a_trace_shows_once_that_weights_were_prepared(device: str, variable: bool) -> None:
    x, v = tf.placeholder(tf.float32, [1, 2]), tf.Variable(W)
    y = by_rows(x, v if variable else tf.constant(W.copy()))
    counts = []
    with tf.Session() as session:
        session.run(v.initializer)
        for _ in range(3):
            metadata = tf.RunMetadata()
            session.run(y, {x: np.ones((1, 2))}, tf.RunOptions(trace=True), metadata)
            events = metadata.trace["traceEvents"]
            counts.append(sum(e["name"].endswith(": prepare input 1") for e in events))
    assert counts == [1, 0, 0]


def test_a_trace_shows_nothing_that_an_earlier_run_prepared(device: str) -> None:
    x = tf.placeholder(tf.float32, [1, 2])
    y = by_rows(x, tf.constant(W.copy()))
    metadata = tf.RunMetadata()
    with tf.Session() as session:
        session.run(y, {x: np.ones((1, 2))})
        session.run(y, {x: np.ones((1, 2))}, tf.RunOptions(trace=True), metadata)
    assert [e["name"] for e in metadata.trace["traceEvents"] if "prepare" in e["name"]] == []


def test_a_variable_that_no_node_reads_keeps_its_value_beside_packed_weights() -> None:
    """Both are values of the run: the form of one is not to be taken for the other."""
    filters, value = np.ones((1, 1, 64, 80), np.float32), np.arange(128, dtype=np.float32)
    with tf.Graph().as_default(), tf.device("/device:CPU:0"), tf.Session() as session:
        w = tf.get_variable("w", initializer=filters, use_resource=True)
        v = tf.get_variable("v", initializer=value, use_resource=True)
        x = tf.placeholder(tf.float32, [1, 4, 4, 64])
        session.run([w.initializer, v.initializer])
        fetches = [tf.nn.conv2d(x, w, [1, 1, 1, 1], "SAME"), v.read_value()]
        for _ in range(3):
            product, read = session.run(fetches, {x: np.ones((1, 4, 4, 64))})
            np.testing.assert_array_equal(product, np.full((1, 4, 4, 80), 64))
            np.testing.assert_array_equal(read, value)
