"""Supervisors: sessions that are ready, threads that write checkpoints and summaries, and how they stop."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import timberframe as tf

pytestmark = pytest.mark.usefixtures("graph")


def training() -> Any:
    """Returns the operation that raises a global step by one, and a summary."""
    step = tf.train.get_or_create_global_step()
    tf.summary.scalar("step", tf.cast(step, tf.float32))
    return tf.assign_add(step, 1)


def waits(done: Callable[[], bool]) -> None:
    end = time.monotonic() + 10
    while not done():
        assert time.monotonic() < end
        time.sleep(0.01)


def tags(supervisor: Any) -> set[str]:
    """Returns the tags of the summaries that are written until now."""
    supervisor.summary_writer.flush()
    (events,) = Path(supervisor.summary_writer.get_logdir()).glob("events*")
    return {v.tag for e in tf.train.summary_iterator(events) for v in e.summary.value}


def test_a_session_is_initialized_and_the_graph_final(graph: Any) -> None:
    x = tf.Variable(3.0)
    with tf.train.Supervisor().managed_session() as session:
        assert session.run(x) == 3.0
        assert graph.finalized


def test_a_session_goes_on_from_the_latest_checkpoint(tmp_path: Path) -> None:
    step = training()
    supervisor = tf.train.Supervisor(logdir=str(tmp_path), save_model_secs=0)
    with supervisor.managed_session() as session:
        session.run(step)
        supervisor.saver.save(session, supervisor.save_path, global_step=supervisor.global_step)
    with supervisor.managed_session() as session:
        assert session.run(step) == 2


def test_checkpoints_and_summaries_are_written_in_the_background(tmp_path: Path) -> None:
    step = training()
    supervisor = tf.train.Supervisor(logdir=str(tmp_path), save_model_secs=1, save_summaries_secs=1)
    with supervisor.managed_session() as session:
        session.run(step)
        waits(lambda: tf.train.latest_checkpoint(str(tmp_path)) is not None)
        waits(lambda: tags(supervisor) == {"step", "global_step/sec"})


def test_a_supervisor_that_was_stopped_in_the_block_ends_it_without_an_error(tmp_path: Path) -> None:
    step = training()
    supervisor = tf.train.Supervisor(logdir=str(tmp_path))
    with supervisor.managed_session() as session:
        session.run(step)
        supervisor.stop()
    (events,) = tmp_path.glob("events*")
    logs = [e.session_log.status for e in tf.train.summary_iterator(str(events)) if e.HasField("session_log")]
    assert logs.count(tf.SessionLog.STOP) == 1


def test_an_error_in_the_block_is_raised_and_stops_the_supervisor() -> None:
    supervisor = tf.train.Supervisor()
    with pytest.raises(ZeroDivisionError), supervisor.managed_session():
        raise ZeroDivisionError
    assert supervisor.should_stop()


def test_the_end_of_the_data_is_no_error() -> None:
    supervisor = tf.train.Supervisor()
    with supervisor.managed_session():
        raise tf.errors.OutOfRangeError("the end")
    assert supervisor.should_stop()


def test_queue_runners_feed_the_session_and_end_with_it() -> None:
    queue = tf.FIFOQueue(2, tf.float32)
    tf.train.add_queue_runner(tf.train.QueueRunner(queue, [queue.enqueue(1.0)]))
    taken = queue.dequeue()
    with tf.train.Supervisor().managed_session() as session:
        assert [session.run(taken) for _ in range(3)] == [1.0, 1.0, 1.0]
    assert not [t for t in threading.enumerate() if t.name.startswith("QueueRunnerThread")]


def test_a_loop_is_called_until_the_supervisor_stops() -> None:
    supervisor, calls = tf.train.Supervisor(), []

    def call(value: int) -> None:
        calls.append(value)
        if len(calls) == 3:
            supervisor.request_stop()

    supervisor.loop(0.001, call, args=(7,)).join(10)
    assert calls == [7, 7, 7]


def test_an_error_in_a_loop_is_raised_at_the_end() -> None:
    supervisor = tf.train.Supervisor()

    def train() -> None:
        with supervisor.managed_session():
            supervisor.loop(None, lambda: 1 // 0)
            supervisor.wait_for_stop()

    with pytest.raises(ZeroDivisionError):
        train()


def test_a_summary_of_a_run_is_written_with_its_step(tmp_path: Path) -> None:
    step = training()
    supervisor = tf.train.Supervisor(logdir=str(tmp_path), save_model_secs=0, save_summaries_secs=0)
    with supervisor.managed_session() as session:
        session.run(step)
        supervisor.summary_computed(session, session.run(supervisor.summary_op))
    (events,) = tmp_path.glob("events*")
    assert [(e.step, v.simple_value) for e in tf.train.summary_iterator(events) for v in e.summary.value] == [(1, 1.0)]


def test_a_summary_without_a_writer_is_an_error() -> None:
    supervisor = tf.train.Supervisor()
    with tf.Session(graph=tf.get_default_graph()) as session, pytest.raises(RuntimeError, match="logdir or"):
        supervisor.summary_computed(session, b"")


def test_a_train_loop_goes_on_after_a_lost_session(tmp_path: Path) -> None:
    step = training()
    supervisor = tf.train.Supervisor(logdir=str(tmp_path), save_model_secs=0, save_summaries_secs=0)
    found: list[int] = []

    def train_step(session: Any, last: int) -> None:
        found.append(session.run(step))
        if len(found) == 2:
            raise tf.errors.AbortedError("lost")
        if found[-1] == last:
            supervisor.request_stop()

    tf.train.basic_train_loop(supervisor, train_step, args=(3,))
    assert found == [1, 2, 1, 2, 3]
