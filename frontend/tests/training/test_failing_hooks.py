"""A hook that raises in one of its methods: its error arrives, threads end, and the training can go on."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest

import timberframe as tf

STEPS = 3
SAVED = {"begin": None, "after_create_session": 0, "before_run": 0, "after_run": 1, "end": STEPS}
"""The step of the latest checkpoint, by the method that raises."""


class FailingHook(tf.train.SessionRunHook):
    """Raises in the method of this name."""

    def __init__(self, method: str) -> None:
        def fail(*_: Any) -> None:
            raise ValueError(f"broken in {method}")

        setattr(self, method, fail)


def train(folder: Path, *hooks: tf.train.SessionRunHook) -> list[int]:
    """Trains on elements 0, 1, ... to the last step with a checkpoint for each; gives the elements of its steps."""
    taken = []
    with tf.Graph().as_default():
        step = tf.train.get_or_create_global_step()
        count = tf.assign_add(step, 1)
        numbers = tf.data.Dataset.range(100).map(lambda x: x, num_parallel_calls=2).prefetch(4)
        element = numbers.make_one_shot_iterator().get_next()
        with tf.train.MonitoredTrainingSession(
            checkpoint_dir=str(folder), hooks=[tf.train.StopAtStepHook(last_step=STEPS), *hooks],
            save_checkpoint_steps=1, log_step_count_steps=None,
        ) as session:  # fmt: skip
            while not session.should_stop():
                taken.append(int(session.run([count, element])[1]))
    return taken


@pytest.mark.parametrize("method", SAVED)
def test_the_error_arrives_and_the_training_goes_on_after_it(tmp_path: Path, method: str) -> None:
    train(tmp_path / "other")  # what stays open for the process, such as writers of summaries, is open now
    (tmp_path / "folder").mkdir()
    before = set(threading.enumerate())
    with pytest.raises(ValueError, match=f"broken in {method}") as caught:
        train(tmp_path / "folder", FailingHook(method))
    assert caught.type is ValueError
    for thread in set(threading.enumerate()) - before:
        if not thread.daemon:
            thread.join(30)
            assert not thread.is_alive(), thread.name
    latest = tf.train.latest_checkpoint(str(tmp_path / "folder"))
    saved = SAVED[method]
    assert latest == (None if saved is None else str(tmp_path / "folder" / f"model.ckpt-{saved}"))
    first = saved or 0
    assert train(tmp_path / "folder") == list(range(first, max(STEPS, first + 1)))  # StopAtStepHook looks after a step


def test_a_hook_that_returns_a_tensor_is_named() -> None:
    class Hook(tf.train.SessionRunHook):
        def before_run(self, run_context: Any) -> Any:
            return x

    with tf.Graph().as_default():
        x = tf.constant(1.0)
        with (
            tf.train.MonitoredSession(hooks=[Hook()]) as session,
            pytest.raises(TypeError, match=r"Hook.before_run: returned .*; a SessionRunArgs or None is required"),
        ):
            session.run(x)
