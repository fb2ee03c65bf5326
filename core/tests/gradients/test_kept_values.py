"""Values that loops and branches keep for their gradients, and how large these become."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import timberframe as tf


def nested_loops(depth: int, x: Any) -> Any:
    if depth == 0:
        return x * 1.5
    return tf.while_loop(lambda i, _: i < 2, lambda i, v: (i + 1, nested_loops(depth - 1, v)), [tf.constant(0), x])[1]


def test_gradient_of_nested_loops_has_as_many_nodes_for_each_level() -> None:
    def count(depth: int) -> int:
        with tf.Graph().as_default() as graph:
            x = tf.placeholder(tf.float32, [])
            tf.gradients(nested_loops(depth, x), x)
            return sum(len(function.get_operations()) for function in graph.functions.values())

    found = [count(depth) for depth in (4, 8, 12)]
    assert found[2] - found[1] == found[1] - found[0]


def nested_branches(depth: int, x: Any) -> Any:
    """Squares as often as the value is above a half, `depth` times at most."""
    return tf.cond(x > 0.5, lambda: nested_branches(depth - 1, x * x), lambda: tf.sin(x)) if depth else x


def test_gradient_of_nested_branches_has_about_as_many_nodes_for_each_level() -> None:
    def count(depth: int) -> int:
        with tf.Graph().as_default() as graph:
            x = tf.placeholder(tf.float32, [])
            tf.gradients(nested_branches(depth, x), x)
            return sum(len(function.get_operations()) for function in graph.functions.values())

    assert count(48) < 2.5 * count(24)


@pytest.mark.parametrize("value", [0.9999995, 0.99999, 0.9, 0.2])
def test_gradients_of_many_nested_branches(value: float) -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.float64, [])
        y = nested_branches(20, x)
        (first,) = tf.gradients(y, x)
        (second,) = tf.gradients(first, x)
        step = 1e-11 / value
        for derivative, of in ((first, y), (second, first)):
            difference = (session.run(of, {x: value + step}) - session.run(of, {x: value - step})) / (2 * step)
            np.testing.assert_allclose(session.run(derivative, {x: value}), difference, rtol=1e-3)


@pytest.mark.parametrize(
    ("build", "kept"),  # what the sine is taken of, and of the loop the number of iterations
    [
        (lambda x: tf.cond(x > 0.0, lambda: tf.sin(x * 3.0) * 2.0, lambda: x), 1),
        (lambda x: tf.while_loop(lambda i, _: i < 2, lambda i, v: (i + 1, tf.sin(v * 3.0) * 2.0), [0, x])[1], 2),
    ],
    ids=["branch", "loop"],
)
def test_values_for_gradients_of_constants_alone_are_not_kept(build: Callable[[Any], Any], kept: int) -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.float64, [])
        y = build(x)
        before = len(y.op.outputs)
        (slope,) = tf.gradients(y, x)
        assert len(y.op.outputs) == before + kept
        step = 1e-6
        difference = (session.run(y, {x: 0.3 + step}) - session.run(y, {x: 0.3 - step})) / (2 * step)
        np.testing.assert_allclose(session.run(slope, {x: 0.3}), difference, rtol=1e-6)


@pytest.mark.parametrize(("fed", "value", "expected"), [("start", 1, 2), ("end", 3, 2**9), ("step", 2, 2)])
def test_constants_that_count_iterations_may_be_fed(fed: str, value: int, expected: int) -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        given = {"start": tf.constant(0), "end": tf.constant(2), "step": tf.constant(1)}

        def level(x: Any, inner: Callable[[Any], Any]) -> Any:
            def body(i: Any, v: Any) -> Any:
                return i + given["step"], inner(v)

            return tf.while_loop(lambda i, _: i < given["end"], body, [given["start"], x])[1]

        x = tf.placeholder(tf.float32, [])
        y = level(x, lambda v: level(v, lambda u: u * 2.0))
        (slope,) = tf.gradients(y, x)
        assert session.run(slope, {x: 1.0}) == 2**4
        assert session.run(slope, {x: 1.0, given[fed]: value}) == expected
