"""Pipelines on devices of this process: order of work, gradients, and what is refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

pytest.importorskip("ray", reason="ray is not installed: it has no wheel for this Python or system")

import timberframe as tf
import timberframe_ray as tfr
import timberframe_sdk as sdk
from timberframe_ray.pipeline import block_order
from timberframe_sdk.testing import reference_device

sdk.register_plugin("reference", reference_device)


def stage(number: int) -> Callable[[Any], Any]:
    initial = np.random.default_rng(number).standard_normal((6, 6)).astype(np.float32)

    def run(x: Any) -> Any:
        with tf.variable_scope(f"stage{number}", reuse=tf.AUTO_REUSE):
            return tf.tanh(tf.matmul(x, tf.get_variable("w", initializer=initial)))

    return run


def loss_of(y: Any, labels: Any) -> Any:
    return tf.reduce_mean(tf.square(y - labels))


def step(stages: int, schedule: str) -> list[np.ndarray]:
    """Loss and gradients of the second of two equal runs; schedule: empty without a pipeline."""
    x, labels = tf.placeholder(tf.float32, [8, 6]), tf.placeholder(tf.float32, [8, 6])
    optimizer = tf.train.GradientDescentOptimizer(0.1)
    if schedule:
        devices = [f"/device:REFERENCE:{i}" for i in range(stages)]
        loss, pairs = tfr.pipeline(
            optimizer, [stage(i) for i in range(stages)], devices, x, labels, loss_of, 4, schedule
        )
    else:
        y = x
        for i in range(stages):
            y = stage(i)(y)
        loss = loss_of(y, labels)
        pairs = optimizer.compute_gradients(loss)
    numbers = np.random.default_rng(9)
    feeds = {x: numbers.standard_normal((8, 6)), labels: numbers.standard_normal((8, 6))}
    config = tf.SessionConfig(plugins=["cpu", "reference"], device_count={"REFERENCE": stages})
    with tf.Session(config=config) as session:
        session.run(tf.global_variables_initializer())
        session.run([v.assign(v * 0.5) for _, v in pairs])
        session.run(loss, feeds)
        return list(session.run([loss, *(g for g, _ in pairs)], feeds))


@pytest.mark.parametrize("stages", [1, 2, 3])
def test_gradients_equal_those_without_a_pipeline(stages: int) -> None:
    found = []
    for schedule in ("", "gpipe", "1f1b"):
        with tf.Graph().as_default():
            found.append(step(stages, schedule))
    whole, gpipe, by_turns = found
    for x, y, z in zip(whole, gpipe, by_turns, strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-5, atol=1e-7)  # sums of a split batch are rounded otherwise
        assert y.tobytes() == z.tobytes()


def test_orders_of_work() -> None:
    def order(stage: int, schedule: str) -> str:
        return " ".join(f"{kind}{m}" for kind, m in block_order(2, stage, 3, schedule))

    assert order(0, "gpipe") == order(1, "gpipe") == "F0 F1 F2 B0 B1 B2"
    assert order(0, "1f1b") == "F0 F1 B0 F2 B1 B2"
    assert order(1, "1f1b") == "F0 B0 F1 B1 F2 B2"


def test_what_makes_no_pipeline_is_refused() -> None:
    x, optimizer = tf.zeros([8, 6]), tf.train.GradientDescentOptimizer(0.1)
    with pytest.raises(tf.errors.InvalidArgumentError, match="schedule is 'best'; it must be 'gpipe' or '1f1b'"):
        tfr.pipeline(optimizer, [stage(0)], ["/cpu:0"], x, x, loss_of, 2, "best")
    with pytest.raises(tf.errors.InvalidArgumentError, match="2 stages on 1 devices; one for each is required"):
        tfr.pipeline(optimizer, [stage(0), stage(1)], ["/cpu:0"], x, x, loss_of)
    with pytest.raises(tf.errors.InvalidArgumentError, match="1 stages, microbatches is 0; at least one of each"):
        tfr.pipeline(optimizer, [stage(0)], ["/cpu:0"], x, x, loss_of, 0)
    with pytest.raises(tf.errors.InvalidArgumentError, match="0 stages, microbatches is 8; at least one of each"):
        tfr.pipeline(optimizer, [], [], x, x, loss_of)
