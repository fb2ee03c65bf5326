"""Gradients that arrive as IndexedSlices: what is passed on as slices, and what is made dense."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import timberframe as tf
from timberframe_core.graph.apply import apply_op

Build = Callable[[Any, Any], Any]

X = np.arange(12, dtype=np.float32).reshape(4, 3)

KEPT: dict[str, Build] = {
    "nothing": lambda tf, x: x,
    "identity": lambda tf, x: tf.identity(x),
    "identity_n": lambda tf, x: tf.identity_n([x])[0],
    "negative": lambda tf, x: -x,
    "cast": lambda tf, x: tf.cast(x, tf.float64),
    "sum of equal shapes": lambda tf, x: x + tf.ones([4, 3]),
    "sum with a number": lambda tf, x: x + 1.0,
    "sum of an unknown number of rows": lambda tf, x: tf.placeholder_with_default(x, [None, 3]) + tf.ones([3]),
    "difference": lambda tf, x: x - 1.0,
    "difference from a number": lambda tf, x: 1.0 - x,
    "sum with its own constant": lambda tf, x: x + tf.stop_gradient(x),
    "sum of many": lambda tf, x: tf.add_n([x, x]),
    "bias": lambda tf, x: tf.nn.bias_add(x, [1.0, 2.0, 3.0]),
    "ensured shape": lambda tf, x: tf.ensure_shape(x, [4, 3]),
    "own gradient": lambda tf, x: tf.custom_gradient(lambda a: (tf.identity(a), lambda d: d))(x),
    "rows joined": lambda tf, x: tf.concat([tf.ones([1, 3]), x, tf.ones([2, 3])], 0),
    "columns joined": lambda tf, x: tf.concat([tf.ones([4, 1]), x], -1),
}
DENSE: dict[str, Build] = {
    "function": lambda tf, x: tf.cos(x),
    "logarithm of the sigmoid": lambda tf, x: tf.log_sigmoid(x),
    "product": lambda tf, x: x * 2.0,
    "mean": lambda tf, x: tf.reduce_mean(x, 1),
    "reshape": lambda tf, x: tf.reshape(x, [2, 2, 3]),
    "own gradient that computes": lambda tf, x: tf.custom_gradient(lambda a: (a * 2.0, lambda d: d * 2.0))(x),
    "sum that repeats": lambda tf, x: x[:1] + tf.ones([4, 3]),
    "sum of unknown shapes": lambda tf, x: tf.placeholder_with_default(x, None) + tf.placeholder_with_default(x, None),
    "branch": lambda tf, x: tf.cond(x[0, 1] > 0, lambda: x * 3.0, lambda: x),
    "loop": lambda tf, x: tf.while_loop(lambda i, a: i < 2, lambda i, a: [i + 1, a * 2.0], [0, x])[1],
    "rows joined along a computed axis": lambda tf, x: tf.concat([x, x], tf.placeholder_with_default(0, [])),
}


ZEROS = np.zeros((2, 3), np.float32)
GATHERED: dict[str, tuple[Build, list[int], list[int]]] = {
    "one branch, others zeros": (
        lambda x, p: tf.cond(p, lambda: tf.gather(x, [0, 2]), lambda: ZEROS), [0, 2], [0, 1, 2, 3]
    ),
    "both": (lambda x, p: tf.cond(p, lambda: tf.gather(x, [0, 2]), lambda: tf.gather(x, [1, 1])), [0, 2], [1, 1]),
    "one branch, others dense": (
        lambda x, p: tf.cond(p, lambda: tf.gather(x, [0, 2]), lambda: x[:2] * 2.0), [0, 2], [0, 1, 2, 3]
    ),
    "indices of two dtypes": (
        lambda x, p: tf.cond(p, lambda: tf.gather(x, [0, 2]), lambda: tf.gather(x, np.array([1, 1]))), [0, 2], [1, 1]
    ),
    "computed indices": (
        lambda x, p: tf.cond(p, lambda: tf.gather(x, tf.where(x[:, 0] > 5)[:, 0]), lambda: ZEROS), [2, 3], [0, 1, 2, 3]
    ),
    "branches in branches": (
        lambda x, p: tf.cond(p, lambda: tf.cond(p, lambda: tf.gather(x, [0]), lambda: ZEROS[:1]), lambda: ZEROS[:1]),
        [0],
        [0, 1, 2, 3],
    ),
    "one of several branches": (
        lambda x, p: tf.switch_case(tf.cast(p, tf.int32), [lambda: ZEROS, lambda: tf.gather(x, [0, 2])]),
        [0, 2],
        [0, 1, 2, 3],
    ),
    "function": (lambda x, p: tf.function(lambda y: tf.gather(y, [0, 2]))(x), [0, 2], [0, 2]),
}  # fmt: skip
"""Functions of x and a condition, with the rows of their gradients where it holds and where not, as in TensorFlow."""


@pytest.fixture(autouse=True)
def _graph() -> Iterator[None]:
    with tf.Graph().as_default():
        yield


def run(fetches: Any) -> Any:
    with tf.Session(graph=tf.get_default_graph()) as session:
        session.run(tf.global_variables_initializer())
        return session.run(fetches)


def gradient_of_rows(build: Build, x: Any) -> tuple[Any, Any]:
    """Returns the gradient of rows 1, 0 and 1 of build(x), weighted: by way of slices, and by
    a product that needs none.
    """
    y = build(tf, x)
    rank = len(y.shape) if y.shape.ndims is not None else 2
    factors = tf.cast(tf.reshape([1.0, 2.0, 4.0], [3] + [1] * (rank - 1)), y.dtype)
    choice = tf.one_hot([1, 0, 1], tf.shape(y)[0], dtype=y.dtype)
    (found,) = tf.gradients(tf.gather(y, [1, 0, 1]) * factors, [x])
    (wanted,) = tf.gradients(tf.tensordot(choice, tf.ensure_shape(y, [None] * rank), 1) * factors, [x])
    return found, wanted


@pytest.mark.parametrize("name", [*KEPT, *DENSE])
def test_gradient_by_way_of_slices_is_that_of_the_dense_tensor(name: str) -> None:
    found, wanted = gradient_of_rows({**KEPT, **DENSE}[name], tf.constant(X))
    got, want = run([tf.convert_to_tensor(found), wanted])
    np.testing.assert_allclose(got, want, rtol=1e-6)


@pytest.mark.parametrize("name", KEPT)
def test_slices_reach_a_variable_as_slices(name: str) -> None:
    v = tf.Variable(X)
    y = KEPT[name](tf, tf.convert_to_tensor(v))
    (found,) = tf.gradients(tf.gather(y, [1, 0, 1]), [v])
    assert isinstance(found, tf.IndexedSlices)


def test_training_of_chosen_rows_leaves_the_slots_of_others_alone() -> None:
    v = tf.Variable(X)
    loss = tf.reduce_sum(tf.gather(v + 1.0, [1, 3]))
    optimizer = tf.train.MomentumOptimizer(1.0, 0.5)
    train = optimizer.minimize(loss)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        session.run(train)
        assert session.run(optimizer.get_slot(v, "momentum"))[:, 0].tolist() == [0, 1, 0, 1]
    assert any("Sparse" in op.type for op in tf.get_default_graph().get_operations())


def test_slices_of_rows_without_elements_become_dense() -> None:
    x = tf.zeros([3, 0])
    (found,) = tf.gradients(tf.gather(x, [1, 1]), [x])
    assert run(tf.convert_to_tensor(found)).shape == (3, 0)


@pytest.mark.parametrize("shape", [[2, 3], None], ids=["known", "unknown"])
def test_gradient_of_one_element_gathered(shape: Any) -> None:
    x = tf.placeholder_with_default(tf.zeros([2, 3]), shape)
    element = apply_op("GatherNd", [x, tf.placeholder_with_default([1, 2], [2] if shape else None)])
    assert run(tf.gradients(element, [x])[0]).tolist() == [[0, 0, 0], [0, 0, 1]]


@pytest.mark.parametrize("shape", [[1, 1], None], ids=["known", "unknown"])
def test_gradient_of_gathered_slices_without_elements(shape: Any) -> None:
    x = tf.zeros([2, 0, 1])
    rows = tf.gather_nd(x, tf.placeholder_with_default([[1]], shape))
    assert run(tf.convert_to_tensor(tf.gradients(rows, [x])[0])).shape == (2, 0, 1)


@pytest.mark.parametrize("name", GATHERED)
@pytest.mark.parametrize("variable", [False, True])
def test_rows_that_a_branch_gathers_stay_rows(name: str, variable: bool) -> None:
    build, *rows = GATHERED[name]
    x = tf.get_variable("x", initializer=X, use_resource=True) if variable else tf.constant(X)
    condition = tf.placeholder(tf.bool, [])
    y = build(x, condition)
    (found,) = tf.gradients(y, x, tf.ones_like(y))
    assert isinstance(found, tf.IndexedSlices)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        for holds, wanted in zip((True, False), rows, strict=True):
            assert session.run(found.indices, {condition: holds}).tolist() == wanted
            assert session.run(found.dense_shape, {condition: holds}).tolist() == [4, 3]
            dense = session.run(tf.convert_to_tensor(found), {condition: holds})
            np.testing.assert_array_equal(
                dense, session.run(found_by_differences(build, x, condition), {condition: holds})
            )


def found_by_differences(build: Any, x: Any, condition: Any) -> Any:
    """Returns the slopes of a function that is linear in x: what a one in each place of it adds."""
    whole = tf.convert_to_tensor(x)
    ones = np.eye(12, dtype=np.float32).reshape(12, 4, 3)
    slopes = [tf.reduce_sum(build(whole + one, condition) - build(whole, condition)) for one in ones]
    return tf.reshape(tf.stack(slopes), [4, 3])
