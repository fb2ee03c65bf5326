"""Functions within functions, and structures within structures, deeper than Python's stack has room for by itself."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import timberframe as tf
from timberframe_core import recursion


@pytest.fixture
def session() -> Iterator[tf.Session]:
    """A session; when it is closed the recursion limit is what it was."""
    before = sys.getrecursionlimit()
    with tf.Graph().as_default() as graph, tf.Session(graph=graph) as session:
        yield session
    assert sys.getrecursionlimit() == before


def nested_loops(depth: int, x: Any) -> Any:
    if depth == 0:
        return x + 1.0
    return tf.while_loop(lambda i, _: i < 1, lambda i, y: (i + 1, nested_loops(depth - 1, y)), [0, x])[1]


def nested_branches(depth: int, x: Any) -> Any:
    return tf.cond(x < 1.0, lambda: nested_branches(depth - 1, x), lambda: x) if depth else x + 1.0


BUILD = pytest.mark.parametrize("build", [nested_loops, nested_branches])
Build = Callable[[int, Any], Any]


@BUILD
def test_200_bodies_within_each_other_run(session: tf.Session, build: Build) -> None:
    x = tf.placeholder(tf.float32, [])
    y = build(200, x)
    assert [session.run(y, {x: value}) for value in (0.0, 0.5)] == [1, 1.5]


@BUILD
def test_bodies_within_each_other_can_be_explained(session: tf.Session, build: Build) -> None:
    assert "While" in str(session.explain(build(150, tf.placeholder(tf.float32, [])))) or build is nested_branches


@BUILD
def test_bodies_within_each_other_can_be_exported_and_imported(session: tf.Session, build: Build) -> None:
    x = tf.placeholder(tf.float32, [], name="x")
    tf.identity(build(150, x), name="y")
    with tf.Graph().as_default() as graph, tf.Session(graph=graph) as other:
        tf.import_graph_def(session.graph.as_graph_def(), name="")
        assert other.run("y:0", {"x:0": 0.0}) == 1


@pytest.mark.slow
def test_gradient_of_bodies_within_each_other(session: tf.Session) -> None:
    x = tf.placeholder(tf.float32, [])
    (slope,) = tf.gradients(nested_branches(60, x) * 2.0, x)
    assert session.run(slope, {x: 0.0}) == 2


@pytest.mark.slow
@BUILD
def test_more_bodies_within_each_other_than_can_be_are_refused(session: tf.Session, build: Build) -> None:
    limit = recursion.MAX_NESTING
    words = rf"function '\w+': bodies are nested {limit + 1} deep; at most {limit} can be"
    with pytest.raises(tf.errors.ResourceExhaustedError, match=words):
        build(limit + 1, tf.placeholder(tf.float32, []))


def test_a_body_that_never_ends_is_the_users_own_recursion(session: tf.Session) -> None:
    def endless(x: Any) -> Any:
        return endless(x)

    with pytest.raises(RecursionError):
        tf.cond(tf.constant(True), lambda: endless(1.0), lambda: 1.0)


def nested_list(depth: int, item: Any) -> Any:
    for _ in range(depth):
        item = [item]
    return item


def test_fetches_nested_too_deep_are_refused(session: tf.Session) -> None:
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"fetches are nested deeper than the recursion limit of"):
        session.run(nested_list(3000, tf.constant(1.0)))


def test_fetches_that_contain_themselves_are_refused(session: tf.Session) -> None:
    fetches: list[Any] = []
    fetches.append(fetches)
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"fetches are nested deeper"):
        session.run(fetches)


def test_fetches_nested_as_deep_as_python_allows(session: tf.Session) -> None:
    found = session.run(nested_list(100, tf.constant(1.0)))
    for _ in range(100):
        (found,) = found
    assert found == 1


@pytest.mark.parametrize(
    "use",
    [
        lambda deep: tf.constant(deep),
        lambda deep: tf.nest.flatten(deep),
        lambda deep: tf.nest.map_structure(lambda x: x, deep),
        lambda deep: tf.nest.assert_same_structure(deep, deep),
        lambda deep: tf.while_loop(lambda x: x[0] < 1, lambda x: [x], [deep]),
        lambda deep: tf.group(deep),
        lambda deep: tf.zeros(deep),
        lambda deep: tf.convert_to_tensor(nested_list(3000, tf.constant(1.0))),
    ],
)
def test_values_nested_too_deep_are_refused(session: tf.Session, use: Callable[[Any], Any]) -> None:
    with pytest.raises(tf.errors.InvalidArgumentError):
        use(nested_list(3000, 1.0))


def test_feed_nested_too_deep_is_refused(session: tf.Session) -> None:
    x = tf.placeholder(tf.float32)
    with pytest.raises(tf.errors.InvalidArgumentError):
        session.run(x, {x: nested_list(3000, 1.0)})
