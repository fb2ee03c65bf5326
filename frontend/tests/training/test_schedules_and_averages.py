"""Learning rates that change, the global step, clipping by norms, and averages of variables."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import timberframe as tf
from timberframe.train.moving_averages import assign_moving_average

pytestmark = pytest.mark.usefixtures("graph")


def cosine(fraction: float) -> float:
    return 0.5 * (1 + math.cos(math.pi * fraction))


Decay = tuple[Callable[[Any], Any], Callable[[int], float]]
DECAYS: dict[str, Decay] = {
    "exponential": (lambda s: tf.train.exponential_decay(0.5, s, 10, 0.9), lambda s: 0.5 * 0.9 ** (s / 10)),
    "exponential_staircase": (
        lambda s: tf.train.exponential_decay(0.5, s, 10, 0.9, staircase=True),
        lambda s: 0.5 * 0.9 ** (s // 10),
    ),
    "natural": (lambda s: tf.train.natural_exp_decay(0.5, s, 10, 0.3), lambda s: 0.5 * math.exp(-0.3 * s / 10)),
    "inverse": (lambda s: tf.train.inverse_time_decay(0.5, s, 10, 0.3), lambda s: 0.5 / (1 + 0.3 * s / 10)),
    "polynomial": (
        lambda s: tf.train.polynomial_decay(0.5, s, 20, 0.1, power=2.0),
        lambda s: 0.4 * (1 - min(s, 20) / 20) ** 2 + 0.1,
    ),
    "polynomial_cycle": (
        lambda s: tf.train.polynomial_decay(0.5, s, 20, 0.1, cycle=True),
        lambda s: 0.4 * (1 - s / (20 * max(math.ceil(s / 20), 1))) + 0.1,
    ),
    "cosine": (
        lambda s: tf.train.cosine_decay(0.5, s, 20, 0.1),
        lambda s: 0.5 * (0.9 * cosine(min(s, 20) / 20) + 0.1),
    ),
    "restarts_equal": (
        lambda s: tf.train.cosine_decay_restarts(0.5, s, 10, t_mul=1.0, m_mul=0.5),
        lambda s: 0.5 * 0.5 ** (s // 10) * cosine(s % 10 / 10),
    ),
    "restarts_longer": (
        lambda s: tf.train.cosine_decay_restarts(0.5, s, 7, alpha=0.1),
        lambda s: 0.5 * (0.9 * cosine(s / 7 if s < 7 else (s - 7) / 14 if s < 21 else (s - 21) / 28) + 0.1),
    ),
    "piecewise": (
        lambda s: tf.train.piecewise_constant(s, [5, 20], [0.5, 0.3, 0.1]),
        lambda s: 0.5 if s <= 5 else 0.3 if s <= 20 else 0.1,
    ),
}


@pytest.mark.parametrize("name", DECAYS)
def test_a_rate_follows_its_formula(name: str) -> None:
    build, formula = DECAYS[name]
    step = tf.placeholder(tf.int64, [])
    rate = build(step)
    with tf.Session() as session:
        for at in (0, 1, 5, 10, 19, 20, 33):
            # float32 throughout: about ten roundings, and a logarithm before a floor
            assert session.run(rate, {step: at}) == pytest.approx(formula(at), rel=2e-6, abs=1e-7)


def test_a_rate_keeps_the_dtype_of_the_first_rate() -> None:
    assert tf.train.exponential_decay(tf.constant(0.5, tf.float64), 1, 2, 0.5).dtype is tf.float64


def test_a_decay_without_a_step_is_refused() -> None:
    with pytest.raises(ValueError, match="global_step is None"):
        tf.train.exponential_decay(0.5, None, 1, 0.5)


def test_too_few_values_for_the_boundaries_are_refused() -> None:
    with pytest.raises(ValueError, match="2 boundaries and 2 values"):
        tf.train.piecewise_constant(1, [1, 2], [0.1, 0.2])


def test_an_optimizer_follows_the_decay_of_its_rate() -> None:
    x, count = tf.Variable(0.0), tf.train.create_global_step()
    rate = tf.train.piecewise_constant(count, [1], [1.0, 0.25])
    step = tf.train.GradientDescentOptimizer(rate).minimize(-x, global_step=count)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        values = [session.run([step, x.value()]) and session.run(x) for _ in range(4)]
    assert values == [1.0, 2.0, 2.25, 2.5]


def test_a_graph_has_one_global_step() -> None:
    assert tf.train.get_global_step() is None
    step = tf.train.create_global_step()
    assert tf.train.get_or_create_global_step() is step
    assert (step.op.name, step.dtype, step in tf.trainable_variables()) == ("global_step", tf.int64, False)
    with pytest.raises(ValueError, match="has a global step"):
        tf.train.create_global_step()


def test_an_average_follows_its_variable() -> None:
    x = tf.Variable(2.0, name="x")
    average = tf.train.ExponentialMovingAverage(0.5)
    update = average.apply([x])
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        session.run(x.assign(6.0))
        session.run(update)
        assert session.run(average.average(x)) == 4.0
    assert average.average(x).op.name == average.average_name(x) == "x/ExponentialMovingAverage"


def test_a_count_of_updates_makes_an_average_fast_at_first() -> None:
    x, count = tf.Variable(0.0), tf.placeholder(tf.float32, [])
    average = tf.train.ExponentialMovingAverage(0.9, num_updates=count)
    update = average.apply([x])
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        session.run(x.assign(1.0))
        session.run(update, {count: 0.0})  # decay 1 / 10
        assert session.run(average.average(x)) == pytest.approx(0.9)


def test_an_average_of_a_tensor_may_be_freed_of_its_start() -> None:
    x = tf.placeholder(tf.float32, [2])
    average = tf.train.ExponentialMovingAverage(0.9, zero_debias=True)
    update = average.apply([x])
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        for _ in range(3):
            session.run(update, {x: [3.0, -1.0]})
        np.testing.assert_allclose(session.run(average.average(x)), [3.0, -1.0], rtol=1e-5)


def test_averages_restore_into_their_variables() -> None:
    x, other = tf.Variable(1.0, name="x"), tf.Variable(1.0, name="other", trainable=False)
    average = tf.train.ExponentialMovingAverage(0.9)
    average.apply()
    names = average.variables_to_restore()
    assert names["x/ExponentialMovingAverage"] is x
    assert names["other"] is other


def test_averages_of_integers_are_refused() -> None:
    with pytest.raises(ValueError, match="has dtype int32"):
        tf.train.ExponentialMovingAverage(0.9).apply([tf.Variable(1)])


def test_clipping_by_an_infinite_norm_gives_nan() -> None:
    clipped, _ = tf.clip_by_global_norm([tf.constant([1.0, np.inf])], 1.0)
    with tf.Session() as session:
        assert np.isnan(session.run(clipped[0])).all()


def test_clipping_zeros_by_norm_has_a_finite_gradient() -> None:
    x = tf.placeholder(tf.float32, [3])
    gradient = tf.gradients(tf.clip_by_norm(x, 1.0), x)[0]
    with tf.Session() as session:
        np.testing.assert_array_equal(session.run(gradient, {x: np.zeros(3)}), np.ones(3))


def test_clipping_by_the_average_norm() -> None:
    with tf.Session() as session:
        np.testing.assert_allclose(session.run(tf.clip_by_average_norm([3.0, 4.0], 0.5)), [0.6, 0.8], rtol=1e-6)


@pytest.mark.parametrize(("debiased", "expected"), [(False, [5.0, 7.5]), (True, [10.0, 10.0])])
def test_a_variable_moves_to_a_value(debiased: bool, expected: list[float]) -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        v = tf.get_variable("v", initializer=0.0, trainable=False, use_resource=True)
        moved = assign_moving_average(v, 10.0, 0.5, debiased)
        session.run(tf.global_variables_initializer())
        assert [session.run(moved) for _ in range(2)] == pytest.approx(expected)
        assert session.run(v) == pytest.approx(expected[-1])
        assert [x.op.name for x in tf.global_variables()] == ["v", *(["v/biased", "v/local_step"] if debiased else [])]
