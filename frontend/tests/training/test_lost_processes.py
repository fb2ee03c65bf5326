"""Trainings on devices of another process, which is killed."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import timberframe as tf
from timberframe_core.runtime.devices import devices_for
from timberframe_sdk import register_target
from timberframe_sdk.testing import process_target

register_target("process", process_target)
TARGET = "process:1"


@pytest.fixture(autouse=True)
def worker() -> Iterator[Any]:
    if not any(d.type == "CPU" for d in devices_for(tf.SessionConfig())):
        pytest.skip("the CPU's plugin is not installed")
    with tf.Graph().as_default():
        yield process_target.workers_of("1")
    process_target.workers_of("1").close()


class Kills(tf.train.SessionRunHook):
    """Kills the process before the fifth run."""

    runs = 0

    def before_run(self, run_context: Any) -> None:
        self.runs += 1
        if self.runs == 5:
            process = process_target.workers_of("1").processes[0]
            assert process is not None
            process.send_signal(signal.SIGKILL)
            process.wait()


@pytest.mark.slow
def test_training_goes_on_after_the_process_of_its_device_was_killed(tmp_path: Path) -> None:
    with tf.device("/job:worker/device:CPU:0"):
        total = tf.get_variable("total", [], initializer=tf.zeros_initializer())
        step = tf.train.get_or_create_global_step()
        with tf.control_dependencies([total.assign_add(tf.cast(step, tf.float32))]):
            train_op = step.assign_add(1)
    hooks = [tf.train.StopAtStepHook(last_step=8), Kills()]
    with tf.train.MonitoredTrainingSession(
        TARGET, checkpoint_dir=str(tmp_path), save_checkpoint_steps=2, hooks=hooks
    ) as session:
        while not session.should_stop():
            session.run(train_op)
    assert tf.train.load_variable(str(tmp_path), "global_step") == 8
    assert hooks[1].runs > 8
    assert tf.train.load_variable(str(tmp_path), "total") == sum(range(8))
