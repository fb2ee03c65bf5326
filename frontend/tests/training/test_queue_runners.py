"""Queue runners and coordinators: who fills a queue, and how it ends."""

from __future__ import annotations

import threading
import time
from typing import Any

import pytest

import timberframe as tf


def counted(limit: int | None = None) -> tuple[tf.FIFOQueue, tf.train.QueueRunner]:
    """Returns a queue that a runner of two threads fills with 0, 1, ..., up to a limit."""
    queue = tf.FIFOQueue(3, [tf.int64], shapes=[[]])
    lock, count = threading.Lock(), iter(range(limit) if limit is not None else iter(int, 1))

    def next_number() -> Any:
        with lock:
            return next(count)

    number = tf.py_func(lambda: _int64(next_number()), [], tf.int64)
    runner = tf.train.QueueRunner(queue, [queue.enqueue(number)] * 2)
    tf.train.add_queue_runner(runner)
    return queue, runner


def _int64(x: int) -> Any:
    return tf.int64.as_numpy_dtype(x)


def ended(threads: list[threading.Thread]) -> bool:
    for thread in threads:
        thread.join(20)
    return not any(t.is_alive() for t in threads)


def test_runner_fills_the_queue_until_its_source_ends(session: tf.Session) -> None:
    queue, _ = counted(7)
    take, rest = queue.dequeue_many(7), queue.dequeue()
    tf.train.start_queue_runners(session)
    assert sorted(session.run(take).tolist()) == list(range(7))
    with pytest.raises(tf.errors.OutOfRangeError):
        session.run(rest)


def test_closed_session_ends_the_threads() -> None:
    with tf.Graph().as_default() as graph, tf.Session(graph=graph) as session:
        queue, _ = counted()
        threads = tf.train.start_queue_runners(session)
        session.run(queue.dequeue())
    assert ended(threads)


def test_coordinator_stops_the_threads_that_wait_for_room(session: tf.Session) -> None:
    queue, _ = counted()
    coordinator = tf.train.Coordinator()
    threads = tf.train.start_queue_runners(session, coordinator)
    session.run(queue.dequeue())
    coordinator.request_stop()
    coordinator.join(threads)
    assert ended(threads)


def test_error_in_a_thread_is_raised_where_it_is_joined(session: tf.Session) -> None:
    queue = tf.FIFOQueue(3, [tf.int64], shapes=[[]])
    number = tf.py_func(lambda: 1 / 0, [], tf.int64)
    tf.train.add_queue_runner(tf.train.QueueRunner(queue, [queue.enqueue(number)]))
    coordinator = tf.train.Coordinator()
    threads = tf.train.start_queue_runners(session, coordinator)
    with pytest.raises(tf.errors.UnknownError, match="ZeroDivisionError"):
        coordinator.join(threads)


def test_error_without_a_coordinator_is_kept(session: tf.Session) -> None:
    queue = tf.FIFOQueue(3, [tf.int64], shapes=[[]])
    runner = tf.train.QueueRunner(queue, [queue.enqueue(tf.py_func(lambda: 1 / 0, [], tf.int64))])
    assert ended(runner.create_threads(session, start=True))
    assert [type(e) for e in runner.exceptions_raised] == [tf.errors.UnknownError]


def test_threads_of_a_session_are_made_once(session: tf.Session) -> None:
    _, runner = counted()
    assert len(runner.create_threads(session, daemon=True, start=True)) == 2
    assert runner.create_threads(session) == []


def test_end_of_data_is_no_error_of_a_coordinator() -> None:
    coordinator = tf.train.Coordinator()
    with coordinator.stop_on_exception():
        raise tf.errors.OutOfRangeError("no more data")
    coordinator.join()
    assert coordinator.joined


def test_first_error_reported_to_a_coordinator_counts() -> None:
    coordinator = tf.train.Coordinator()
    coordinator.request_stop(ValueError("first"))
    coordinator.request_stop(KeyError("second"))
    with pytest.raises(ValueError, match="first"):
        coordinator.join()


def test_threads_that_go_on_are_named() -> None:
    coordinator, end = tf.train.Coordinator(), threading.Event()
    thread = threading.Thread(target=end.wait, name="busy")
    thread.start()
    coordinator.request_stop()
    with pytest.raises(tf.errors.FailedPreconditionError, match="threads busy go on"):
        coordinator.join([thread], stop_grace_period_secs=0.1)
    end.set()


def test_cleared_coordinator_can_be_used_again() -> None:
    coordinator = tf.train.Coordinator()
    coordinator.request_stop(ValueError("old"))
    coordinator.clear_stop()
    assert not coordinator.should_stop()
    coordinator.join([])


def test_waiting_for_a_stop_ends_with_it() -> None:
    coordinator = tf.train.Coordinator()
    threading.Timer(0.1, coordinator.request_stop).start()
    start = time.monotonic()
    assert coordinator.wait_for_stop(20)
    assert time.monotonic() - start < 10
