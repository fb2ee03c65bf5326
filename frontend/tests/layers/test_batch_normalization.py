"""What batch normalisation does besides: renormalisation, virtual batches, adjustments, several axes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import timberframe as tf

pytestmark = pytest.mark.usefixtures("session")

RANDOM = np.random.default_rng(0)
BATCHES = [RANDOM.normal(2, 3, (6, 4)).astype(np.float32) for _ in range(3)]
EPSILON = 1e-3
normalized = tf.layers.batch_normalization


def trained(session: tf.Session, batches: list[np.ndarray], **arguments: Any) -> list[np.ndarray]:
    """Returns the outputs of a layer in several training steps."""
    x = tf.placeholder(tf.float32, [None, *batches[0].shape[1:]])
    y = normalized(x, training=True, **arguments)
    session.run(tf.global_variables_initializer())
    return [session.run([y, tf.get_collection(tf.GraphKeys.UPDATE_OPS)], {x: batch})[0] for batch in batches]


def values(session: tf.Session) -> dict[str, np.ndarray]:
    return {v.op.name.removeprefix("batch_normalization/"): session.run(v) for v in tf.global_variables()}


def assert_close(got: Any, wanted: Any) -> None:
    np.testing.assert_allclose(got, wanted, rtol=1e-4, atol=1e-5)


def plain(x: np.ndarray, axis: Any = 0) -> np.ndarray:
    return (x - x.mean(axis, keepdims=True)) / np.sqrt(x.var(axis, keepdims=True) + EPSILON)


def test_renormalisation_goes_by_moving_means(session: tf.Session) -> None:
    outputs = trained(session, BATCHES, renorm=True, renorm_momentum=0.8, momentum=0.9)
    mean, deviation, moving, moving_deviation = np.zeros(4), np.ones(4), np.zeros(4), np.ones(4)
    for got, batch in zip(outputs, BATCHES, strict=True):
        assert_close(got, (batch - mean) / np.maximum(deviation, np.sqrt(EPSILON)))
        s = np.sqrt(batch.var(0) + EPSILON)
        mean, deviation = 0.8 * mean + 0.2 * batch.mean(0), 0.8 * deviation + 0.2 * s
        moving, moving_deviation = 0.9 * moving + 0.1 * batch.mean(0), 0.9 * moving_deviation + 0.1 * s
    found = values(session)
    assert [*found] == [
        "gamma", "beta", "moving_mean", "moving_variance", "moving_stddev", "renorm_mean", "renorm_stddev",
    ]  # fmt: skip
    assert_close(found["renorm_mean"], mean)
    assert_close(found["renorm_stddev"], deviation)
    assert_close(found["moving_mean"], moving)
    assert_close(found["moving_stddev"], moving_deviation)
    assert_close(found["moving_variance"], moving_deviation**2 - EPSILON)


def test_renormalisation_within_bounds_of_nothing_is_none(session: tf.Session) -> None:
    outputs = trained(session, BATCHES, renorm=True, renorm_clipping={"rmin": 1.0, "rmax": 1.0, "dmax": 0.0})
    for got, batch in zip(outputs, BATCHES, strict=True):
        assert_close(got, plain(batch))


def test_renormalisation_has_no_gradient_through_its_corrections(session: tf.Session) -> None:
    x = tf.constant(BATCHES[0])
    gradient = tf.gradients(normalized(x, training=True, renorm=True)[:, 0], x)[0]
    with tf.variable_scope("plain"):
        other = tf.gradients(normalized(x, training=True)[:, 0], x)[0]
    session.run(tf.global_variables_initializer())
    one, two = session.run([gradient, other])
    assert_close(one[:, 0], two[:, 0] * np.sqrt(BATCHES[0][:, 0].var() + EPSILON))


def test_a_tensor_decides_whether_renormalisation_trains(session: tf.Session) -> None:
    training = tf.placeholder(tf.bool, [])
    y = normalized(BATCHES[0], training=training, renorm=True)
    updates = tf.get_collection(tf.GraphKeys.UPDATE_OPS)
    session.run(tf.global_variables_initializer())
    before = values(session)
    got, _ = session.run([y, updates], {training: False})
    assert_close(got, BATCHES[0] / np.sqrt(1 + EPSILON))
    for name, value in values(session).items():
        assert_close(value, before[name])
    session.run(updates, {training: True})
    assert np.abs(values(session)["renorm_mean"]).min() > 0


def test_virtual_batches_are_normalised_by_themselves(session: tf.Session) -> None:
    (got,) = trained(session, BATCHES[:1], virtual_batch_size=3)
    for part in range(2):
        assert_close(got[part::2], plain(BATCHES[0][part::2]))
    found = values(session)
    assert found["gamma"].shape == (1, 1, 4)
    means = [BATCHES[0][part::2].mean(0) for part in range(2)]
    assert_close(found["moving_mean"][0, 0], 0.01 * np.mean(means, 0))


def test_virtual_batches_do_not_matter_while_not_training(session: tf.Session) -> None:
    y = normalized(BATCHES[0][:5], virtual_batch_size=3)
    session.run(tf.global_variables_initializer())
    assert_close(session.run(y), BATCHES[0][:5] / np.sqrt(1 + EPSILON))


def test_an_adjustment_comes_before_gamma_and_beta(session: tf.Session) -> None:
    def adjustment(shape: Any) -> Any:
        return tf.fill([shape[0], 1], 2.0), tf.constant(0.5)

    start = {"gamma_initializer": tf.constant_initializer(3.0), "beta_initializer": tf.constant_initializer(-1.0)}
    (got,) = trained(session, BATCHES[:1], adjustment=adjustment, **start)
    assert_close(got, (2 * plain(BATCHES[0]) + 0.5) * 3 - 1)


def test_an_adjustment_is_for_training_alone(session: tf.Session) -> None:
    y = normalized(BATCHES[0], adjustment=lambda shape: (2.0, 1.0))
    session.run(tf.global_variables_initializer())
    assert_close(session.run(y), BATCHES[0] / np.sqrt(1 + EPSILON))


def test_several_axes_have_means_of_their_own(session: tf.Session) -> None:
    image = RANDOM.normal(1, 2, (5, 3, 2, 4)).astype(np.float32)
    (got,) = trained(session, [image], axis=[1, 3])
    assert_close(got, plain(image, (0, 2)))
    assert values(session)["gamma"].shape == (1, 3, 1, 4)


def test_the_function_of_contrib_renormalises(session: tf.Session) -> None:
    with tf.variable_scope("net"):
        y = tf.contrib.layers.batch_norm(BATCHES[0], renorm=True, renorm_decay=0.8, is_training=True)
    session.run(tf.global_variables_initializer())
    assert_close(session.run(y), BATCHES[0])
    assert "net/BatchNorm/renorm_stddev" in [v.op.name for v in tf.global_variables()]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: normalized(BATCHES[0], renorm=True, fused=True), "fused is set with renorm, virtual_batch_size or"),
        (lambda: normalized(BATCHES[0], renorm=True, renorm_clipping={"max": 3}), r"renorm_clipping has \['max'\]"),
        (lambda: normalized(BATCHES[0], virtual_batch_size=0), "virtual_batch_size is 0"),
        (lambda: normalized(BATCHES[0], virtual_batch_size=2, adjustment=print), "no adjustment with it"),
        (lambda: normalized(BATCHES[0], virtual_batch_size=4, training=True), "6 examples for a virtual_batch_size of"),
        (lambda: normalized(BATCHES[0], axis=0, virtual_batch_size=2), "axis 0 must be that of examples"),
    ],
)
def test_wrong_arguments(call: Callable[[], Any], message: str) -> None:
    with pytest.raises(tf.errors.InvalidArgumentError, match=message):
        call()
