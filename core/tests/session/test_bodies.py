"""Bodies of branches and loops that use what the graph around them holds."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

import timberframe as tf

Build = Callable[[Callable[[], Any]], Any]


@pytest.fixture
def session() -> Iterator[tf.Session]:
    with tf.Graph().as_default() as graph, tf.Session(graph=graph) as session:
        yield session


def counter(session: tf.Session) -> tf.Variable:
    variable = tf.Variable(0.0)
    session.run(variable.initializer)
    return variable


def in_branch(body: Callable[[], Any]) -> Any:
    return tf.cond(tf.placeholder_with_default(True, []), body, lambda: 0.0)


def in_loop(body: Callable[[], Any]) -> Any:
    return tf.while_loop(lambda i, _: i < 3, lambda i, _: (i + 1, body()), [0, 0.0])[1]


def in_map(body: Callable[[], Any]) -> Any:
    return tf.map_fn(lambda _: body(), tf.constant([1.0, 2.0]))[0]


def in_nested_bodies(body: Callable[[], Any]) -> Any:
    return in_branch(lambda: in_loop(lambda: in_branch(body)))


@pytest.mark.parametrize("build", [in_branch, in_loop, in_map, in_nested_bodies])
def test_body_waits_for_an_operation_outside(session: tf.Session, build: Build) -> None:
    v = counter(session)
    assign = v.assign(5.0, read_value=False)

    def body() -> Any:
        with tf.control_dependencies([assign]):
            return v.read_value()

    assert session.run(build(body)) == 5


def test_body_waits_for_a_tensor_outside(session: tf.Session) -> None:
    v = counter(session)
    assigned = v.assign_add(1.0)

    def body() -> Any:
        with tf.control_dependencies([assigned]):
            return tf.constant(2.0)

    assert session.run(in_branch(body)) == 2
    assert session.run(v) == 1


def test_loop_condition_waits_for_an_operation_outside(session: tf.Session) -> None:
    v = counter(session)
    assign = v.assign(2.0, read_value=False)

    def more(i: Any) -> Any:
        with tf.control_dependencies([assign]):
            return i < v.read_value()

    assert session.run(tf.while_loop(more, lambda i: i + 1.0, [0.0])) == 2


def test_group_in_a_branch_of_operations_outside_runs_them(session: tf.Session) -> None:
    v = counter(session)
    assign = v.assign(7.0, read_value=False)
    session.run(tf.cond(tf.placeholder_with_default(True, []), lambda: tf.group(assign), lambda: tf.no_op()))
    assert session.run(v) == 7


def test_body_refuses_to_wait_for_another_graph() -> None:
    with tf.Graph().as_default():
        stranger = tf.no_op()

    def body() -> Any:
        with tf.control_dependencies([stranger]):
            return tf.constant(1.0)

    with tf.Graph().as_default(), pytest.raises(tf.errors.InvalidArgumentError, match="belongs to another graph"):
        in_branch(body)
