"""Hooks of monitored sessions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import timberframe as tf

pytestmark = pytest.mark.usefixtures("graph")


def test_hooks_run_tensors_and_see_their_values() -> None:
    x = tf.placeholder(tf.float32, [])
    y = x * 2.0

    class Hook(tf.train.SessionRunHook):
        def before_run(self, run_context: Any) -> Any:
            return tf.train.SessionRunArgs({"y": y})

        def after_run(self, run_context: Any, run_values: Any) -> None:
            self.found = run_values.results

    hook = Hook()
    with tf.train.MonitoredSession(hooks=[hook]) as session:
        assert session.run(x, {x: 3.0}) == 3.0
    assert hook.found == {"y": 6.0}


def test_two_hooks_that_feed_one_tensor_are_an_error() -> None:
    x = tf.placeholder(tf.float32, [])
    hooks = [tf.train.FeedFnHook(lambda: {x: 1.0}), tf.train.FeedFnHook(lambda: {x: 2.0})]
    with (
        pytest.raises(RuntimeError, match=r"'Placeholder:0' is fed by FeedFnHook"),
        tf.train.MonitoredSession(hooks=hooks) as session,
    ):
        session.run(x)


def test_a_hook_feeds() -> None:
    x = tf.placeholder(tf.float32, [])
    with tf.train.MonitoredSession(hooks=[tf.train.FeedFnHook(lambda: {x: 5.0})]) as session:
        assert session.run(x) == 5.0


def test_a_run_after_a_stop_is_an_error(step: Any) -> None:
    with tf.train.MonitoredSession(hooks=[tf.train.StopAtStepHook(last_step=1)]) as session:
        session.run(step)
        with pytest.raises(RuntimeError, match="asked to stop"):
            session.run(step)


@pytest.mark.parametrize(("arguments", "steps"), [({"last_step": 5}, 5), ({"num_steps": 3}, 3)])
def test_training_stops_at_a_step(step: Any, arguments: Any, steps: int) -> None:
    count = 0
    with tf.train.MonitoredSession(hooks=[tf.train.StopAtStepHook(**arguments)]) as session:
        while not session.should_stop():
            session.run(step)
            count += 1
    assert count == steps


def test_a_loss_that_is_no_number_is_an_error() -> None:
    loss = tf.log(tf.constant(-1.0))
    with (
        pytest.raises(tf.train.NanLossDuringTrainingError),
        tf.train.MonitoredSession(hooks=[tf.train.NanTensorHook(loss)]) as session,
    ):
        session.run(loss)


def test_a_loss_that_is_no_number_stops_the_training() -> None:
    loss = tf.log(tf.constant(-1.0))
    hook = tf.train.NanTensorHook(loss, fail_on_nan_loss=False)
    with tf.train.MonitoredSession(hooks=[hook]) as session:
        session.run(loss)
        assert session.should_stop()


def test_final_values_are_those_of_the_end(step: Any) -> None:
    hook = tf.train.FinalOpsHook({"step": tf.train.get_global_step()})
    with tf.train.MonitoredSession(hooks=[hook]) as session:
        session.run(step)
        session.run(step)
    assert hook.final_ops_values == {"step": 2}


def test_tensors_are_logged_every_second_run(caplog: pytest.LogCaptureFixture) -> None:
    x = tf.placeholder(tf.float32, [])
    hook = tf.train.LoggingTensorHook({"x": x}, every_n_iter=2, formatter=lambda values: f"x is {values['x']}")
    with caplog.at_level("INFO", "timberframe"), tf.train.MonitoredSession(hooks=[hook]) as session:
        for i in range(4):
            session.run(x, {x: i})
    assert [r.message for r in caplog.records if r.message.startswith("x is")] == ["x is 0.0", "x is 2.0"]


def test_a_tensor_is_logged_by_the_name_of_its_operation(caplog: pytest.LogCaptureFixture) -> None:
    tf.identity(3.0, name="three")
    hook = tf.train.LoggingTensorHook({"x": "three"}, every_n_iter=1)
    with caplog.at_level("INFO", "timberframe"), tf.train.MonitoredSession(hooks=[hook]) as session:
        session.run([])
    assert [r.message for r in caplog.records] == ["x = 3.0"]


def test_an_operation_of_several_outputs_cannot_be_logged() -> None:
    tf.split(tf.zeros([4]), 2, name="parts")
    with pytest.raises(ValueError, match="operation 'parts' has 2 outputs; name one, such as 'parts:0'"):
        tf.train.MonitoredSession(hooks=[tf.train.LoggingTensorHook(["parts"], every_n_iter=1)])


def test_a_hook_that_gets_no_period_is_an_error() -> None:
    with pytest.raises(ValueError, match="neither of every_n_iter and every_n_secs given; exactly one is required"):
        tf.train.LoggingTensorHook(["x"])


def test_a_training_without_global_step_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match=r"has no global step; tf.train.get_or_create_global_step\(\) makes one"):
        tf.train.MonitoredTrainingSession(checkpoint_dir=str(tmp_path))


def test_a_timeline_is_written_every_second_step(step: Any, tmp_path: Path) -> None:
    with tf.train.MonitoredSession(hooks=[tf.train.ProfilerHook(save_steps=2, output_dir=str(tmp_path))]) as session:
        for _ in range(5):
            session.run(step)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["timeline-2.json", "timeline-4.json"]


def test_summaries_and_speed_are_written(step: Any, tmp_path: Path) -> None:
    tf.summary.scalar("loss", tf.cast(tf.train.get_global_step(), tf.float32))
    with tf.train.MonitoredTrainingSession(
        checkpoint_dir=str(tmp_path), save_summaries_steps=2, log_step_count_steps=3
    ) as session:
        for _ in range(5):
            session.run(step)
    tf.summary.FileWriterCache.clear()
    (events,) = tmp_path.glob("events*")
    found = [(e.step, v.tag) for e in tf.train.summary_iterator(events) for v in e.summary.value]
    assert found == [(1, "loss"), (3, "loss"), (4, "global_step/sec"), (5, "loss")]
