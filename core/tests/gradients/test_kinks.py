"""Gradients of functions of several ops at points where a part of them has no derivative."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import timberframe as tf

Loss = Callable[[Any, Any], Any]


@pytest.fixture
def session() -> Iterator[tf.Session]:
    with tf.Graph().as_default() as graph, tf.Session(graph=graph) as session:
        yield session


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
