"""tf.losses: values, weights and reductions, against NumPy and against TensorFlow."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import timberframe as tf

pytestmark = pytest.mark.usefixtures("graph")

RNG = np.random.default_rng(0)
LOGITS = RNG.normal(size=(4, 3)).astype(np.float32)
SHARES = np.eye(3, dtype=np.float32)[[0, 2, 1, 1]]
CLASSES = np.array([0, 2, 1, 1], np.int32)
PROBABILITIES = RNG.uniform(0.1, 0.9, size=(4, 3)).astype(np.float32)
WEIGHTS = np.array([[1.0], [0.0], [2.0], [0.5]], np.float32)

LOSSES: dict[str, Callable[..., Any]] = {
    "mean_squared_error": lambda losses, **k: losses.mean_squared_error(SHARES, LOGITS, **k),
    "absolute_difference": lambda losses, **k: losses.absolute_difference(SHARES, LOGITS, **k),
    "huber_loss": lambda losses, **k: losses.huber_loss(SHARES, LOGITS * 2, delta=0.7, **k),
    "log_loss": lambda losses, **k: losses.log_loss(SHARES, PROBABILITIES, **k),
    "hinge_loss": lambda losses, **k: losses.hinge_loss(SHARES, LOGITS, **k),
    "sigmoid_cross_entropy": lambda losses, **k: losses.sigmoid_cross_entropy(SHARES, LOGITS, label_smoothing=0.1, **k),
}
ROW_LOSSES: dict[str, Callable[..., Any]] = {
    "softmax_cross_entropy": lambda losses, **k: losses.softmax_cross_entropy(SHARES, LOGITS, label_smoothing=0.1, **k),
    "sparse_softmax_cross_entropy": lambda losses, **k: losses.sparse_softmax_cross_entropy(CLASSES, LOGITS, **k),
}
REDUCTIONS = tf.losses.Reduction.all()


def value(tensor: Any) -> Any:
    with tf.Session() as session:
        return session.run(tensor)


def test_the_mean_is_over_elements_whose_weight_is_not_zero() -> None:
    loss = tf.losses.mean_squared_error(SHARES, LOGITS, WEIGHTS)
    wanted = ((LOGITS - SHARES) ** 2 * WEIGHTS).sum() / 9
    np.testing.assert_allclose(value(loss), wanted, rtol=1e-6)


def test_weights_that_are_all_zero_give_zero() -> None:
    assert value(tf.losses.mean_squared_error(SHARES, LOGITS, 0.0)) == 0


def test_losses_add_up_with_those_of_regularizers() -> None:
    tf.get_variable("w", initializer=2.0, regularizer=lambda w: w * 3.0)
    tf.losses.mean_squared_error([1.0], [3.0])
    total = tf.losses.get_total_loss()
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        assert session.run(total) == 10.0


def test_weights_of_another_shape_are_refused() -> None:
    with pytest.raises(ValueError, match=r"weights have shape \(4,\) for losses of shape \(4, 3\)"):
        tf.losses.mean_squared_error(SHARES, LOGITS, np.ones(4, np.float32))


def test_labels_of_another_shape_are_refused() -> None:
    with pytest.raises(ValueError, match=r"labels have shape \(4,\) and predictions \(4, 3\)"):
        tf.losses.mean_squared_error(CLASSES, LOGITS)


def test_an_unknown_reduction_is_refused() -> None:
    with pytest.raises(ValueError, match="reduction is 'median'"):
        tf.losses.mean_squared_error(SHARES, LOGITS, reduction="median")


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("name", [*LOSSES, *ROW_LOSSES])
def test_a_loss_is_tensorflows(name: str, reduction: str) -> None:
    tensorflow = pytest.importorskip("tensorflow.compat.v1", reason="tensorflow is not installed")
    make, weights = (LOSSES[name], WEIGHTS) if name in LOSSES else (ROW_LOSSES[name], WEIGHTS[:, 0])
    with tensorflow.Graph().as_default(), tensorflow.Session() as session:
        wanted = session.run([make(tensorflow.losses, weights=w, reduction=reduction) for w in (weights, 0.5)])
    found = [value(make(tf.losses, weights=w, reduction=reduction)) for w in (weights, 0.5)]
    for got, want in zip(found, wanted, strict=True):
        np.testing.assert_allclose(got, want, rtol=2e-6, atol=1e-6)


@pytest.mark.parametrize("dtype", [tf.float64, tf.float16, tf.int32])
@pytest.mark.parametrize("name", ["absolute_difference", "hinge_loss", "huber_loss", "log_loss", "mean_squared_error"])
def test_losses_of_any_dtype_are_float32_as_in_tensorflow(name: str, dtype: tf.DType) -> None:
    loss = getattr(tf.losses, name)(tf.ones([2, 3], dtype), tf.ones([2, 3], dtype) / 1)
    assert loss.dtype is tf.float32
    assert np.isfinite(value(loss))


def test_cross_entropies_have_the_dtype_of_their_logits() -> None:
    logits = tf.zeros([2, 3], tf.float64)
    assert tf.losses.sigmoid_cross_entropy(logits, logits).dtype is tf.float64
    assert tf.losses.softmax_cross_entropy(logits, logits).dtype is tf.float64
