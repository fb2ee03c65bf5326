"""Gradients of loops within loops."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import timberframe as tf

AT = np.array([0.6, -0.4])

Check = Callable[..., None]


def nested(depth: int, x: Any, v: Any, count: int = 2) -> Any:
    """Returns a loop nested `depth` deep, each level of which uses x."""
    if depth == 0:
        return tf.sin(v) * x
    return tf.while_loop(lambda i, _: i < count, lambda i, v: (i + 1, nested(depth - 1, x, v, count)), (0, v))[1]


@pytest.mark.slow
@pytest.mark.parametrize("depth", [1, 2, 3, 4])
def test_gradients_of_nested_loops(check_gradients: Check, depth: int) -> None:
    check_gradients(lambda x: nested(depth, x, x), AT)


@pytest.mark.slow
def test_third_order(check_gradients: Check) -> None:
    check_gradients(lambda x: nested(3, x, x), AT, orders=3)


@pytest.mark.parametrize("count", [0, 1])
def test_loops_of_few_iterations(check_gradients: Check, count: int) -> None:
    check_gradients(lambda x: nested(3, x, tf.sin(x), count), AT)


def test_unknown_shape(check_gradients: Check) -> None:
    check_gradients(lambda x: nested(3, x, x), AT, [None])


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_loop_in_a_branch_that_keeps_values_of_several_shapes(check_gradients: Check, sign: float) -> None:
    """The lists that the branch returns are distinct."""

    def loop(x: Any) -> Any:
        def body(i: Any, v: Any) -> Any:
            return i + 1, tf.tanh(v * tf.reduce_sum(tf.sin(v)) * x)

        return tf.while_loop(lambda i, _: i < 3, body, (0, x))[1]

    check_gradients(lambda x: tf.cond(tf.reduce_sum(x) > 0.0, lambda: loop(x), lambda: x * x), sign * AT, [None])


def test_loop_in_a_branch_in_a_loop_in_a_branch(check_gradients: Check) -> None:
    def inner(x: Any, v: Any) -> Any:
        return tf.while_loop(lambda j, _: j < 2, lambda j, u: (j + 1, tf.sin(u) * tf.reduce_sum(u * x)), (0, v))[1]

    def outer(x: Any) -> Any:
        def body(i: Any, v: Any) -> Any:
            return i + 1, tf.cond(tf.equal(i % 2, 0), lambda: inner(x, v), lambda: tf.cos(v) * x)

        return tf.while_loop(lambda i, _: i < 3, body, (0, x))[1]

    check_gradients(lambda x: tf.cond(tf.reduce_sum(x) > 0.0, lambda: outer(x), lambda: x * x), AT)


@pytest.mark.slow
def test_loop_variable_that_grows(check_gradients: Check) -> None:
    """The gradient has another shape in each iteration, as its variable has."""

    def build(x: Any) -> Any:
        shapes = (tf.TensorShape([]), tf.TensorShape([None]))
        grown = tf.while_loop(lambda i, _: i < 2, lambda i, v: (i + 1, tf.concat([v, v * x[0]], 0)), (0, x), shapes)[1]
        return tf.reduce_sum(tf.sin(grown)) * x

    check_gradients(build, AT, orders=3)
