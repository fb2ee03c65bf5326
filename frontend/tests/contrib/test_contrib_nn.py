"""tf.contrib.nn."""

from __future__ import annotations

import numpy as np
import pytest

import timberframe as tf


def test_losses_take_the_logits_first() -> None:
    logits, labels = tf.constant([[1.0, 2.0], [0.5, -0.5]]), tf.constant([[0.0, 1.0], [1.0, 0.0]])
    nn = tf.contrib.nn
    with tf.Session() as session:
        for found, same in [
            (nn.deprecated_flipped_softmax_cross_entropy_with_logits(logits, labels),
             tf.nn.softmax_cross_entropy_with_logits_v2(labels=labels, logits=logits)),
            (nn.deprecated_flipped_sparse_softmax_cross_entropy_with_logits(logits, [1, 0]),
             tf.nn.sparse_softmax_cross_entropy_with_logits(labels=[1, 0], logits=logits)),
            (nn.deprecated_flipped_sigmoid_cross_entropy_with_logits(logits, labels),
             tf.nn.sigmoid_cross_entropy_with_logits(labels=labels, logits=logits)),
        ]:  # fmt: skip
            np.testing.assert_allclose(*session.run([found, same]), rtol=1e-6)


def test_alpha_dropout_keeps_mean_and_variance() -> None:
    x = np.random.default_rng(0).normal(size=100_000).astype(np.float32)
    with tf.Graph().as_default(), tf.Session() as session:
        dropped = session.run(tf.contrib.nn.alpha_dropout(x, 0.8, seed=1))
    assert abs(dropped.mean()) < 0.02
    assert abs(dropped.var() - 1) < 0.02
    _, counts = np.unique(dropped, return_counts=True)
    assert abs(counts.max() / x.size - 0.2) < 0.01  # the dropped ones have one value
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"keep_prob is 0; it must be in \(0, 1\]"):
        tf.contrib.nn.alpha_dropout(x, 0)


def test_a_scaled_softplus_comes_near_relu() -> None:
    x = tf.constant([-1.0, 0.0, 8.0])
    with tf.Session() as session:
        near, clipped = session.run(
            [tf.contrib.nn.scaled_softplus(x, 0.01), tf.contrib.nn.scaled_softplus(x, 0.01, clip=6)]
        )
    np.testing.assert_allclose(near, [0, 0.01 * np.log(2), 8], atol=1e-6)
    assert clipped[2] == 6
