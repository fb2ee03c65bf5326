"""Optimizers on an embedding, rates, clipping and averages, compared with TensorFlow's own `tf.train`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import timberframe

Build = Callable[[Any], tuple[list[Any], dict[str, Any]]]

OPTIMIZERS: dict[str, Callable[[Any], Any]] = {
    "descent": lambda train: train.GradientDescentOptimizer(0.1),
    "momentum": lambda train: train.MomentumOptimizer(0.1, 0.9),
    "nesterov": lambda train: train.MomentumOptimizer(0.1, 0.9, use_nesterov=True),
    "adagrad": lambda train: train.AdagradOptimizer(0.1),
    "adadelta": lambda train: train.AdadeltaOptimizer(0.5, epsilon=1e-3),
    "rmsprop": lambda train: train.RMSPropOptimizer(0.01, momentum=0.5, epsilon=1e-3),
    "centered": lambda train: train.RMSPropOptimizer(0.01, centered=True, epsilon=1e-3),
    "adam": lambda train: train.AdamOptimizer(0.01, epsilon=1e-3),
    "ftrl": lambda train: train.FtrlOptimizer(0.1, l1_regularization_strength=0.01, beta=0.2),
    "ftrl_shrinkage": lambda train: train.FtrlOptimizer(0.1, -0.6, l2_shrinkage_regularization_strength=0.1),
}
RATES: dict[str, Callable[[Any, Any], Any]] = {
    "exponential": lambda train, s: train.exponential_decay(0.5, s, 7, 0.9),
    "staircase": lambda train, s: train.exponential_decay(0.5, s, 7, 0.9, True),
    "natural": lambda train, s: train.natural_exp_decay(0.5, s, 7, 0.9, True),
    "inverse": lambda train, s: train.inverse_time_decay(0.5, s, 7, 0.9),
    "polynomial": lambda train, s: train.polynomial_decay(0.5, s, 7, 0.1, 2.0),
    "cycle": lambda train, s: train.polynomial_decay(0.5, s, 7, 0.1, 0.5, cycle=True),
    "cosine": lambda train, s: train.cosine_decay(0.5, s, 7, 0.2),
    "restarts": lambda train, s: train.cosine_decay_restarts(0.5, s, 5, 2.0, 0.7, 0.1),
    "restarts_equal": lambda train, s: train.cosine_decay_restarts(0.5, s, 5, 1.0, 0.7),
    "piecewise": lambda train, s: train.piecewise_constant(s, [3, 8], [0.5, 0.2, 0.1]),
}


@pytest.fixture
def both() -> Callable[[Build], list[tuple[list[str], list[np.ndarray]]]]:
    """Runs a program five times in TensorFlow and here; the names of the variables and what was fetched."""
    tensorflow = pytest.importorskip("tensorflow.compat.v1", reason="tensorflow is not installed")

    def run(build: Build) -> list[tuple[list[str], list[np.ndarray]]]:
        results = []
        for tf in (tensorflow, timberframe):
            with tf.Graph().as_default() as graph, tf.Session(graph=graph) as session:
                fetches, feeds = build(tf)
                session.run(tf.global_variables_initializer())
                found = [np.asarray(x) for _ in range(5) for x in session.run(fetches, feeds) if x is not None]
                found += [session.run(v) for v in tf.global_variables()]
                results.append(([v.name for v in tf.global_variables()], found))
        return results

    return run


def assert_same(results: list[tuple[list[str], list[np.ndarray]]], tolerance: float) -> None:
    (names, wanted), (own, found) = results
    assert own == names
    for want, got in zip(wanted, found, strict=True):
        np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance)


# Five steps, each with a few roundings of either side: 1e-6 and 1e-14 in ten times the unit.
@pytest.mark.parametrize(("dtype", "tolerance"), [("float32", 2e-6), ("float64", 1e-13)])
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_an_embedding_trains_alike(both: Any, name: str, dtype: str, tolerance: float) -> None:
    start = np.random.default_rng(0).normal(size=(6, 4)).astype(dtype)

    def build(tf: Any) -> tuple[list[Any], dict[str, Any]]:
        with tf.variable_scope("model", use_resource=True):
            table = tf.get_variable("table", initializer=start)
            weights = tf.get_variable("weights", initializer=start[:4] / 2)
        rows = tf.nn.embedding_lookup(table, [5, 1, 5, 0])
        loss = tf.reduce_mean(tf.square(tf.matmul(rows, weights) - 0.5))
        step = tf.train.get_or_create_global_step()
        return [loss, OPTIMIZERS[name](tf.train).minimize(loss, step)], {}

    assert_same(both(build), tolerance)


@pytest.mark.parametrize("name", RATES)
def test_a_rate_is_tensorflows(both: Any, name: str) -> None:
    def build(tf: Any) -> tuple[list[Any], dict[str, Any]]:
        return [RATES[name](tf.train, tf.constant(s)) for s in (0, 1, 3, 5, 7, 8, 13, 14, 15, 40)], {}

    assert_same(both(build), 1e-6)


def test_clipping_is_tensorflows(both: Any) -> None:
    x = np.random.default_rng(0).normal(size=(3, 4)).astype(np.float32)

    def build(tf: Any) -> tuple[list[Any], dict[str, Any]]:
        clipped, norm = tf.clip_by_global_norm([x, None, x * 2], 1.5)
        small, _ = tf.clip_by_global_norm([x], 100.0)
        whole, rows = tf.clip_by_norm(x, 0.7), tf.clip_by_norm(x, 0.7, [1])
        return [norm, clipped[0], clipped[2], small[0], whole, rows, tf.clip_by_average_norm(x, 0.1)], {}

    assert_same(both(build), 1e-6)


def test_averages_are_tensorflows(both: Any) -> None:
    def build(tf: Any) -> tuple[list[Any], dict[str, Any]]:
        with tf.variable_scope("model", use_resource=True):
            x = tf.get_variable("x", initializer=np.float32([1, 2]))
            count = tf.get_variable("count", initializer=0.0, trainable=False)
        averages = tf.train.ExponentialMovingAverage(0.9, count, zero_debias=True)
        change = tf.group(x.assign(x * 1.5 + 1), count.assign_add(1))
        with tf.control_dependencies([change]):
            update = averages.apply([x, x.read_value() * 2.0])
        return [update], {}

    assert_same(both(build), 1e-6)
