"""An estimator of a regression, and its examples."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import timberframe as tf

X = np.random.default_rng(0).normal(size=(24, 3)).astype(np.float32)
Y = X.sum(1, keepdims=True)
TRAIN, EVAL, PREDICT = tf.estimator.ModeKeys.TRAIN, tf.estimator.ModeKeys.EVAL, tf.estimator.ModeKeys.PREDICT
ROWS = tf.estimator.inputs.numpy_input_fn({"x": X}, Y, batch_size=8, shuffle=False)
SHUFFLED = tf.estimator.inputs.numpy_input_fn({"x": X}, Y, batch_size=8, num_epochs=None, shuffle=True)


def model_fn(features: Any, labels: Any, mode: str, params: Any) -> Any:
    """Returns a regression with dropout."""
    x = tf.layers.dropout(features["x"], 0.2, training=mode == TRAIN)
    y = tf.layers.dense(x, 1, name="y", kernel_initializer=tf.constant_initializer(0.5))
    if mode == PREDICT:
        return tf.estimator.EstimatorSpec(mode, {"y": y, "x": features["x"]})
    loss = tf.losses.mean_squared_error(labels, y)
    step = tf.train.get_global_step()
    return tf.estimator.EstimatorSpec(
        mode,
        loss=loss,
        train_op=tf.train.AdamOptimizer(params["rate"]).minimize(loss, step),
        eval_metric_ops={"error": tf.metrics.mean_absolute_error(labels, y)},
    )


def estimator(folder: Path, model: Callable[..., Any] = model_fn, **settings: Any) -> Any:
    config = tf.estimator.RunConfig(**{"tf_random_seed": 1, "save_checkpoints_steps": 5, **settings})
    return tf.estimator.Estimator(model, str(folder), config, params={"rate": 0.1} if model is model_fn else None)
