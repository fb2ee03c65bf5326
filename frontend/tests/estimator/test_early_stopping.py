"""Hooks that end a training by its evaluations."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import timberframe as tf

X = np.ones((8, 1), np.float32)
ROWS = tf.estimator.inputs.numpy_input_fn({"x": X}, batch_size=8, shuffle=False, num_epochs=None)
early = tf.contrib.estimator


def model_fn(features: Any, labels: Any, mode: str) -> Any:
    """Returns a metric `height` that is 0.1 x the step up to step 10, and then stays at 1."""
    step = tf.train.get_global_step()
    height = tf.minimum(tf.cast(step, tf.float32) / 10, 1.0)
    metrics = {"height": tf.metrics.mean(height), "depth": tf.metrics.mean(-height)}
    return tf.estimator.EstimatorSpec(
        mode, loss=tf.reduce_sum(features["x"]), train_op=step.assign_add(1), eval_metric_ops=metrics
    )


def trained_to(folder: Path, make: Any) -> int:
    """Returns the step at which a training with a hook ends, evaluated after every five steps."""
    config = tf.estimator.RunConfig(save_checkpoints_steps=5)
    estimator = tf.estimator.Estimator(model_fn, str(folder), config)
    for limit in range(5, 41, 5):
        estimator.train(ROWS, max_steps=limit, hooks=[make(estimator)])
        estimator.evaluate(ROWS, steps=1)
    return int(estimator.get_variable_value("global_step"))


@pytest.mark.slow
@pytest.mark.parametrize(("name", "sign"), [("height", 1), ("depth", -1)])
def test_training_ends_when_a_metric_stays(tmp_path: Path, name: str, sign: int) -> None:
    stop = early.stop_if_no_increase_hook if sign > 0 else early.stop_if_no_decrease_hook
    # the best value comes at step 10; that of step 25 is 15 steps later, and the next training ends with its first step
    steps = trained_to(tmp_path, lambda e: stop(e, name, 15, run_every_secs=None, run_every_steps=1))
    assert 25 < steps < 40


@pytest.mark.slow
@pytest.mark.parametrize(("name", "sign"), [("height", 1), ("depth", -1)])
def test_training_ends_past_a_threshold(tmp_path: Path, name: str, sign: int) -> None:
    stop = early.stop_if_higher_hook if sign > 0 else early.stop_if_lower_hook
    steps = trained_to(tmp_path, lambda e: stop(e, name, sign * 0.7, run_every_secs=None, run_every_steps=1))
    assert 10 < steps < 40


def test_evaluations_are_read_in_the_order_of_their_steps(tmp_path: Path) -> None:
    for step, value in ((20, 2.0), (10, 1.0)):
        writer = tf.summary.FileWriter(str(tmp_path), filename_suffix=f".{step}")
        writer.add_summary(tf.Summary(value=[tf.Summary.Value(tag="a", simple_value=value)]), step)
        writer.close()
    assert early.read_eval_metrics(str(tmp_path)) == {10: {"a": 1.0}, 20: {"a": 2.0}}
    assert early.read_eval_metrics(str(tmp_path / "none")) == {}


def test_wrong_arguments(tmp_path: Path) -> None:
    estimator = tf.estimator.Estimator(model_fn, str(tmp_path))
    with pytest.raises(TypeError, match="estimator is 3"):
        early.make_early_stopping_hook(3, lambda: True)
    with pytest.raises(TypeError, match="should_stop_fn is 3"):
        early.make_early_stopping_hook(estimator, 3)
    with pytest.raises(ValueError, match="both of every_secs and every_steps"):
        early.make_early_stopping_hook(estimator, lambda: True, 60, 5)
