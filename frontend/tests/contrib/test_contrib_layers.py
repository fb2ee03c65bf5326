"""tf.contrib.layers and slim: names of variables, defaults, and argument scopes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import timberframe as tf

from ..conftest import run

layers, slim = tf.contrib.layers, tf.contrib.slim
IMAGES = np.random.default_rng(0).standard_normal((2, 6, 6, 3)).astype(np.float32)


def names() -> list[str]:
    return [v.op.name for v in tf.global_variables()]


def test_fully_connected(session: tf.Session) -> None:
    y = layers.fully_connected([[1.0, -2.0]], 3, biases_initializer=tf.constant_initializer(0.5))
    got, (weights, _) = run(session, [y, tf.global_variables()])
    np.testing.assert_allclose(got, np.maximum(np.array([[1.0, -2.0]]) @ weights + 0.5, 0), rtol=1e-5)
    assert names() == ["fully_connected/weights", "fully_connected/biases"]
    assert tf.get_collection(tf.GraphKeys.MODEL_VARIABLES) == tf.global_variables()


@pytest.mark.parametrize(
    ("layer", "wanted"),
    [
        (lambda: layers.conv2d(IMAGES, 4, 3), ["Conv/weights", "Conv/biases"]),
        (lambda: layers.conv2d_transpose(IMAGES, 4, 3, 2), ["Conv2d_transpose/weights", "Conv2d_transpose/biases"]),
        (
            lambda: layers.separable_conv2d(IMAGES, 4, 3),
            [f"SeparableConv2d/{n}" for n in ("depthwise_weights", "pointwise_weights", "biases")],
        ),
        (lambda: layers.layer_norm(IMAGES), ["LayerNorm/beta", "LayerNorm/gamma"]),
        (lambda: layers.batch_norm(IMAGES), [f"BatchNorm/{n}" for n in ("beta", "moving_mean", "moving_variance")]),
        (
            lambda: layers.conv2d(IMAGES, 4, 3, normalizer_fn=layers.batch_norm, scope="a"),
            [f"a/{n}" for n in ("weights", "BatchNorm/beta", "BatchNorm/moving_mean", "BatchNorm/moving_variance")],
        ),
        (
            lambda: layers.stack(IMAGES[:, 0, 0], layers.fully_connected, [4, 2], scope="fc"),
            [f"fc/fc_{i}/{n}" for i in (1, 2) for n in ("weights", "biases")],
        ),
        (
            lambda: slim.repeat(IMAGES, 2, slim.conv2d, 3, [3, 3], scope="conv1"),
            [f"conv1/conv1_{i}/{n}" for i in (1, 2) for n in ("weights", "biases")],
        ),
    ],
)
def test_variables_are_named_as_in_tensorflow(session: tf.Session, layer: Callable[[], Any], wanted: list[str]) -> None:
    assert np.isfinite(run(session, layer())).all()
    assert names() == wanted


def test_arguments_from_a_scope(session: tf.Session) -> None:
    with slim.arg_scope([slim.conv2d], padding="VALID", weights_regularizer=slim.l2_regularizer(0.1)):
        y = slim.conv2d(IMAGES, 4, 3)
        z = slim.conv2d(IMAGES, 4, 3, padding="SAME")
    assert y.shape.as_list() == [2, 4, 4, 4]
    assert z.shape.as_list() == [2, 6, 6, 4]
    assert len(tf.get_collection(tf.GraphKeys.REGULARIZATION_LOSSES)) == 2


def test_layer_norm(session: tf.Session) -> None:
    got = run(session, layers.layer_norm(IMAGES))
    mean, variance = IMAGES.mean((1, 2, 3), keepdims=True), IMAGES.var((1, 2, 3), keepdims=True)
    np.testing.assert_allclose(got, (IMAGES - mean) / np.sqrt(variance), rtol=1e-4, atol=1e-5)


def test_batch_norm_updates_in_place(session: tf.Session) -> None:
    y = layers.batch_norm(IMAGES, decay=0.5, updates_collections=None)
    run(session, y)
    moving = next(v for v in tf.global_variables() if v.op.name.endswith("moving_mean"))
    np.testing.assert_allclose(session.run(moving), 0.5 * IMAGES.mean((0, 1, 2)), rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize(
    ("collections", "joined"), [(None, []), ("own", ["own"]), (["own", "update_ops"], ["own", "update_ops"])]
)
def test_batch_norm_updates_join_the_collections_that_are_given_alone(collections: Any, joined: list[str]) -> None:
    with tf.Graph().as_default():
        layers.batch_norm(IMAGES, updates_collections=collections)
        assert [key for key in ("own", "update_ops") if len(tf.get_collection(key)) == 2] == joined
        assert len(tf.get_collection("update_ops")) == 2 * ("update_ops" in joined)


def test_layers_without_variables(session: tf.Session) -> None:
    pooled, mean = layers.max_pool2d(IMAGES, 2), layers.avg_pool2d(IMAGES, [2, 2])
    flat, kept = layers.flatten(IMAGES), layers.dropout(IMAGES, is_training=False)
    codes = layers.one_hot_encoding([1, 0], 2, outputs_collections="codes")
    a, b, c, d, e = session.run([pooled, mean, flat, kept, codes])
    blocks = IMAGES.reshape(2, 3, 2, 3, 2, 3)
    np.testing.assert_allclose(a, blocks.max((2, 4)))
    np.testing.assert_allclose(b, blocks.mean((2, 4)), rtol=1e-4, atol=1e-6)
    assert c.shape == (2, 108)
    assert d.tolist() == IMAGES.tolist()
    assert e.tolist() == [[0, 1], [1, 0]]
    assert tf.get_collection("codes") == [codes]


def test_regularizers(session: tf.Session) -> None:
    w = tf.constant([[1.0, -2.0]])
    made = [layers.l1_regularizer(0.5)(w), layers.l2_regularizer(0.5)(w), layers.l1_l2_regularizer(1.0, 2.0)(w)]
    assert session.run(made) == [1.5, 1.25, 8.0]
    assert layers.l2_regularizer(0.0)(w) is None
    assert session.run(layers.apply_regularization(layers.l1_regularizer(1.0), [w, w])) == 6.0


@pytest.mark.parametrize("uniform", [True, False])
def test_xavier_has_the_variance_of_glorot(session: tf.Session, uniform: bool) -> None:
    drawn = session.run(layers.xavier_initializer(uniform, seed=1)([300, 500]))
    assert drawn.var() == pytest.approx(2 / 800, rel=0.05)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: layers.conv2d(IMAGES, 2, 3, data_format="NWHC"), "data_format is 'NWHC'"),
        (lambda: layers.l2_regularizer(-1.0), "scale is -1.0; it must not be negative"),
        (lambda: layers.variance_scaling_initializer(mode="FAN"), "mode is 'FAN'"),
        (lambda: layers.layer_norm(IMAGES, begin_norm_axis=4), "begin_norm_axis 4"),
        (lambda: layers.stack(IMAGES, layers.conv2d, []), "stack_args is empty"),
    ],
)
def test_wrong_arguments(call: Callable[[], Any], message: str) -> None:
    with pytest.raises(tf.errors.InvalidArgumentError, match=message):
        call()
