"""Runs again and again: whichever way a run takes, its results are what was asked for, in that structure."""

from __future__ import annotations

from collections import OrderedDict, UserDict, namedtuple
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import timberframe as tf

Pair = namedtuple("Pair", ["first", "second"])

STRUCTURES: dict[str, Callable[[Any, Any, Any], Any]] = {
    "single": lambda a, b, c: a,
    "single_scalar": lambda a, b, c: c,
    "list_of_one": lambda a, b, c: [a],
    "list_of_one_scalar": lambda a, b, c: [c],
    "dict_of_one": lambda a, b, c: {"a": a},
    "duplicated": lambda a, b, c: (a, a, b),
    "duplicated_alone": lambda a, b, c: [a, a],
    "reordered": lambda a, b, c: [c, b, a],
    "nested": lambda a, b, c: [[b], {"k": (c, a), "l": [a]}],
    "named_tuple": lambda a, b, c: Pair(b, a),
    "empty_parts": lambda a, b, c: [(), a, {}],
}

FEEDS: dict[str, Any] = {
    "list": [1.0, 2.0],
    "tuple": (3.0, 5.0),
    "same_shape": np.array([7, 9], np.float32),
    "another_batch": np.array([1, 2, 3], np.float32),
    "empty_batch": np.zeros([0], np.float32),
    "float64": np.array([0.5, 1.5]),
    "integers": np.array([4, 6]),
    "strided": np.arange(8, dtype=np.float32)[::2],
    "reversed": np.arange(2, dtype=np.float32)[::-1],
    "swapped_bytes": np.array([1, 2], np.float32).astype(">f4"),
    "misaligned": np.frombuffer(b"\0" + np.array([1, 2], np.float32).tobytes(), np.float32, offset=1),
    "subclass": np.array([1, 2], np.float32).view(np.recarray),
    "read_only": np.broadcast_to(np.float32(3), (2,)),
}


class _Graph:
    """``a = x + 1``, ``b = 10 * x``, ``c = sum(x)``, and a session that has run none of them yet."""

    def __init__(self, session: tf.Session) -> None:
        self.session = session
        self.x = tf.placeholder(tf.float32, [None])
        self.tensors = self.x + 1, self.x * 10, tf.reduce_sum(self.x)

    def by_run(self, fetches: Any) -> Callable[[Any], Any]:
        return lambda value: self.session.run(fetches, {self.x: value})

    def by_callable(self, fetches: Any) -> Callable[[Any], Any]:
        return self.session.make_callable(fetches, [self.x])


@pytest.fixture
def graph() -> Iterator[_Graph]:
    with tf.Graph().as_default() as g, tf.Session(graph=g) as session:
        yield _Graph(session)


def _expected(structure: Callable[[Any, Any, Any], Any], feed: Any) -> Any:
    x = np.asarray(feed, np.float32)
    return structure(x + 1, x * 10, x.sum())


def _check(result: Any, expected: Any) -> None:
    """Equal structures of equal types, equal values at the leaves."""
    assert type(result) is type(expected)
    if isinstance(expected, dict):
        assert list(result) == list(expected)
        result, expected = list(result.values()), list(expected.values())
    if isinstance(expected, list | tuple):
        assert len(result) == len(expected)
        for r, e in zip(result, expected, strict=True):
            _check(r, e)
    else:
        assert result.dtype == expected.dtype
        np.testing.assert_array_equal(result, expected)


@pytest.mark.parametrize("way", ["by_run", "by_callable"])
@pytest.mark.parametrize("feed", FEEDS)
@pytest.mark.parametrize("name", STRUCTURES)
def test_a_later_run_gives_what_was_asked_for(graph, name, feed, way) -> None:
    structure = STRUCTURES[name]
    call = getattr(graph, way)(structure(*graph.tensors))
    usual = np.array([1, 2], np.float32)
    for value in (usual, usual, FEEDS[feed], FEEDS[feed], usual):
        _check(call(value), _expected(structure, value))


@pytest.mark.parametrize("way", ["by_run", "by_callable"])
@pytest.mark.parametrize("name", STRUCTURES)
def test_batches_that_change_with_each_run(graph, name, way) -> None:
    structure = STRUCTURES[name]
    call = getattr(graph, way)(structure(*graph.tensors))
    for size in [*range(20), *range(20)]:  # more shapes than keep a direct call
        value = np.arange(size, dtype=np.float32)
        _check(call(value), _expected(structure, value))


