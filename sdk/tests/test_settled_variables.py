"""Runs with variables that stay as they are for long: they share a lease, and see every change at once."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import timberframe as tf
from timberframe_sdk.transaction import UNCHANGED_RUNS

MANY = 2 * UNCHANGED_RUNS
X = np.float32([1, 2])


@pytest.fixture(params=["/device:CPU:0", "/device:NUMPY:0", "/device:ASYNC:0"])
def session(request: pytest.FixtureRequest) -> Iterator[tf.Session]:
    with tf.Graph().as_default(), tf.device(request.param), tf.Session() as made:
        yield made


def settled(session: Any, fetches: Any, feeds: Any) -> Callable[[], Any]:
    """Returns a call that ran so often that its runs share a lease."""
    call = session.make_callable(fetches, list(feeds))
    for _ in range(MANY):
        call(*feeds.values())
    return lambda: call(*feeds.values())


def product(session: Any) -> tuple[Any, Any, dict[Any, Any]]:
    v = tf.get_variable("v", initializer=np.float32([3, 4]), use_resource=True)
    x = tf.placeholder(tf.float32, [2])
    session.run(v.initializer)
    return v, x * v, {x: X}


def test_an_update_is_seen_by_the_next_run(session: Any) -> None:
    v, y, feeds = product(session)
    call, update = settled(session, y, feeds), v.assign_add([1, 1])
    for i in range(5):
        assert call().tolist() == [3 + i, 2 * (4 + i)]
        session.run(update)


def test_a_loaded_value_is_seen_by_the_next_run(session: Any) -> None:
    v, y, feeds = product(session)
    call = settled(session, y, feeds)
    v.load([5, 6], session)
    assert call().tolist() == [5, 12]


def test_results_do_not_change_with_the_variable(session: Any) -> None:
    v, y, feeds = product(session)
    call = settled(session, [v.read_value(), y], feeds)
    before = call()
    session.run(v.assign([0, 0]))
    assert before[0].tolist() == [3, 4]
    assert before[1].tolist() == [3, 8]
    assert call()[0].tolist() == [0, 0]


def test_other_feeds_take_the_variable_too(session: Any) -> None:
    _, y, feeds = product(session)
    settled(session, y, feeds)
    (x,) = feeds
    assert session.run(y, {x: [10, 10]}).tolist() == [30, 40]
    assert session.run(y, {x: np.float32([0, 1, 0, 1])[::2]}).tolist() == [0, 0]


def test_a_variable_may_get_another_shape() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        v = tf.get_variable("v", initializer=np.float32([3, 4]), use_resource=True, validate_shape=False)
        x = tf.placeholder(tf.float32, [2])
        session.run(v.initializer)
        call = settled(session, x * v, {x: X})
        session.run(tf.raw_ops.AssignVariableOp(resource=v.handle, value=np.float32([[1, 1], [2, 2]])))
        assert call().tolist() == [[1, 2], [2, 4]]


def test_a_closed_session_runs_no_more(session: Any) -> None:
    _, y, feeds = product(session)
    call = settled(session, y, feeds)
    session.close()
    with pytest.raises(RuntimeError, match="closed"):
        call()


def test_a_variable_without_a_value_is_an_error_again(session: Any) -> None:
    v, y, feeds = product(session)
    call = settled(session, y, feeds)
    session.run(tf.raw_ops.DestroyResourceOp(resource=v.handle))
    with pytest.raises(tf.errors.FailedPreconditionError, match="no value"):
        call()


@pytest.mark.parametrize("session", ["/device:CPU:0", "/device:ASYNC:0"], indirect=True)
def test_a_run_that_fails_changes_nothing(session: Any) -> None:
    v = tf.get_variable("v", initializer=np.float32([3, 4]), use_resource=True)
    i = tf.placeholder(tf.int32, [2])
    session.run(v.initializer)
    y = tf.gather(v * 1.0, i)
    settled(session, y, {i: np.int32([0, 1])})
    for _ in range(3):
        with pytest.raises(tf.errors.InvalidArgumentError, match="Gather"):
            session.run(y, {i: np.int32([0, 7])})
        assert session.run(y, {i: np.int32([1, 0])}).tolist() == [4, 3]
    session.run(v.assign([5, 6]))
    assert session.run(y, {i: np.int32([1, 0])}).tolist() == [6, 5]


def test_packed_weights_follow_the_variable() -> None:
    rng = np.random.default_rng(0)
    first, second = (rng.standard_normal((300, 200), np.float32) for _ in range(2))
    with tf.Graph().as_default(), tf.device("/device:CPU:0"), tf.Session() as session:
        v = tf.get_variable("v", initializer=first, use_resource=True)
        x = tf.placeholder(tf.float32, [3, 300])
        session.run(v.initializer)
        given = rng.standard_normal((3, 300), np.float32)
        call = settled(session, tf.matmul(x, v), {x: given})
        v.load(second, session)
        np.testing.assert_allclose(call(), given @ second, rtol=1e-4, atol=1e-4)


def test_runs_never_see_half_of_an_update(session: Any) -> None:
    v = tf.get_variable("v", initializer=np.zeros(5000, np.float32), use_resource=True)
    x = tf.placeholder(tf.float32, [])
    session.run(v.initializer)
    call, update = settled(session, v + x, {x: np.float32(0)}), v.assign_add(np.ones(5000, np.float32))
    torn, last = [], [0.0]

    def read() -> None:
        for _ in range(100):
            found = call()
            if found[0] < last[0] or found.min() != found.max():
                torn.append(found)

    readers = [threading.Thread(target=read) for _ in range(2)]
    for thread in readers:
        thread.start()
    while any(thread.is_alive() for thread in readers):
        session.run(update)
    assert torn == []
    assert call()[0] == session.run(v)[0]
