"""Loops, branches and their gradients, built alike on both sides, and as TensorFlow 2 writes them into a GraphDef."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

import timberframe

RNG = np.random.default_rng(3)
ROWS = RNG.standard_normal((5, 3))
WEIGHTS = RNG.standard_normal((6, 12)) * 0.3


def lstm(tf: Any, x: Any) -> Any:
    """Returns the states of an LSTM over the rows of x, written with a TensorArray."""
    rows = tf.TensorArray(tf.float64, 5).unstack(x)
    outputs = tf.TensorArray(tf.float64, 5)

    def step(t: Any, h: Any, c: Any, out: Any) -> Any:
        z = tf.matmul(tf.concat([tf.reshape(rows.read(t), [1, 3]), h], 1), tf.constant(WEIGHTS))
        i, g, f, o = tf.split(z, 4, 1)
        c = tf.sigmoid(f) * c + tf.sigmoid(i) * tf.tanh(g)
        h = tf.sigmoid(o) * tf.tanh(c)
        return t + 1, h, c, out.write(t, h)

    zero = tf.zeros([1, 3], tf.float64)
    return tf.while_loop(lambda t, *_: t < 5, step, (0, zero, zero, outputs))[3].stack()


def collatz(tf: Any, x: Any) -> Any:
    def body(i: Any, v: Any) -> Any:
        return i + 1, tf.cond(tf.equal(i % 2, 0), lambda: tf.sin(v) * x, lambda: v * v + 0.1)

    return tf.while_loop(lambda i, _: i < 5, body, (0, x))[1]


def nested(tf: Any, x: Any) -> Any:
    def inner(v: Any) -> Any:
        return tf.while_loop(lambda j, _: j < 2, lambda j, u: (j + 1, tf.sin(u) * x), (0, v))[1]

    return tf.while_loop(lambda i, _: i < 3, lambda i, v: (i + 1, inner(v)), (0, x))[1]


BUILDS: dict[str, Callable[[Any, Any], Any]] = {
    "lstm": lstm,
    "branch in loop": collatz,
    "loop in loop": nested,
    "map": lambda tf, x: tf.map_fn(lambda r: tf.exp(r) * r[0], x),
    "scan": lambda tf, x: tf.scan(lambda a, r: tf.tanh(a) * r, x),
    "fold": lambda tf, x: tf.foldr(lambda a, r: a * 0.5 + r * r, x),
    "branch": lambda tf, x: tf.cond(tf.reduce_sum(x) > 0.0, lambda: tf.sin(x) * x, lambda: tf.exp(x)),
    "numbered branch": lambda tf, x: tf.switch_case(tf.size(x) - 14, [lambda: tf.sin(x), lambda: x * x * x]),
    "untaken branch": lambda tf, x: tf.cond(tf.reduce_sum(x) > 99.0, lambda: tf.sin(x) * x, lambda: tf.exp(x) * x),
}


def compare(got: Sequence[Any], want: Sequence[Any]) -> int:
    """Returns how many results are equal: float64 results of about a hundred operations each, on both sides."""
    for found, wanted in zip(got, want, strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-12, atol=1e-12)
    return len(got)


def results(tf: Any, build: Callable[[Any, Any], Any]) -> tuple[Any, list[Any]]:
    x = tf.placeholder(tf.float64, [5, 3])
    y = build(tf, x)
    (first,) = tf.gradients(tf.reduce_sum(y * y), x)
    return x, [y, first]


@pytest.mark.parametrize("name", BUILDS)
def test_values_and_gradients_agree(tensorflow: Any, name: str) -> None:
    found = []
    for tf in (tensorflow, timberframe):
        with tf.Graph().as_default(), tf.Session() as session:
            x, fetches = results(tf, BUILDS[name])
            found.append(session.run(fetches, {x: ROWS}))
    theirs, ours = found
    assert compare(ours, theirs) == 2


@contextmanager
def second_control_flow(tf: Any) -> Iterator[None]:
    """Makes TensorFlow write While, If and TensorList* into graphs, instead of Enter, Switch and TensorArray*."""
    was = tf.control_flow_v2_enabled()
    tf.enable_control_flow_v2()
    try:
        yield
    finally:
        if not was:
            tf.disable_control_flow_v2()


@pytest.mark.parametrize("name", BUILDS)
def test_their_gradients_run_here(tensorflow: Any, name: str) -> None:
    tf = tensorflow
    with second_control_flow(tf), tf.Graph().as_default() as graph, tf.Session() as session:
        x, fetches = results(tf, BUILDS[name])
        wanted = session.run(fetches, {x: ROWS})
    with timberframe.Graph().as_default() as ours, timberframe.Session(graph=ours) as session:
        timberframe.import_graph_def(graph.as_graph_def(), name="")
        got = session.run([t.name for t in fetches], {x.name: ROWS})
    assert compare(got, wanted) == 2


@pytest.mark.parametrize("name", BUILDS)
def test_gradients_of_their_graphs_agree(tensorflow: Any, name: str) -> None:
    tf = tensorflow
    with second_control_flow(tf), tf.Graph().as_default() as graph, tf.Session() as session:
        x = tf.placeholder(tf.float64, [5, 3])
        y = BUILDS[name](tf, x)
        forward = graph.as_graph_def(add_shapes=True)
        wanted = session.run(tf.gradients(y, x), {x: ROWS})
    with timberframe.Graph().as_default() as ours, timberframe.Session(graph=ours) as session:
        timberframe.import_graph_def(forward, name="")
        made = timberframe.gradients(ours.get_tensor_by_name(y.name), ours.get_tensor_by_name(x.name))
        assert compare(session.run(made, {x.name: ROWS}), wanted) == 1


@pytest.mark.parametrize("name", BUILDS)
def test_our_gradients_run_there(tensorflow: Any, name: str) -> None:
    with timberframe.Graph().as_default() as ours, timberframe.Session(graph=ours) as session:
        x, fetches = results(timberframe, BUILDS[name])
        wanted = session.run(fetches, {x: ROWS})
    tf = tensorflow
    message = tf.GraphDef.FromString(ours.as_graph_def().SerializeToString())
    with tf.Graph().as_default() as theirs, tf.Session(graph=theirs) as session:
        tf.import_graph_def(message, name="")
        got = session.run([t.name for t in fetches], {x.name: ROWS})
    assert compare(got, wanted) == 2
