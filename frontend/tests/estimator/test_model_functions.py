"""Errors of functions that estimators call, and of their settings."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import timberframe as tf

from .regression import EVAL, ROWS, X, Y, estimator


def spec_of(**parts: Any) -> Callable[..., Any]:
    """Returns a model function that returns an EstimatorSpec of these parts, which functions make."""

    def made(features: Any, labels: Any, mode: str) -> Any:
        return tf.estimator.EstimatorSpec(mode, **{name: make() for name, make in parts.items()})

    return made


def loss() -> Any:
    return tf.reduce_mean(tf.get_variable("v", [2], initializer=tf.zeros_initializer()))


def step() -> Any:
    return tf.train.get_global_step().assign_add(1)


WRONG: dict[str, tuple[Any, str]] = {
    "no loss": (spec_of(train_op=step), "EstimatorSpec: there is no loss; modes TRAIN and EVAL require one"),
    "no train_op": (spec_of(loss=loss), "EstimatorSpec: there is no train_op; mode TRAIN requires one"),
    "loss of a batch": (
        spec_of(loss=lambda: tf.zeros([3]), train_op=step),
        r"loss 'zeros:0' has shape \(3,\); a scalar is required",
    ),
    "loss that is no tensor": (spec_of(loss=lambda: 1.0, train_op=step), "loss is a float; a tensor is required"),
    "train_op that is none": (
        spec_of(loss=loss, train_op=lambda: "step"),
        "train_op is a str; an operation is required",
    ),
    "hook that is none": (
        spec_of(loss=loss, train_op=step, training_hooks=lambda: [1]),
        "training_hooks has a int; a tf.train.SessionRunHook is required",
    ),
    "metric that is no pair": (
        spec_of(loss=loss, train_op=step, eval_metric_ops=lambda: {"a": 1.0}),
        "eval metric 'a' is a float; a pair",
    ),
    "nothing": (
        lambda features, labels, mode: None,
        "model_fn '<lambda>' returned None; a tf.estimator.EstimatorSpec is required",
    ),
    "a tensor": (lambda features, labels, mode: loss(), "returned a Tensor; a tf.estimator.EstimatorSpec is required"),
    "another mode": (
        lambda features, labels, mode: tf.estimator.EstimatorSpec(EVAL, loss=loss()),
        "was called for mode 'train', and its EstimatorSpec is for 'eval'",
    ),
    "no labels": (
        lambda features, mode: tf.estimator.EstimatorSpec(mode, loss=loss(), train_op=step()),
        "has no argument labels, and input_fn returns some",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_model_function_is_an_error(tmp_path: Path, name: str) -> None:
    model, message = WRONG[name]
    with pytest.raises(ValueError, match=message):
        estimator(tmp_path, model).train(ROWS)


def test_a_prediction_without_predictions_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="there are no predictions; mode PREDICT requires"):
        next(estimator(tmp_path, spec_of(loss=loss)).predict(ROWS))


def test_an_argument_that_no_model_function_has_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="has the argument is_training; a model_fn takes features, labels, mode"):
        tf.estimator.Estimator(lambda features, labels, is_training: None, str(tmp_path))


def test_params_that_no_argument_takes_are_an_error(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="params are given"):
        tf.estimator.Estimator(lambda features, labels, mode: None, str(tmp_path), params={})


def test_an_input_function_that_returns_arrays_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="input_fn returned a ndarray among its features; tensors"):
        estimator(tmp_path).train(lambda: ({"x": X}, Y))


def test_a_metric_of_the_name_loss_is_an_error(tmp_path: Path) -> None:
    model = spec_of(loss=loss, eval_metric_ops=lambda: {"loss": tf.metrics.mean(1.0)})
    with pytest.raises(ValueError, match="eval_metric_ops has 'loss', which the estimator adds"):
        estimator(tmp_path, model).evaluate(ROWS)


def test_steps_and_max_steps_exclude_each_other(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="both of steps and max_steps given"):
        estimator(tmp_path).train(ROWS, steps=1, max_steps=1)


def test_a_setting_that_cannot_be_replaced_is_an_error() -> None:
    with pytest.raises(ValueError, match="master cannot be replaced; these can: model_dir"):
        tf.estimator.RunConfig().replace(master="")


@pytest.mark.parametrize("name", ["save_summary_steps", "save_checkpoints_steps", "keep_checkpoint_max"])
def test_a_setting_below_zero_is_an_error(name: str) -> None:
    with pytest.raises(ValueError, match=f"{name} is -1; it must not be negative"):
        tf.estimator.RunConfig(**{name: -1})
    with pytest.raises(ValueError, match=f"{name} is -1; it must not be negative"):
        tf.estimator.RunConfig().replace(**{name: -1})
