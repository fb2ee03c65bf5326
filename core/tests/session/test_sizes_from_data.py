"""Sizes that follow from the values of tensors, however many elements these have and wherever they come from."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import timberframe as tf
from timberframe_core.ops.definition.host_values import MAX_ELEMENTS

Build = Callable[[Any], Any]


def count(x: Any) -> Any:
    """Counts the elements above one half: of `halves`, a half of them."""
    return tf.reduce_sum(tf.cast(x > 0.5, tf.int32))


def halves(size: int) -> np.ndarray:
    return np.linspace(0, 1, size, dtype=np.float32)


def in_loop(x: Any) -> Any:
    return tf.while_loop(
        lambda i, y: tf.less(i, 2), lambda i, y: (i + 1, y + tf.reduce_sum(tf.ones([count(x)]))), [0, 0.0]
    )[1]


SIZED: dict[str, tuple[Build, Callable[[int], Any]]] = {
    "range": (lambda x: tf.range(count(x)), lambda n: np.arange(n // 2)),
    "ones": (lambda x: tf.ones([count(x)]), lambda n: np.ones(n // 2)),
    "slice": (lambda x: x[: count(x)], lambda n: halves(n)[: n // 2]),
    "begin of a slice": (lambda x: x[count(x) :], lambda n: halves(n)[n // 2 :]),
    "top_k": (lambda x: tf.nn.top_k(x, count(x)).values, lambda n: halves(n)[::-1][: n // 2]),
    "count of floats": (
        lambda x: tf.range(tf.cast(tf.reduce_sum(tf.cast(x > 0.5, tf.float32)), tf.int32)),
        lambda n: np.arange(n // 2),
    ),
    "split": (lambda x: tf.split(x, [count(x), tf.size(x) - count(x)])[1], lambda n: halves(n)[n // 2 :]),
    "segments": (
        lambda x: tf.unsorted_segment_sum(tf.ones_like(x), tf.cast(x > 0.5, tf.int32), 2 + 0 * count(x)),
        lambda n: [n // 2, n // 2],
    ),
    "branch": (
        lambda x: tf.cond(tf.greater(tf.size(x), 0), lambda: tf.range(count(x)), lambda: tf.range(1)),
        lambda n: np.arange(n // 2),
    ),
    "loop": (in_loop, lambda n: 2 * (n // 2)),
    "map": (
        lambda x: tf.map_fn(lambda i: tf.reduce_sum(tf.range(i + count(x))), tf.range(2)),
        lambda n: [sum(range(n // 2)), sum(range(n // 2 + 1))],
    ),
}


@pytest.mark.parametrize("shape", ["known", "unknown", "rank"])
@pytest.mark.parametrize("name", SIZED)
def test_size_that_follows_from_a_feed(name: str, shape: str) -> None:
    build, wanted = SIZED[name]
    for size in (50, 1000, 5000):
        with tf.Graph().as_default(), tf.Session() as session:
            x = tf.placeholder(tf.float32, {"known": [size], "unknown": [None], "rank": None}[shape])
            flat = tf.reshape(x, [-1]) if shape == "rank" else x
            np.testing.assert_array_equal(session.run(build(flat), {x: halves(size)}), wanted(size))


@pytest.mark.parametrize("name", SIZED)
def test_size_that_follows_from_a_variable(name: str) -> None:
    build, wanted = SIZED[name]
    with tf.Graph().as_default(), tf.Session() as session:
        variable = tf.Variable(halves(5000))
        result = build(variable)
        session.run(variable.initializer)
        np.testing.assert_array_equal(session.run(result), wanted(5000))


SIZED_BY_A_KERNEL: dict[str, Build] = {
    "where": lambda x: tf.where(x > 0.5),
    "unique": lambda x: tf.unique(tf.floor(x * tf.cast(tf.size(x) // 2 - 1, tf.float32) + 0.5))[0],
    "dynamic_partition": lambda x: tf.dynamic_partition(x, tf.cast(x > 0.5, tf.int32), 2)[1],
    "setdiff1d": lambda x: tf.setdiff1d(x, tf.minimum(x, 0.5))[0],
}
ONLY_SIZES: dict[str, tuple[Build, Callable[[int], Any]]] = {
    "shape": (lambda y: tf.shape(y)[:1], lambda n: [n]),
    "size": (lambda y: tf.size(y), lambda n: n),
    "fill": (lambda y: tf.fill(tf.shape(y)[:1], 3), lambda n: np.full(n, 3)),
    "tile": (lambda y: tf.tile([[2.0]], tf.stack([tf.shape(y)[0], 2])), lambda n: np.full((n, 2), 2.0)),
}


@pytest.mark.parametrize("use", ONLY_SIZES)
@pytest.mark.parametrize("name", SIZED_BY_A_KERNEL)
def test_only_the_size_is_used_of_what_a_kernel_sizes(name: str, use: str) -> None:
    function, wanted = ONLY_SIZES[use]
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.float32, [None])
        result = function(SIZED_BY_A_KERNEL[name](x))
        for size in (10, 40):
            np.testing.assert_array_equal(session.run(result, {x: halves(size)}), wanted(size // 2))


def test_size_that_follows_from_a_large_constant() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        assert session.run(tf.range(count(tf.constant(halves(5000))))).shape == (2500,)


def test_size_that_follows_from_more_numbers_than_the_host_computes() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.float32, [None])
        size = tf.reduce_max(tf.floordiv(tf.range(tf.shape(x)[0]), 1000))
        assert session.run(tf.range(size), {x: np.zeros(2 * MAX_ELEMENTS)}).shape == (2 * MAX_ELEMENTS // 1000,)


def test_one_plan_serves_sizes_that_follow_from_other_values() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.float32, [None])
        y = tf.range(count(x))
        for size in (10, 4000, 30, 2500, 4000, 0):
            assert session.run(y, {x: halves(size)}).shape == (size // 2,)


def test_shape_arithmetic_of_unknown_rank_is_planned_with_the_shapes_of_the_feeds() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.float32)
        y = tf.reshape(tf.reduce_sum(x, tf.range(1, tf.rank(x))), tf.concat([tf.shape(x)[:1], [1]], 0))
        assert session.run(y, {x: np.ones((2, 3, 4))}).tolist() == [[12], [12]]
        assert {s.depth for s in session.explain(y, {x: np.ones((2, 3, 4))}).stages} == {0}
