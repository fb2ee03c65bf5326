"""Devices with host memory run a single cluster without the executor; what they give and raise stays the same."""

from __future__ import annotations

import types
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import timberframe as tf
from timberframe_sdk import InvalidArgumentError, KernelDef, Launch, hookimpl
from timberframe_sdk.testing.loaded import loaded_plugin

NUMPY = "/device:NUMPY:0"
X = np.arange(3, dtype=np.float32)


@pytest.fixture
def graph() -> Iterator[tf.Graph]:
    with tf.Graph().as_default() as made, tf.device(NUMPY):
        yield made


def direct(session: Any, fetches: Any, feeds: Any) -> Any:
    """Returns what a second run gives, which takes the shortest way."""
    session.run(fetches, feeds)
    assert session._runner(fetches, feeds).direct is not None
    return session.run(fetches, feeds)


def test_the_results_are_those_of_the_general_way(graph: tf.Graph) -> None:
    x = tf.placeholder(tf.float32, [None])
    with tf.Session() as session:
        found = direct(session, [x + x, x * x], {x: X})
    np.testing.assert_array_equal(found, [X + X, X * X])


def test_other_feeds_take_the_general_way(graph: tf.Graph) -> None:
    x = tf.placeholder(tf.float32, [None])
    y = x + x
    with tf.Session() as session:
        direct(session, y, {x: X})
        for given in ([1.0, 2.0], np.ones(5, np.float64), np.ones(3, np.float32)[::-1], np.float32([4])):
            np.testing.assert_array_equal(session.run(y, {x: given}), 2 * np.asarray(given))


def test_a_wrong_feed_is_the_same_error(graph: tf.Graph) -> None:
    x = tf.placeholder(tf.float32, [3], name="x")
    y = x + x
    with tf.Session() as session:
        direct(session, y, {x: X})
        with pytest.raises(tf.errors.InvalidArgumentError, match=r"Placeholder 'x': fed with shape \(4,\)"):
            session.run(y, {x: np.zeros(4, np.float32)})


def test_an_error_of_a_kernel_names_node_device_and_line(graph: tf.Graph) -> None:
    def build(node: Any) -> Any:
        def launch(x: np.ndarray, out: np.ndarray) -> None:
            if x[0] < 0:
                raise InvalidArgumentError(f"{x[0]} is below 0; a positive number is required")
            np.copyto(out, x)

        return Launch(launch)

    kernel = KernelDef("Neg", "NUMPY", build, label="positive")
    plugin = types.SimpleNamespace(timberframe_kernels=hookimpl(lambda: [kernel]))
    x = tf.placeholder(tf.float32, [3])
    with loaded_plugin("positive", plugin), tf.Session() as session:
        y = graph.apply("Neg", [x], {"T": tf.float32, "_kernel": "positive"}, "kept").outputs[0]
        direct(session, y, {x: X})
        words = r"Neg 'kept': -1\.0 is below 0; .*  \[/device:NUMPY:0, .*test_direct_call\.py:\d+\]"
        with pytest.raises(tf.errors.InvalidArgumentError, match=words):
            session.run(y, {x: X - 1})


def test_results_own_their_memory(graph: tf.Graph) -> None:
    x = tf.placeholder(tf.float32, [None])
    y = x + x
    with tf.Session() as session:
        first = direct(session, y, {x: X})
        kept = first.copy()
        session.run(y, {x: X + 5})
    np.testing.assert_array_equal(first, kept)


def test_a_feed_that_is_fetched_is_a_copy(graph: tf.Graph) -> None:
    x = tf.placeholder(tf.float32, [None])
    given = X.copy()
    with tf.Session() as session:
        for _ in range(2):
            found = session.run(tf.identity(x), {x: given})
    assert not np.shares_memory(found, given)