@pytest.mark.parametrize("way", ["by_run", "by_callable"])
def test_loops_over_lists_whose_length_changes_with_each_run(graph, way) -> None:
    """Each length has a plan of its own, with tensors in place of the lists."""
    rows = tf.TensorArray(tf.float32, 0, dynamic_size=True, element_shape=[]).unstack(graph.x)
    sums = tf.TensorArray(tf.float32, tf.shape(graph.x)[0], element_shape=[])

    def step(i: Any, total: Any, found: Any) -> Any:
        total += rows.read(i)
        return i + 1, total, found.write(i, total)

    end = tf.while_loop(lambda i, *_: i < tf.shape(graph.x)[0], step, [0, 0.0, sums])
    call = getattr(graph, way)([end[2].stack(), end[1]])
    for size in [3, 3, 3, *range(1, 20), *range(1, 20)]:
        value = np.arange(size, dtype=np.float32)
        _check(call(value), [np.cumsum(value), value.sum()])


@pytest.mark.parametrize("fetch", [lambda y: y, lambda y: [y], lambda y: (y, y)], ids=["single", "list", "duplicated"])
def test_python_scalars_as_feeds(graph, fetch) -> None:
    x = tf.placeholder(tf.float32, [])
    for value in (1.0, 2, np.float32(3), np.array(4.0, np.float32), np.float64(5), np.int32(6)):
        _check(graph.session.run(fetch(x + 1), {x: value}), fetch(np.float32(value + 1)))


@pytest.mark.parametrize("fetch", [lambda y: y, lambda y: [y], lambda y: (y, y)], ids=["single", "list", "duplicated"])
def test_ranks_that_change_with_each_run(graph, fetch) -> None:
    x = tf.placeholder(tf.float32)
    for value in ([1.0], 2.0, np.float32([3]), np.float32(4), [[5.0]], np.array(6, np.float32), [7.0]):
        found = np.asarray(value, np.float32) + 1
        _check(graph.session.run(fetch(x + 1), {x: value}), fetch(found[()]))


def test_several_feeds_in_any_order(graph) -> None:
    y = tf.placeholder(tf.float32, [None])
    difference = graph.x - y
    for _ in range(3):
        assert graph.session.run([difference], {graph.x: [3.0], y: [1.0]})[0] == 2
        assert graph.session.run([difference], {y: [1.0], graph.x: np.float32([5])})[0] == 4


def test_operation_fetched_with_tensors_gives_none(graph) -> None:
    a, b, _ = graph.tensors
    for value in ([1.0], np.float32([1]), np.float32([1, 2]), [1.0]):
        found = graph.session.run([a.op, a, b.op, b], {graph.x: value})
        assert found[0] is None
        assert found[2] is None
        _check(found[1], np.asarray(value, np.float32) + 1)


def test_fetching_what_was_fed(graph) -> None:
    a, _, _ = graph.tensors
    for value in ([1.0], np.float32([1]), np.float32([1, 2]), [1.0]):
        _check(graph.session.run((graph.x, a), {graph.x: value}), (np.float32(value), np.float32(value) + 1))


@pytest.mark.parametrize("kinds", [(dict, OrderedDict), (OrderedDict, dict), (dict, UserDict), (list, tuple)])
def test_equal_fetches_in_other_containers_keep_their_container(graph, kinds) -> None:
    a = graph.tensors[0]
    for kind in (*kinds, *kinds):
        fetches = kind([a]) if kind in (list, tuple) else kind({"a": a})
        assert type(graph.session.run(fetches, {graph.x: np.float32([1])})) is kind


def test_a_mapping_that_was_changed_is_read_again(graph) -> None:
    class Fetches(UserDict[str, Any]):
        __hash__ = object.__hash__

    a, b, _ = graph.tensors
    fetches = Fetches(k=a)
    feed = {graph.x: np.float32([1])}
    graph.session.run(fetches, feed)
    fetches["k"] = b
    assert graph.session.run(fetches, feed)["k"] == 10


def test_a_result_may_be_written_without_harm_to_others(graph) -> None:
    feed = np.float32([1, 2])
    for _ in range(3):
        copy, fed = graph.session.run([tf.identity(graph.x), graph.x], {graph.x: feed})
        copy[:] = 0
        fed[:] = 0
        assert feed.tolist() == [1, 2]


def test_a_session_gives_its_graph_as_a_message() -> None:
    with tf.Graph().as_default() as graph, tf.Session() as session:
        tf.add(1.0, 2.0, name="sum")
        assert session.graph_def == graph.as_graph_def()
        assert [node.name for node in session.graph_def.node if node.op == "AddV2"] == ["sum"]
        assert session.sess_str == b""
