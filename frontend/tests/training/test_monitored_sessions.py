"""Monitored sessions: how they are made ready, what ends them, lost ones."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import timberframe as tf

pytestmark = pytest.mark.usefixtures("graph")


class Recorder(tf.train.SessionRunHook):
    """Writes down what is called; `raises` maps a method's name to exceptions that its next calls raise."""

    def __init__(self, name: str = "", calls: list[str] | None = None, **raises: Any) -> None:
        self.name = name
        self.calls = [] if calls is None else calls
        self.raises = raises

    def _note(self, method: str) -> None:
        self.calls.append(self.name + method)
        if self.raises.get(method):
            raise self.raises[method].pop(0)

    def begin(self) -> None:
        self._note("begin")

    def after_create_session(self, session: Any, coord: Any) -> None:
        self._note("after_create_session")

    def before_run(self, run_context: Any) -> None:
        self._note("before_run")

    def after_run(self, run_context: Any, run_values: Any) -> None:
        self._note("after_run")

    def end(self, session: Any) -> None:
        self._note("end")


# What runs


def test_methods_of_hooks_are_called_in_order() -> None:
    calls: list[str] = []
    with tf.train.MonitoredSession(hooks=[Recorder("a.", calls), Recorder("b.", calls)]) as session:
        session.run(tf.train.get_global_step() or [])
    methods = ["begin", "after_create_session", "before_run", "after_run", "end"]
    assert calls == [f"{hook}.{method}" for method in methods for hook in "ab"]


def test_the_end_of_the_data_ends_the_block() -> None:
    with tf.train.MonitoredSession(hooks=[hook := Recorder()]):
        raise tf.errors.OutOfRangeError("the end")
    assert hook.calls[-1] == "end"


def test_another_error_leaves_the_block_without_the_end_of_hooks() -> None:
    with pytest.raises(ZeroDivisionError), tf.train.MonitoredSession(hooks=[hook := Recorder()]):
        raise ZeroDivisionError
    assert "end" not in hook.calls


@pytest.mark.parametrize("error", [tf.errors.AbortedError, tf.errors.UnavailableError])
def test_a_lost_session_is_replaced_and_the_run_repeated(step: Any, tmp_path: Path, error: Any) -> None:
    hook = Recorder()
    with tf.train.MonitoredTrainingSession(
        checkpoint_dir=str(tmp_path), save_checkpoint_steps=2, hooks=[hook]
    ) as session:
        found = [session.run(step) for _ in range(3)]
        hook.raises["before_run"] = [error("lost")]
        found.append(session.run(step))
    assert found == [1, 2, 3, 3]  # the third step was after the last checkpoint
    assert hook.calls.count("after_create_session") == 2


def test_a_session_that_does_not_recover_raises() -> None:
    hook = Recorder(before_run=[tf.errors.AbortedError("lost")])
    with pytest.raises(tf.errors.AbortedError), tf.train.SingularMonitoredSession(hooks=[hook]) as session:
        session.run([])


def test_a_singular_session_hands_out_its_session() -> None:
    with tf.train.SingularMonitoredSession() as session:
        assert isinstance(session.raw_session(), tf.Session)


def test_the_graph_is_final_while_the_session_lives(graph: Any) -> None:
    with tf.train.MonitoredSession():
        assert graph.finalized
    assert not graph.finalized


def test_a_closed_session_is_an_error_to_run() -> None:
    session = tf.train.MonitoredSession()
    session.close()
    assert session.should_stop()
    with pytest.raises(RuntimeError, match="closed"):
        session.run([])


def test_tensors_are_evaluated_in_a_monitored_session() -> None:
    x = tf.constant(3.0)
    with tf.train.MonitoredSession() as session:
        assert x.eval(session=session) == 3.0


def test_a_step_function_runs_with_and_without_hooks() -> None:
    x = tf.constant(3.0)

    def step_fn(step_context: Any) -> Any:
        return step_context.session.run(x) + step_context.run_with_hooks(x)

    with tf.train.MonitoredSession(hooks=[hook := Recorder()]) as session:
        assert session.run_step_fn(step_fn) == 6.0
    assert hook.calls.count("before_run") == 1


def test_a_step_function_ends_the_block() -> None:
    reached = ["the function"]
    with tf.train.MonitoredSession() as session:
        session.run_step_fn(lambda step_context: step_context.request_stop())
        reached.append("the end of the block")
    assert reached == ["the function"]
    assert session.should_stop()


def test_an_error_of_a_queue_runner_is_raised() -> None:
    queue = tf.FIFOQueue(2, tf.float32)
    wrong = tf.check_numerics(tf.log(tf.constant(-1.0)), "the numbers")
    tf.train.add_queue_runner(tf.train.QueueRunner(queue, [queue.enqueue(wrong)]))
    taken = queue.dequeue()

    def run() -> None:
        with tf.train.MonitoredSession() as session:
            session.run(taken)

    with pytest.raises(tf.errors.InvalidArgumentError, match="the numbers"):
        run()


def test_a_worker_gives_up_waiting_for_the_chief() -> None:
    tf.Variable(1.0)
    with pytest.raises(tf.errors.DeadlineExceededError, match="Variable"):
        tf.train.MonitoredTrainingSession(is_chief=False, max_wait_secs=0)


def test_a_worker_notices_soon_that_the_chief_has_made_the_model_ready() -> None:
    looks = iter([[b"v"], [b"v"], []])
    manager = tf.train.SessionManager(ready_op=tf.py_func(lambda: np.array(next(looks), object), [], tf.string))
    start = time.monotonic()
    manager.wait_for_session("", max_wait_secs=20).close()
    assert time.monotonic() - start < 10


# Scaffold and SessionManager


def test_a_scaffold_initializes_by_its_function() -> None:
    x = tf.Variable(1.0)
    double = x.assign(x * 2.0)
    scaffold = tf.train.Scaffold(init_fn=lambda scaffold, session: session.run(double))
    with tf.train.MonitoredTrainingSession(scaffold=scaffold) as session:
        assert session.run(x) == 2.0


def test_a_scaffold_wants_one_saver(graph: Any) -> None:
    tf.Variable(1.0)
    for _ in range(2):
        tf.add_to_collection(tf.GraphKeys.SAVERS, tf.train.Saver())
    with pytest.raises(RuntimeError, match=r"'savers' has 2 items; give tf\.train\.Scaffold saver="):
        tf.train.Scaffold().finalize()


def test_local_variables_and_tables_are_initialized() -> None:
    count = tf.Variable(3.0, collections=[tf.GraphKeys.LOCAL_VARIABLES])
    table = tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer(["a"], [7]), -1)
    found = table.lookup(tf.constant("a"))
    with tf.train.MonitoredSession() as session:
        assert session.run([count, found]) == [3.0, 7]


def test_a_model_that_is_not_ready_names_its_variables() -> None:
    x = tf.Variable(1.0, name="x")
    tf.Variable(1.0, name="y")
    scaffold = tf.train.Scaffold(init_op=x.initializer)
    with pytest.raises(RuntimeError, match="after init_op and init_fn these variables have no value: y"):
        tf.train.MonitoredTrainingSession(scaffold=scaffold)


def test_a_manager_without_anything_to_initialize_by_says_so() -> None:
    with pytest.raises(RuntimeError, match="neither init_op, init_fn nor local_init_op"):
        tf.train.SessionManager().prepare_session("")
