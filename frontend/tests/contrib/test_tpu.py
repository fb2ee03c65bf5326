"""`tf.contrib.tpu`: estimators written for TPUs, where there are none."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import timberframe as tf

tpu: Any = tf.contrib.tpu


def model_fn(features: Any, labels: Any, mode: str, params: Any) -> Any:
    w = tf.get_variable("w", [2, 1], initializer=tf.zeros_initializer())
    found = tf.matmul(features["x"], w)
    if mode == tf.estimator.ModeKeys.PREDICT:
        return tpu.TPUEstimatorSpec(mode, {"y": found})
    loss = tf.reduce_mean(tf.square(found - labels))
    if mode == tf.estimator.ModeKeys.EVAL:

        def metrics(y: Any, found: Any) -> Any:
            return {"error": tf.metrics.mean_absolute_error(y, found)}

        return tpu.TPUEstimatorSpec(mode, loss=loss, eval_metrics=(metrics, [labels, found]))
    step = tf.train.GradientDescentOptimizer(0.3).minimize(loss, tf.train.get_global_step())
    return tpu.TPUEstimatorSpec(mode, loss=loss, train_op=step)


def input_fn(params: Any) -> Any:
    x = np.random.default_rng(0).standard_normal((40, 2), np.float32)
    data = tf.data.Dataset.from_tensor_slices(({"x": x}, x @ np.float32([[1], [-2]])))
    return data.batch(params["batch_size"])


@pytest.fixture
def estimator(tmp_path: Path) -> Any:
    settings = tpu.TPUConfig(iterations_per_loop=10, per_host_input_for_training=tpu.InputPipelineConfig.PER_HOST_V2)
    config = tpu.RunConfig(model_dir=str(tmp_path), tpu_config=settings)
    sizes = {"train_batch_size": 4, "eval_batch_size": 40, "predict_batch_size": 8}
    return tpu.TPUEstimator(model_fn, config=config, use_tpu=False, **sizes)


def test_it_trains_evaluates_and_predicts_as_other_estimators(estimator: Any) -> None:
    estimator.train(input_fn)
    assert estimator.get_variable_value("w").ravel() == pytest.approx([1, -2], abs=0.1)
    found = estimator.evaluate(input_fn)
    assert found["global_step"] == 10  # 40 examples by fours
    assert found["error"] < 0.1
    assert len(list(estimator.predict(lambda params: input_fn(params).map(lambda x, y: x)))) == 40


def test_a_tpu_is_refused() -> None:
    with pytest.raises(tf.errors.UnimplementedError, match="use_tpu is True, and there are no TPUs; give False"):
        tpu.TPUEstimator(model_fn)
    with pytest.raises(tf.errors.UnimplementedError, match="master 'grpc://a'"):
        tpu.RunConfig(master="grpc://a")


def test_params_cannot_say_the_batch_size() -> None:
    with pytest.raises(tf.errors.InvalidArgumentError, match="params have 'batch_size'"):
        tpu.TPUEstimator(model_fn, use_tpu=False, params={"batch_size": 3})
