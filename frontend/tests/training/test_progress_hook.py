"""ProgressHook: what a training shows on a terminal."""

from __future__ import annotations

import io
import re

import pytest

import timberframe as tf


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def train(stream: io.StringIO, steps: int) -> str:
    with tf.Graph().as_default():
        loss = tf.constant(0.25, name="loss")
        step = tf.assign_add(tf.train.get_or_create_global_step(), 1)
        hook = tf.train.ProgressHook(steps, {"loss": loss, "named": "loss:0"}, every_n_secs=1e-9, stream=stream)
        hooks = [tf.train.StopAtStepHook(last_step=steps), hook]
        with tf.train.SingularMonitoredSession(hooks=hooks) as session:
            while not session.should_stop():
                session.run(step)
    return stream.getvalue()


def test_a_terminal_shows_one_line_that_is_cleared_at_the_end() -> None:
    lines = train(Terminal(), 5).split("\r\x1b[2K")
    shown = r"step \d of 5, loss 0\.25, named 0\.25, [\d.e+]+ steps/s, \d+ s left"
    assert len(lines) == 7  # what is before the first line, five lines, and the cleared one
    assert re.fullmatch(shown, lines[-2])
    assert lines[-1] == ""


def test_nothing_is_written_elsewhere() -> None:
    assert train(io.StringIO(), 5) == ""


def test_a_period_that_is_not_positive_is_refused() -> None:
    with pytest.raises(tf.errors.InvalidArgumentError, match="ProgressHook: every_n_secs is 0; it must be positive"):
        tf.train.ProgressHook(every_n_secs=0)
