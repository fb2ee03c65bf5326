"""Gradients where a function, or a part of it, has no derivative: TensorFlow's values, and what they are for users."""

from __future__ import annotations

import runpy
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import timberframe as tf

KINKS = runpy.run_path(str(Path(__file__).with_name("kinks.py")))
STORED = KINKS["stored"]()
Loss = Callable[[Any, Any], Any]


@pytest.fixture
def session() -> Iterator[tf.Session]:
    with tf.Graph().as_default() as graph, tf.Session(graph=graph) as session:
        yield session


@pytest.mark.parametrize("expression", sorted(set(KINKS["CASES"]) - KINKS["DERIVATIVES"]))
@pytest.mark.filterwarnings("ignore")
def test_gradients_at_kinks_are_tensorflows(expression: str) -> None:
    for dtype, wanted in STORED[expression].items():
        found = KINKS["gradients"](tf, expression, dtype)
        KINKS["assert_same"](found, wanted[:1] if expression in KINKS["BETTER"] else wanted, dtype)


LOGISTIC_LOSSES: dict[str, Loss] = {
    "nn": lambda x, z: tf.nn.sigmoid_cross_entropy_with_logits(labels=z, logits=x),
    "losses": lambda x, z: tf.losses.sigmoid_cross_entropy(z, x, reduction=tf.losses.Reduction.SUM),
}


@pytest.mark.parametrize("loss", LOGISTIC_LOSSES.values(), ids=list(LOGISTIC_LOSSES))
def test_logistic_loss_at_logit_0_has_slope_one_half_minus_label(session: tf.Session, loss: Loss) -> None:
    x, labels = tf.zeros([3]), np.float32([0, 0.25, 1])
    (slope,) = tf.gradients(loss(x, labels), x)
    assert session.run(slope).tolist() == [0.5, 0.25, -0.5]


@pytest.mark.parametrize("loss", LOGISTIC_LOSSES.values(), ids=list(LOGISTIC_LOSSES))
def test_logistic_loss_at_logit_0_has_curvature_one_quarter(session: tf.Session, loss: Loss) -> None:
    x = tf.zeros([2])
    (slope,) = tf.gradients(loss(x, np.float32([0, 1])), x)
    assert session.run(tf.gradients(slope, x)[0]).tolist() == [0.25, 0.25]


def test_logistic_loss_of_large_logits_has_finite_slopes(session: tf.Session) -> None:
    x = tf.constant([-1e4, 1e4])
    (slope,) = tf.gradients(tf.nn.sigmoid_cross_entropy_with_logits(labels=[1.0, 0.0], logits=x), x)
    assert session.run(slope).tolist() == [-1, 1]


@pytest.mark.parametrize("function", [tf.sqrt, tf.rsqrt, tf.reciprocal], ids=lambda f: f.__name__)
def test_a_root_that_is_not_chosen_adds_nothing_at_its_pole(session: tf.Session, function: Any) -> None:
    x = tf.constant([0.0, 4.0])
    (slope,) = tf.gradients(tf.where(x > 0, function(x), tf.zeros_like(x)), x)
    assert session.run(slope)[0] == 0


def test_sign_of_complex_numbers_has_a_slope(session: tf.Session) -> None:
    x = tf.constant([1.0])
    (slope,) = tf.gradients(tf.imag(tf.sign(tf.complex(tf.ones([1]), x))), x)
    assert session.run(slope) == pytest.approx([0.5**1.5], rel=1e-6)


def test_slope_of_selu_keeps_its_digits_where_it_is_nearly_zero():
    y = -1.7580993408473766
    exact = float(Fraction(y) + Fraction("1.7580993408473768599402175208123"))
    with tf.Graph().as_default(), tf.Session() as session:
        slope = session.run(tf.raw_ops.SeluGrad(gradients=tf.constant(1.0, tf.float64), outputs=y))
    np.testing.assert_allclose(slope, exact, rtol=1e-15)
