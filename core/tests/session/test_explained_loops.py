"""Who runs loops and branches, and what `Session.explain` says about it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import timberframe as tf


@pytest.fixture(autouse=True)
def graph() -> Iterator[None]:
    with tf.Graph().as_default():
        yield


def explained(fetch: Any, feeds: Any) -> Any:
    with tf.Session() as session:
        session.run(fetch, feeds)
        (found,) = session.explain(fetch, feeds).loops
    return found


def growing(x: Any) -> Any:
    shapes = [tf.TensorShape([]), tf.TensorShape([None])]
    return tf.while_loop(lambda i, _: i < 3, lambda i, v: (i + 1, tf.concat([v, v], 0)), [0, x], shapes)[1]


def test_a_loop_of_constant_shapes_is_one_kernel() -> None:
    x = tf.placeholder(tf.float32, [2])
    found = explained(tf.while_loop(lambda i, _: i < 3, lambda i, v: (i + 1, v * 2.0), [0, x])[1], {x: [1, 2]})
    assert (found.op, found.driver, found.reason) == ("StatelessWhile", "kernel", "")


def test_the_executor_drives_a_loop_whose_variable_grows() -> None:
    x = tf.placeholder(tf.float32, [None])
    found = explained(growing(x), {x: [1, 2]})
    assert (found.driver, found.reason) == ("executor", "loop variable 1 changes from shape (2,) to (4,)")


def test_the_executor_drives_a_branch_whose_results_differ_in_shape() -> None:
    x, first = tf.placeholder(tf.float32, [4]), tf.placeholder(tf.bool, [])
    found = explained(tf.cond(first, lambda: x[:2], lambda: x), {x: np.ones(4), first: True})
    assert (found.driver, found.reason) == ("executor", "the branches give shapes [(2,)] and [(4,)]")


def test_the_executor_drives_a_loop_that_writes_a_variable() -> None:
    total = tf.Variable(0.0, use_resource=True)

    def body(i: Any) -> Any:
        with tf.control_dependencies([total.assign_add(1.0)]):
            return i + 1

    with tf.Session() as session:
        session.run(total.initializer)
        (found,) = session.explain(tf.while_loop(lambda i: i < 3, body, [0])).loops
    assert found.driver == "executor"
    assert "is for a variable's state" in found.reason


def test_loops_that_the_executor_must_drive_are_found_together() -> None:
    x, y = tf.placeholder(tf.float32, [None]), tf.placeholder(tf.float32, [None])
    grown = growing(x), growing(y)
    steady = tf.while_loop(lambda i, _: i < 3, lambda i, v: (i + 1, v * 2.0), [0, x])[1]
    with tf.Session() as session:
        results = session.run([*grown, steady, growing(grown[0])], {x: [1], y: [2]})
        drivers = [r.driver for r in session.explain([*grown, steady], {x: [1], y: [2]}).loops]
    assert [r.shape for r in results] == [(8,), (8,), (1,), (64,)]
    assert sorted(drivers) == ["executor", "executor", "kernel"]


def test_who_drives_a_loop_waits_for_shapes() -> None:
    x = tf.placeholder(tf.float32, [None])
    y = tf.while_loop(lambda i, _: i < 3, lambda i, v: (i + 1, v * 2.0), [0, x])[1]
    with tf.Session() as session:
        report = session.explain(y)
    assert [(r.driver, r.reason) for r in report.loops] == [("", "decided when shapes are known")]
    assert "(StatelessWhile): decided when shapes are known" in str(report)


def test_a_loop_in_a_loop_may_read_a_variable_of_the_outside() -> None:
    step = tf.Variable(2.0, use_resource=True)

    def inner(x: Any) -> Any:
        return tf.while_loop(lambda i, _: i < 2, lambda i, v: (i + 1, v + step), [0, x])[1]

    y = tf.while_loop(lambda i, _: i < 3, lambda i, v: (i + 1, inner(v)), [0, tf.constant(1.0)])[1]
    with tf.Session() as session:
        session.run(step.initializer)
        assert session.run(y) == 13
        (found,) = session.explain(y).loops
    assert found.driver == "kernel"


def test_a_session_runs_after_an_error_in_the_shapes_beside_a_loop_that_grows() -> None:
    x, size = tf.placeholder(tf.float32, [None]), tf.placeholder(tf.int32, [1])
    fetches = [growing(x), tf.reshape(tf.exp(x), size)]
    with tf.Session() as session:
        with pytest.raises(tf.errors.InvalidArgumentError, match="Reshape"):
            session.run(fetches, {x: [0, 0], size: [3]})
        grown, reshaped = session.run(fetches, {x: [0, 0], size: [2]})
    assert (grown.shape, reshaped.tolist()) == ((16,), [1, 1])
