"""How many iterations a loop is known to make: what that decides must not show in results."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import timberframe as tf

Condition = Callable[[Any], Any]


@pytest.fixture
def session() -> Iterator[tf.Session]:
    with tf.Graph().as_default() as graph, tf.Session(graph=graph) as session:
        yield session


def gradient_of_power(start: Any, condition: Condition, step: Any = 1) -> Any:
    """Returns the derivative of x^n at 2, n - 1 being the number of iterations."""
    x = tf.constant(2.0)
    y = tf.while_loop(lambda i, _: condition(i), lambda i, v: (i + step, v * x), (start, x))[1]
    return tf.gradients(y, x)[0]


@pytest.mark.parametrize(
    ("start", "condition", "step", "iterations"),
    [
        (0, lambda i: i < 3, 1, 3),
        (0, lambda i: i <= 3, 1, 4),
        (0, lambda i: 3 > i, 1, 3),  # noqa: SIM300 - the counter on the right is the case
        (0, lambda i: tf.greater_equal(3, i), 1, 4),
        (1, lambda i: i < 8, 3, 3),
        (5, lambda i: i < 3, 1, 0),
        (4, lambda i: i > 0, -1, 4),
        (0.0, lambda i: i < 2.5, 1.0, 3),
        (0.5, lambda i: i < 2.6, 0.7, 3),
        (0, lambda i: tf.minimum(i, 3) < 3, 1, 3),
    ],
)
def test_every_iteration_counts(
    session: tf.Session, start: Any, condition: Condition, step: Any, iterations: int
) -> None:
    assert session.run(gradient_of_power(start, condition, step)) == (iterations + 1) * 2**iterations


@pytest.mark.parametrize("longest", [0, 2, 5, 9])
def test_loop_up_to_the_longest_sequence(session: tf.Session, longest: int) -> None:
    limit = tf.placeholder(tf.int32, [])
    grad = gradient_of_power(0, lambda i: i < tf.minimum(limit, 5))
    iterations = min(longest, 5)
    assert session.run(grad, {limit: longest}) == (iterations + 1) * 2**iterations


@pytest.mark.parametrize("most", [0, 2, 1000, 10**8])
def test_loop_that_may_end_early(session: tf.Session, most: int) -> None:
    x = tf.constant(np.array([2.0, 2.0]))
    y = tf.while_loop(lambda v: v[0] < 9.0, lambda v: v * x, [x], maximum_iterations=most)
    iterations = min(most, 3)
    assert session.run(tf.gradients(y, x)[0]).tolist() == [(iterations + 1) * 2**iterations] * 2
