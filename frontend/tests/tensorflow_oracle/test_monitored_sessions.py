"""Monitored sessions call hooks and write checkpoints and summaries as TensorFlow's do."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import timberframe

DATA = np.random.default_rng(0).normal(size=(16, 3)).astype(np.float32)


def recorder(tf: Any, calls: list[Any]) -> Any:
    """Returns a hook that writes down what is called, with the global step."""

    class Recorder(tf.train.SessionRunHook):  # type: ignore[misc]  # of either library
        def begin(self) -> None:
            calls.append("begin")
            self.step = tf.train.get_global_step()

        def after_create_session(self, session: Any, coord: Any) -> None:
            calls.append(("after_create_session", int(session.run(self.step)), coord.should_stop()))

        def before_run(self, run_context: Any) -> Any:
            calls.append(("before_run", run_context.stop_requested))
            return tf.train.SessionRunArgs(fetches={"a": tf_constant, "b": []})

        def after_run(self, run_context: Any, run_values: Any) -> None:
            step = int(run_context.session.run(self.step))
            calls.append(("after_run", step, sorted(run_values.results), float(run_values.results["a"])))

        def end(self, session: Any) -> None:
            calls.append(("end", int(session.run(self.step))))

    tf_constant = tf.constant(2.0)
    return Recorder()


def train(tf: Any, folder: Path, last: int, calls: list[Any], **settings: Any) -> list[float]:
    """Trains a regression from fixed weights; returns the losses."""
    losses = []
    with tf.Graph().as_default():
        x = tf.placeholder(tf.float32, [None, 3], name="x")
        weights = tf.get_variable("weights", initializer=np.full((3, 1), 0.5, np.float32))
        loss = tf.reduce_mean(tf.square(tf.matmul(x, weights) - tf.reduce_sum(x, 1, keepdims=True)))
        tf.summary.scalar("loss", loss)
        step = tf.train.get_or_create_global_step()
        train_op = tf.train.GradientDescentOptimizer(0.1).minimize(loss, step)
        hooks = [tf.train.StopAtStepHook(last_step=last), recorder(tf, calls)]
        with tf.train.MonitoredTrainingSession(checkpoint_dir=str(folder), hooks=hooks, **settings) as session:
            while not session.should_stop():
                losses.append(float(session.run([loss, train_op], {x: DATA})[0]))
    return losses


def both(tensorflow: Any, folder: Path, work: Callable[[Any, Path], Any]) -> tuple[Any, Any]:
    """Returns what a function of library and folder returns for TensorFlow and for us."""
    return work(tensorflow, folder / "theirs"), work(timberframe, folder / "ours")


def test_hooks_are_called_in_the_same_sequence(tensorflow: Any, tmp_path: Path) -> None:
    def work(tf: Any, folder: Path) -> list[Any]:
        calls: list[Any] = []
        train(tf, folder, 4, calls, save_checkpoint_steps=2)
        train(tf, folder, 7, calls, save_checkpoint_steps=2)
        return calls

    theirs, ours = both(tensorflow, tmp_path, work)
    assert ours == theirs


def test_losses_are_the_same(tensorflow: Any, tmp_path: Path) -> None:
    theirs, ours = both(tensorflow, tmp_path, lambda tf, folder: train(tf, folder, 6, []))
    np.testing.assert_allclose(ours, theirs, rtol=1e-5)


@pytest.mark.parametrize("every", [1, 2, 3])
def test_checkpoints_have_the_same_names(tensorflow: Any, tmp_path: Path, every: int) -> None:
    def work(tf: Any, folder: Path) -> list[str]:
        for last in (4, 9):
            train(tf, folder, last, [], save_checkpoint_steps=every)
        state = tf.train.get_checkpoint_state(str(folder))
        return [os.path.basename(p) for p in (state.model_checkpoint_path, *state.all_model_checkpoint_paths)]

    theirs, ours = both(tensorflow, tmp_path, work)
    assert ours == theirs


@pytest.mark.parametrize("every", [1, 2, 3])
def test_events_are_of_the_same_steps(tensorflow: Any, tmp_path: Path, every: int) -> None:
    def work(tf: Any, folder: Path) -> list[Any]:
        train(tf, folder, 7, [], save_checkpoint_steps=4, save_summaries_steps=every, log_step_count_steps=3)
        tf.summary.FileWriterCache.clear()
        found: list[Any] = []
        for path in sorted(folder.glob("events*")):
            found.extend(
                (event.step, [v.tag for v in event.summary.value], event.session_log.status)
                for event in timberframe.train.summary_iterator(str(path))
                if event.WhichOneof("what") in ("summary", "session_log")
            )
        return found

    ours = work(timberframe, tmp_path / "ours")
    # TensorFlow's hooks read the step while the run raises it: one of the outcomes is ours, who read it before.
    assert any(work(tensorflow, tmp_path / f"theirs{i}") == ours for i in range(10))


def test_timelines_are_of_the_same_steps(tensorflow: Any, tmp_path: Path) -> None:
    def work(tf: Any, folder: Path) -> list[str]:
        folder.mkdir()
        with tf.Graph().as_default():
            step = tf.assign_add(tf.train.get_or_create_global_step(), 1)
            hook = tf.train.ProfilerHook(save_steps=2, output_dir=str(folder))
            with tf.train.MonitoredSession(hooks=[hook]) as session:
                for _ in range(7):
                    session.run(step)
        return sorted(p.name for p in folder.glob("timeline*"))

    theirs, ours = both(tensorflow, tmp_path, work)
    assert ours == theirs


def test_logged_lines_are_the_same(tensorflow: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    def work(tf: Any, folder: Path) -> list[str]:
        lines: list[str] = []
        with tf.Graph().as_default():
            x = tf.placeholder(tf.float32, [2], name="x")
            named = {"x": x, "double": x * 2}

            def line(values: Any) -> str:
                lines.append(", ".join(f"{tag} = {value}" for tag, value in values.items()))
                return lines[-1]

            hook = tf.train.LoggingTensorHook(named, every_n_iter=3, at_end=False, formatter=line)
            with tf.train.MonitoredSession(hooks=[hook]) as session:
                for i in range(8):
                    session.run(x, {x: [i, i + 0.5]})
        return lines

    theirs, ours = both(tensorflow, tmp_path, work)
    assert ours == theirs


@pytest.mark.parametrize("error", ["AbortedError", "UnavailableError"])
def test_lost_sessions_are_replaced_with_the_same_calls(tensorflow: Any, tmp_path: Path, error: str) -> None:
    def work(tf: Any, folder: Path) -> list[Any]:
        calls: list[Any] = []
        arguments = ("lost",) if tf is timberframe else (None, None, "lost")
        lost = [getattr(tf.errors, error)(*arguments)]

        class Loses(tf.train.SessionRunHook):  # type: ignore[misc]  # of either library
            def after_run(self, run_context: Any, run_values: Any) -> None:
                if lost and run_context.session.run(tf.train.get_global_step()) == 3:
                    raise lost.pop()

        train(tf, folder, 5, calls, save_checkpoint_steps=2, chief_only_hooks=[Loses()])
        return calls

    theirs, ours = both(tensorflow, tmp_path, work)
    assert ours == theirs
