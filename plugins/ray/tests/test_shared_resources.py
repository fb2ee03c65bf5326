"""Queues and accumulators with a shared_name on a worker: all sessions on it have the same."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

pytest.importorskip("ray", reason="ray is not installed: it has no wheel for this Python or system")

import timberframe as tf
from timberframe_ray import Cluster

CONFIG = tf.SessionConfig(plugins=["cpu"])
PS = "/job:ps/task:0"


@pytest.fixture
def sessions(cluster: Cluster) -> Iterator[tuple[tf.Session, tf.Session]]:
    graph = tf.get_default_graph()
    with tf.Session(cluster.target, graph, CONFIG) as first, tf.Session(cluster.target, graph, CONFIG) as second:
        yield first, second
    tf.Session.reset(cluster.target)


def in_background(work: Any) -> tuple[threading.Thread, list[Any]]:
    """Returns a thread that does some work, and where it leaves what the work gave or raised."""
    found: list[Any] = []

    def run() -> None:
        try:
            found.append(work())
        except Exception as e:
            found.append(e)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    return thread, found


@pytest.mark.parametrize(("dtype", "value"), [(tf.int64, 7), (tf.string, b"seven"), (tf.float32, 0.5)])
def test_one_session_takes_what_another_adds(sessions: Any, dtype: Any, value: Any) -> None:
    with tf.device(PS):
        queue = tf.FIFOQueue(5, dtype, shapes=[[]], shared_name=f"of {dtype.name}")
    add, take = queue.enqueue(value), queue.dequeue()
    for _ in range(3):
        sessions[0].run(add)
    assert sessions[1].run(queue.size()) == 3
    assert [sessions[1].run(take) for _ in range(3)] == [value] * 3


def test_a_queue_without_a_shared_name_is_its_sessions(sessions: Any) -> None:
    with tf.device(PS):
        queue = tf.FIFOQueue(5, tf.int32, shapes=[[]])
    sessions[0].run(queue.enqueue(1))
    assert [s.run(queue.size()) for s in sessions] == [1, 0]


def test_queues_of_containers_are_apart(sessions: Any, cluster: Cluster) -> None:
    sizes = []
    for container in ("one", "other"):
        with tf.container(container), tf.device(PS):
            queue = tf.FIFOQueue(5, tf.int32, shapes=[[]], shared_name="q")
        sizes.append(queue.size())
        if container == "one":
            sessions[0].run(queue.enqueue(1))
    assert sessions[1].run(sizes) == [1, 0]


def test_a_run_that_waits_holds_up_no_other(sessions: Any) -> None:
    with tf.device(PS):
        gradients = tf.ConditionalAccumulator(tf.float32, [100_000], shared_name="w:0/grad_accum")
    with tf.device("/job:worker/task:1"):
        add = gradients.apply_grad(tf.fill([100_000], 2.0) + 1.0)  # large: it goes by the object store
    take = gradients.take_grad(2) * 2.0
    sessions[0].run(add)
    thread, found = in_background(lambda: sessions[1].run(take))
    thread.join(0.5)
    assert thread.is_alive()
    sessions[0].run(add)
    thread.join(60)
    assert not isinstance(found[0], Exception)
    np.testing.assert_array_equal(found[0], np.full(100_000, 6, np.float32))


def test_a_time_limit_ends_the_waiting_in_the_worker(sessions: Any) -> None:
    with tf.device(PS):
        queue = tf.FIFOQueue(5, tf.int32, shapes=[[]], shared_name="limited")
    take = queue.dequeue()
    with pytest.raises(tf.errors.DeadlineExceededError):
        sessions[0].run(take, options=tf.RunOptions(timeout_in_ms=300))
    sessions[1].run(queue.enqueue(3))
    assert sessions[1].run(take) == 3  # nobody else is waiting for it


def test_the_end_of_a_session_ends_its_waiting(sessions: Any, cluster: Cluster) -> None:
    with tf.device(PS):
        queue = tf.FIFOQueue(5, tf.int32, shapes=[[]], shared_name="closed")
    take = queue.dequeue()
    thread, found = in_background(lambda: sessions[0].run(take))
    thread.join(0.5)
    sessions[0].close()
    thread.join(60)
    assert isinstance(found[0], tf.errors.CancelledError)
    sessions[1].run(queue.enqueue(3))
    assert sessions[1].run(take) == 3


def test_a_wrong_element_is_an_error_with_its_node(sessions: Any) -> None:
    with tf.device(PS):
        gradients = tf.ConditionalAccumulator(tf.float32, [2], shared_name="two")
    x = tf.placeholder(tf.float32)
    add = gradients.apply_grad(x, name="adds")
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"'adds': the gradient has shape \(3,\)") as error:
        sessions[0].run(add, {x: [1.0, 2.0, 3.0]})
    assert error.value.node == "adds"


def test_a_reader_of_files_refuses_a_queue_of_a_worker(sessions: Any) -> None:
    with tf.device(PS):
        names = tf.FIFOQueue(5, tf.string, shapes=[[]], shared_name="names")
    _, value = tf.TextLineReader().read(names)
    with pytest.raises(tf.errors.FailedPreconditionError, match=r"is in /job:ps/.* has a shared_name"):
        sessions[0].run(value)


def test_the_end_of_the_worker_ends_the_waiting(sessions: Any, cluster: Cluster) -> None:
    with tf.device(PS):
        take = tf.FIFOQueue(5, tf.int32, shapes=[[]], shared_name="lost").dequeue()
    thread, found = in_background(lambda: sessions[0].run(take))
    thread.join(0.5)
    os.kill(cluster.process("ps", 0), signal.SIGKILL)
    thread.join(60)
    assert isinstance(found[0], tf.errors.UnavailableError)
