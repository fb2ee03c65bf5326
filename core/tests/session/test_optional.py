"""Values that may be missing, which TensorFlow's gradients of branches hand on: their zeros and sums."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import timberframe as tf
from timberframe_core.graph.apply import apply_op
from timberframe_core.graph.function import FuncGraph

X = np.array([0.3, -0.5, 0.8])
NO_SIZES = np.zeros(0, np.int32)


def some(*values: Any) -> Any:
    return apply_op("OptionalFromValue", [list(values)])


def none() -> Any:
    return apply_op("OptionalNone")


def value(optional: Any, dtype: tf.DType = tf.float64, shape: Any = (3,)) -> Any:
    return apply_op("OptionalGetValue", [optional], {"output_types": [dtype], "output_shapes": [shape]})[0]


def has_value(optional: Any) -> Any:
    return apply_op("OptionalHasValue", [optional])


def zeros(variant: Any) -> Any:
    return apply_op("ZerosLike", [variant])


def run(fetch: Any) -> Any:
    with tf.Session() as session:
        return session.run(fetch)


def test_zeros_like_a_value() -> None:
    assert run(value(zeros(some(tf.constant(X))))).tolist() == [0, 0, 0]


def test_zeros_like_a_missing_value_are_missing() -> None:
    assert not run(has_value(zeros(none())))


def test_sum_of_values() -> None:
    x = some(tf.constant(X))
    np.testing.assert_array_equal(run(value(apply_op("AddN", [[x, x, x]]))), X + X + X)


def test_missing_value_adds_nothing() -> None:
    np.testing.assert_array_equal(run(value(apply_op("AddN", [[none(), some(tf.constant(X))]]))), X)


def test_values_of_different_shapes_cannot_be_added() -> None:
    total = value(apply_op("AddN", [[some(tf.constant(X)), some(tf.constant(X[:2]))]]))
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"have shapes .* and .*; they must be equal"):
        run(total)


def test_lists_in_a_value_have_zeros_and_sums() -> None:
    rows = tf.TensorArray(tf.float64, 2).unstack([1.0, 2.0]).flow
    twice = apply_op("AddN", [[some(rows), some(rows)]])
    both = [tf.TensorArray(tf.float64, flow=value(o, tf.variant, ())).gather([0, 1]) for o in (twice, zeros(twice))]
    assert [r.tolist() for r in run(both)] == [[2, 4], [0, 0]]


def test_values_in_a_list_have_zeros() -> None:
    empty = apply_op("EmptyTensorList", [NO_SIZES, -1], {"element_dtype": tf.variant})
    pushed = apply_op("TensorListPushBack", [empty, some(tf.constant(X))], {"element_dtype": tf.variant})
    popped = apply_op("TensorListPopBack", [zeros(pushed), NO_SIZES], {"element_dtype": tf.variant})[1]
    assert run(value(popped)).tolist() == [0, 0, 0]


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_second_gradient_of_a_branch_whose_other_side_gives_no_value(sign: float) -> None:
    """As TensorFlow writes it: one branch hands sin(x) to its gradient, the other one hands on nothing."""
    x = tf.constant(sign * X)
    graph = tf.get_default_graph()
    forward = []
    for name in ("then", "else"):
        branch = FuncGraph(graph.unique_name(name), graph)
        with branch.as_default():
            inner = branch.add_input(tf.float64, [3])
            branch.finish([some(tf.sin(inner)) if name == "then" else none()])
        forward.append(branch)
    attrs = {"then_branch": forward[0], "else_branch": forward[1], "Tout": [tf.variant], "output_shapes": [()]}
    optional = apply_op("StatelessIf", [tf.reduce_sum(x) > 0.0, [x]], attrs)[0]
    y = tf.cond(has_value(optional), lambda: value(optional) * value(optional), lambda: x * x)
    (found,) = tf.gradients(y, [x])
    expected = np.sin(2 * X) if sign > 0 else -2 * X
    np.testing.assert_allclose(run(found), expected, rtol=1e-14)
