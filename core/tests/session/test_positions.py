"""Positions of random streams and other resources: out of a session and into another."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import timberframe as tf
from timberframe_core.plugin.state import Position
from timberframe_core.runtime.resources import ResourceStore


@pytest.fixture(autouse=True)
def graph() -> Iterator[Any]:
    with tf.Graph().as_default() as graph:
        yield graph


def assert_goes_on(fetches: Any, before: Callable[[Any], Any] = lambda session: None) -> None:
    """A session that was given the positions of another draws what that one draws."""
    with tf.Session() as session:
        for _ in range(3):
            session.run(fetches)
        positions = session.read_positions()
        expected = [session.run(fetches) for _ in range(3)]
    with tf.Session() as session:
        before(session)
        session.set_positions(positions)
        found = [session.run(fetches) for _ in range(3)]
    np.testing.assert_array_equal(found, expected)


def test_streams_with_seeds_go_on_in_another_session() -> None:
    assert_goes_on(tf.random_normal([4], seed=1))


def test_streams_without_seeds_go_on_in_another_session() -> None:
    assert_goes_on(tf.random_uniform([4]))


def test_dropout_goes_on_in_another_session() -> None:
    assert_goes_on(tf.nn.dropout(tf.ones([20]), rate=0.5))


def test_streams_in_loops_go_on_in_another_session() -> None:
    assert_goes_on(
        tf.while_loop(lambda i, a: i < 3, lambda i, a: (i + 1, a + tf.random_uniform([2])), [0, tf.zeros([2])])[1]
    )


def test_a_stream_that_was_used_before_goes_on_from_the_position() -> None:
    x = tf.random_uniform([4])
    assert_goes_on(x, before=lambda session: session.run(x))


def test_a_callable_made_before_draws_from_the_position() -> None:
    x = tf.random_uniform([4])
    with tf.Session() as session:
        session.run(x)
        positions = session.read_positions()
        expected = session.run(x)
    with tf.Session() as session:
        call = session.make_callable(x)
        call()
        session.set_positions(positions)
        np.testing.assert_array_equal(call(), expected)


def test_equal_runs_have_equal_positions() -> None:
    x = tf.random_uniform([4], seed=1)
    found = []
    for _ in range(2):
        with tf.Session() as session:
            session.run(x)
            found.append(session.read_positions())
    assert found[0] == found[1]


def test_positions_of_resources_that_are_not_made_yet_are_kept() -> None:
    x, y = tf.random_uniform([4]), tf.random_uniform([4])
    with tf.Session() as session:
        session.run([x, y])
        positions = session.read_positions()
        expected = session.run(y)
    with tf.Session() as session:
        session.set_positions(positions)
        session.run(x)
        later = session.read_positions()
    with tf.Session() as session:
        session.set_positions(later)
        np.testing.assert_array_equal(session.run(y), expected)


def test_streams_that_no_position_names_stay_where_they_are() -> None:
    x = tf.random_uniform([4], seed=1)
    with tf.Session() as session:
        expected = [session.run(x) for _ in range(2)]
    with tf.Session() as session:
        found = [session.run(x)]
        session.set_positions({})
        np.testing.assert_array_equal([*found, session.run(x)], expected)


def test_records_in_random_order_go_on_in_another_session(tmp_path: Path) -> None:
    with tf.python_io.TFRecordWriter(str(tmp_path / "a")) as writer:
        for i in range(7):
            writer.write(b"%d" % i)
    attrs = {"file_pattern": str(tmp_path / "a"), "file_random_seed": 5, "file_buffer_size": 4, "batch_size": 3}
    assert_goes_on(tf.raw_ops.RecordInput(**attrs))


class Counter:
    """A resource with a position."""

    def __init__(self) -> None:
        self.count = 0

    def position(self) -> Position:
        return {"count": np.array(self.count)}

    def set_position(self, position: Position) -> None:
        self.count = int(position["count"])


def test_any_resource_with_the_two_methods_has_a_position() -> None:
    first, second = ResourceStore(), ResourceStore()
    first.get_or_make("counter a", Counter).count = 7
    second.set_positions(first.positions())
    assert second.get_or_make("counter a", Counter).count == 7


def test_a_resource_that_is_put_takes_its_position() -> None:
    store, counter = ResourceStore(), Counter()
    store.set_positions({"counter a": {"count": np.array(7)}})
    store.put("counter a", counter)
    assert counter.count == 7


def test_a_closed_session_has_no_positions() -> None:
    session = tf.Session()
    session.close()
    with pytest.raises(tf.errors.OpError, match="closed"):
        session.read_positions()
