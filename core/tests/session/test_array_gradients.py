"""Gradients of the ops that move, join and select elements."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import timberframe as tf
from timberframe_core.graph.apply import apply_op


def gradient_of(build: Any, x: np.ndarray, shape: Any = None) -> Any:
    """Returns what `tf.gradients` gives for the sum of squares of ``build(x)``, x being of this static shape."""
    graph = tf.Graph()
    with graph.as_default():
        fed = tf.placeholder(tf.float64, shape)
        (grad,) = tf.gradients(tf.reduce_sum(tf.square(build(fed))), [fed])
        with tf.Session() as session:
            return session.run(grad, {fed: x})


MATRIX = np.arange(12.0).reshape(3, 4)
BUILDS = {
    "slice": (lambda x: tf.slice(x, [1, 0], [2, 3]), np.pad(MATRIX[1:, :3], ((1, 0), (0, 1)))),
    "strided_slice": (lambda x: x[::-2, 1, None], MATRIX * [0, 1, 0, 0] * [[1], [0], [1]]),
    "concat": (lambda x: tf.concat([x, x[:1]], 0), MATRIX * [[2], [1], [1]]),
    "tile": (lambda x: tf.tile(x, [2, 3]), MATRIX * 6),
    "transpose": (lambda x: tf.transpose(x, [1, 0]), MATRIX),
    "pad": (lambda x: tf.pad(x, [[1, 0], [0, 2]]), MATRIX),
    "gather columns": (lambda x: tf.gather(x, [0, 0, 3], axis=1), MATRIX * [2, 0, 0, 1]),
    "reshape": (lambda x: tf.reshape(x, [-1]), MATRIX),
}


@pytest.mark.parametrize("name", BUILDS)
def test_gradient_does_not_need_static_shapes(name: str) -> None:
    build, half = BUILDS[name]
    for shape in (None, (None, None), (3, 4)):
        np.testing.assert_allclose(gradient_of(build, MATRIX, shape), 2 * half)


def test_rows_gathered_give_indexed_slices() -> None:
    x = tf.placeholder(tf.float32, [5, 2])
    (grad,) = tf.gradients(tf.gather(x, [[3, 1], [3, 3]]), [x])
    assert isinstance(grad, tf.IndexedSlices)
    with tf.Session() as session:
        found = session.run(grad, {x: np.zeros((5, 2))})
        whole = session.run(tf.convert_to_tensor(grad), {x: np.zeros((5, 2))})
    np.testing.assert_array_equal(found.indices, [3, 1, 3, 3])
    np.testing.assert_array_equal(whole[:, 0], [0, 1, 0, 3, 0])


def test_prevented_gradient_is_a_lookup_error_with_the_message() -> None:
    x = tf.placeholder(tf.float32, [2])
    y = apply_op("PreventGradient", [x], {"message": "frozen on purpose"})
    with pytest.raises(LookupError, match="frozen on purpose"):
        tf.gradients(y, [x])


def test_slice_that_moves_at_each_run_has_a_gradient_that_moves_along() -> None:
    x, begin = tf.placeholder(tf.float32, [5]), tf.placeholder(tf.int32, [1])
    (grad,) = tf.gradients(tf.slice(x, begin, [2]), [x])
    with tf.Session() as session:
        for i in range(4):
            found = session.run(grad, {x: np.zeros(5), begin: [i]})
            np.testing.assert_array_equal(np.flatnonzero(found), [i, i + 1])


@pytest.mark.parametrize("sizes", [(None, 1), (1, None), (None, None), (2, None, 3, None)])
def test_gradient_of_a_join_of_unknown_sizes_goes_to_each_part(sizes: tuple[int | None, ...]) -> None:
    parts = [tf.placeholder(tf.float32, [n, 3]) for n in sizes]
    joined = tf.concat(parts, 0)
    factors = tf.range(tf.to_float(tf.shape(joined)[0]))[:, None] + 1.0
    fed = {p: np.zeros((n or 2, 3)) for p, n in zip(parts, sizes, strict=True)}
    with tf.Session() as session:
        found = session.run(tf.gradients(joined * factors, parts), fed)
    assert [g.shape for g in found] == [x.shape for x in fed.values()]
    assert np.concatenate(found)[:, 0].tolist() == list(range(1, 1 + sum(len(g) for g in found)))


def test_training_graph_with_a_join_of_unknown_sizes_can_be_imported() -> None:
    x = tf.placeholder(tf.float32, [None, 3], "x")
    (grad,) = tf.gradients(tf.concat([x, tf.zeros([1, 3])], 0), [x])
    message = tf.get_default_graph().as_graph_def()
    with tf.Graph().as_default() as graph, tf.Session(graph=graph) as session:
        tf.import_graph_def(message, name="")
        assert session.run(grad.name, {"x:0": np.zeros((2, 3))}).tolist() == [[1, 1, 1]] * 2
