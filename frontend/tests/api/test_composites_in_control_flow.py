"""SparseTensors and IndexedSlices as results of branches and as loop variables."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import timberframe as tf

pytestmark = pytest.mark.usefixtures("graph")


def sparse() -> Any:
    """Returns a matrix with the diagonal 1, 2."""
    return tf.SparseTensor([[0, 0], [1, 1]], [1.0, 2.0], [2, 2])


def value(tensor: Any) -> Any:
    with tf.Session() as session:
        return session.run(tensor)


@pytest.mark.parametrize("which", [True, False])
def test_a_branch_returns_a_sparse_tensor(which: bool) -> None:
    x, p = sparse(), tf.placeholder_with_default(which, [])
    y, n = tf.cond(p, lambda: (x * 10.0, tf.constant(3)), lambda: (tf.sparse_retain(x, [True, False]), tf.constant(4)))
    assert isinstance(y, tf.SparseTensor)
    found = value(tf.sparse_tensor_to_dense(y))
    assert found.tolist() == ([[10, 0], [0, 20]] if which else [[1, 0], [0, 0]])
    assert value(n) == (3 if which else 4)


def test_a_case_returns_a_sparse_tensor() -> None:
    y = tf.switch_case(tf.placeholder_with_default(1, []), [sparse, lambda: sparse() * 3.0])
    assert value(y).values.tolist() == [3, 6]


def test_rows_of_a_branch_stay_rows() -> None:
    rows = tf.IndexedSlices(tf.constant([[1.0]]), tf.constant([2]), tf.constant([4, 1]))
    y = tf.cond(tf.placeholder_with_default(True, []), lambda: rows, lambda: rows)
    assert isinstance(y, tf.IndexedSlices)
    assert value(y).indices.tolist() == [2]


def test_rows_beside_a_whole_tensor_become_whole() -> None:
    rows = tf.IndexedSlices(tf.constant([[1.0]]), tf.constant([2]), tf.constant([4, 1]))
    y = tf.cond(tf.placeholder_with_default(True, []), lambda: rows, lambda: tf.zeros([4, 1]))
    assert value(y).tolist() == [[0], [0], [1], [0]]


def test_a_loop_variable_is_a_sparse_tensor() -> None:
    def body(i: Any, x: Any) -> Any:
        assert isinstance(x, tf.SparseTensor)
        return i + 1, tf.sparse_concat(0, [x, sparse()])

    n, y = tf.while_loop(lambda i, x: i < 2, body, [0, sparse()])
    assert value(n) == 2
    dense = value(tf.sparse_tensor_to_dense(y))
    assert dense.tolist() == np.tile([[1.0, 0], [0, 2]], (3, 1)).tolist()


def test_a_loop_variable_may_be_the_only_one_and_has_an_invariant() -> None:
    y = tf.while_loop(
        lambda x: tf.reduce_sum(x.values) < 20,
        lambda x: tf.SparseTensor(
            tf.concat([x.indices, x.indices], 0), tf.concat([x.values, x.values], 0), x.dense_shape
        ),
        [sparse()],
        [tf.TensorShape([None, 2])],
    )
    assert value(y).values.tolist() == [1.0, 2.0] * 8


def test_gradients_pass_values_in_loops_and_branches() -> None:
    w = tf.constant([3.0, 5.0])

    def step(i: Any, x: Any) -> Any:
        scaled = tf.SparseTensor(x.indices, x.values * w, x.dense_shape)
        return i + 1, tf.cond(tf.equal(i, 0), lambda: scaled, lambda: x)

    x = tf.while_loop(lambda i, x: i < 2, step, [0, sparse()])[1]
    assert value(tf.gradients(tf.sparse_reduce_sum(x), w)[0]).tolist() == [1, 2]
