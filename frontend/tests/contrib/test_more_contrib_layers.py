"""The rarer layers of tf.contrib.layers: numbers by hand, names of variables, and named outputs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import timberframe as tf

from ..conftest import run

layers, slim = tf.contrib.layers, tf.contrib.slim
RNG = np.random.default_rng(1)
IMAGES = RNG.standard_normal((2, 6, 6, 4)).astype(np.float32)
VOLUMES = RNG.standard_normal((2, 4, 4, 4, 3)).astype(np.float32)
SERIES = RNG.standard_normal((2, 7, 3)).astype(np.float32)
ROWS = RNG.standard_normal((8, 5)).astype(np.float32)
NONE = {"activation_fn": None}


def names() -> list[str]:
    return [v.op.name for v in tf.global_variables()]


@pytest.mark.parametrize(
    ("layer", "wanted", "shape"),
    [
        (lambda: layers.conv1d(SERIES, 5, 3), ["Conv/weights", "Conv/biases"], (2, 7, 5)),
        (lambda: layers.conv3d(VOLUMES, 5, 3, stride=2), ["Conv/weights", "Conv/biases"], (2, 2, 2, 2, 5)),
        (lambda: layers.convolution(SERIES, 5, 3, rate=2), ["Conv/weights", "Conv/biases"], (2, 7, 5)),
        (
            lambda: layers.conv3d_transpose(VOLUMES, 5, 2, 2),
            ["Conv3d_transpose/weights", "Conv3d_transpose/biases"],
            (2, 8, 8, 8, 5),
        ),
        (lambda: layers.conv2d_in_plane(IMAGES, 3), ["ConvInPlane/weights", "ConvInPlane/biases"], (2, 6, 6, 4)),
        (
            lambda: slim.separable_conv2d(IMAGES, None, 3, 2, 2, normalizer_fn=slim.batch_norm, scope="a"),
            [f"a/{n}" for n in ("depthwise_weights", "BatchNorm/beta", "BatchNorm/moving_mean",
                                "BatchNorm/moving_variance")],
            (2, 3, 3, 8),
        ),
        (
            lambda: slim.separable_conv2d(IMAGES, None, 3),
            ["SeparableConv2d/depthwise_weights", "SeparableConv2d/biases"],
            (2, 6, 6, 4),
        ),
        (lambda: layers.bias_add(ROWS), ["BiasAdd/biases"], (8, 5)),
        (lambda: layers.legacy_linear(ROWS, 3), ["fully_connected/weights", "fully_connected/bias"], (8, 3)),
        (lambda: layers.relu6(ROWS, 3), ["fully_connected/weights", "fully_connected/biases"], (8, 3)),
        (lambda: layers.group_norm(IMAGES, 2), ["GroupNorm/beta", "GroupNorm/gamma"], (2, 6, 6, 4)),
        (lambda: layers.instance_norm(IMAGES), ["InstanceNorm/beta", "InstanceNorm/gamma"], (2, 6, 6, 4)),
        (
            lambda: layers.repeat(ROWS, 2, layers.linear, 5),
            [f"Repeat/fully_connected_{i}/{n}" for i in (1, 2) for n in ("weights", "biases")],
            (8, 5),
        ),
        (
            lambda: layers.stack(IMAGES, layers.conv2d, [(2, 3)]),
            [f"Stack/convolution2d_1/{n}" for n in ("weights", "biases")],
            (2, 6, 6, 2),
        ),
    ],
)  # fmt: skip
def test_names_of_variables_and_shapes(
    session: tf.Session, layer: Callable[[], Any], wanted: list[str], shape: tuple[int, ...]
) -> None:
    y = layer()
    assert tuple(y.shape.as_list()) == shape
    assert run(session, y).shape == shape
    assert names() == wanted


def test_the_same_weights_for_all_channels(session: tf.Session) -> None:
    y = layers.conv2d_in_plane(IMAGES, 3, padding="VALID", weights_initializer=tf.ones_initializer(), **NONE)
    sums = sum(IMAGES[:, i : i + 4, j : j + 4] for i in range(3) for j in range(3))
    np.testing.assert_allclose(run(session, y), sums, rtol=1e-4, atol=1e-5)


def test_depthwise_convolution_alone(session: tf.Session) -> None:
    y = layers.separable_conv2d(
        IMAGES, None, 1, 2, weights_initializer=tf.constant_initializer(np.arange(8.0).reshape(1, 1, 4, 2)), **NONE
    )
    np.testing.assert_allclose(run(session, y), np.repeat(IMAGES, 2, -1) * np.arange(8), rtol=1e-5)


def test_group_norm(session: tf.Session) -> None:
    y = run(session, [layers.group_norm(IMAGES, 2, mean_close_to_zero=close) for close in (False, True)])
    groups = IMAGES.reshape(2, 6, 6, 2, 2)
    mean, variance = groups.mean((1, 2, 4), keepdims=True), groups.var((1, 2, 4), keepdims=True)
    wanted = ((groups - mean) / np.sqrt(variance + 1e-6)).reshape(IMAGES.shape)
    np.testing.assert_allclose(y, [wanted, wanted], rtol=1e-4, atol=1e-5)


def test_group_norm_of_channels_that_come_first(session: tf.Session) -> None:
    first = layers.group_norm(IMAGES.transpose(0, 3, 1, 2), 2, channels_axis=-3, reduction_axes=(-2, -1))
    a, b = run(session, [first, layers.group_norm(IMAGES, 2)])
    np.testing.assert_allclose(a.transpose(0, 2, 3, 1), b, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("order", ["NHWC", "NCHW"])
def test_instance_norm(session: tf.Session, order: str) -> None:
    x = IMAGES if order == "NHWC" else IMAGES.transpose(0, 3, 1, 2)
    axes = (1, 2) if order == "NHWC" else (2, 3)
    y = layers.instance_norm(x, param_initializers={"beta": tf.constant_initializer(0.5)}, data_format=order)
    mean, variance = x.mean(axes, keepdims=True), x.var(axes, keepdims=True)
    np.testing.assert_allclose(run(session, y), (x - mean) / np.sqrt(variance + 1e-6) + 0.5, rtol=1e-4, atol=1e-5)


def test_lengths(session: tf.Session) -> None:
    unit, ball = session.run([layers.unit_norm(ROWS, 1), layers.poincare_normalize(ROWS)])
    lengths = np.sqrt((ROWS**2).sum(1, keepdims=True))
    np.testing.assert_allclose(unit, ROWS / np.sqrt(lengths**2 + 1e-7), rtol=1e-5)
    np.testing.assert_allclose(ball, ROWS * np.minimum((1 - 1e-5) / lengths, 1), rtol=1e-5)


def test_moving_variance_of_matrices_has_the_correction_of_the_fused_op(session: tf.Session) -> None:
    y = layers.batch_norm(ROWS, decay=0.0, updates_collections=None)
    got = run(session, y)
    np.testing.assert_allclose(got, (ROWS - ROWS.mean(0)) / np.sqrt(ROWS.var(0) + 1e-3), rtol=1e-4, atol=1e-5)
    moving = next(v for v in tf.global_variables() if v.op.name == "BatchNorm/moving_variance")
    np.testing.assert_allclose(session.run(moving), ROWS.var(0, ddof=1), rtol=1e-4)


def test_batch_weights_count_examples_more_often(session: tf.Session) -> None:
    twice = layers.batch_norm(ROWS[:3], batch_weights=[2.0, 1.0, 1.0], scope="a")
    repeated = layers.batch_norm(ROWS[[0, 0, 1, 2]], fused=False, scope="b")
    a, b = run(session, [twice, repeated])
    np.testing.assert_allclose(a, b[1:], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("is_training", [True, "fed"])
def test_moving_mean_without_its_bias(session: tf.Session, is_training: Any) -> None:
    training = tf.placeholder_with_default(True, []) if is_training == "fed" else True
    y = layers.batch_norm(
        IMAGES, decay=0.9, is_training=training, zero_debias_moving_mean=True, updates_collections=None
    )
    run(session, y)
    assert sorted(names()) == [
        "BatchNorm/BatchNorm/moving_mean/biased", "BatchNorm/BatchNorm/moving_mean/local_step", "BatchNorm/beta",
        "BatchNorm/moving_mean", "BatchNorm/moving_variance",
    ]  # fmt: skip
    moving = next(v for v in tf.global_variables() if v.op.name == "BatchNorm/moving_mean")
    np.testing.assert_allclose(session.run(moving), IMAGES.mean((0, 1, 2)), rtol=1e-4, atol=1e-6)


def test_expected_places_of_features(session: tf.Session) -> None:
    peaks = np.full((1, 3, 5, 2), -100.0, np.float32)
    peaks[0, 0, 4, 0] = peaks[0, 2, 2, 1] = 100.0
    y = layers.spatial_softmax(peaks)
    assert run(session, y) == pytest.approx(np.array([[-1.0, 1.0, 1.0, 0.0]]))
    assert names() == ["spatial_softmax/temperature"]
    first = layers.spatial_softmax(peaks.transpose(0, 3, 1, 2), data_format="NCHW", name="first")
    assert run(session, first) == pytest.approx(np.array([[-1.0, 1.0, 1.0, 0.0]]))


def test_layers_that_change_shapes(session: tf.Session) -> None:
    steps = layers.images_to_sequence(IMAGES)
    again = layers.sequence_to_images(steps, 6)
    first = layers.sequence_to_images(steps, 6, "channels_first")
    most, flat = layers.maxout(IMAGES, 2), layers.inner_flatten(IMAGES, 2)
    sparse = tf.sparse.to_dense(layers.dense_to_sparse([[1, 0, 2], [0, 3, 0]]))
    a, b, c, d, e, f = session.run([steps, again, first, most, flat, sparse])
    np.testing.assert_array_equal(a, IMAGES.transpose(2, 0, 1, 3).reshape(6, 12, 4))
    np.testing.assert_array_equal(b, IMAGES)
    np.testing.assert_array_equal(c, IMAGES.transpose(0, 3, 1, 2))
    np.testing.assert_array_equal(d, IMAGES.reshape(2, 6, 6, 2, 2).max(-1))
    np.testing.assert_array_equal(e, IMAGES.reshape(2, -1))
    assert f.tolist() == [[1, 0, 2], [0, 3, 0]]


def test_pools_of_volumes(session: tf.Session) -> None:
    a, b = session.run([layers.max_pool3d(VOLUMES, 2), layers.avg_pool3d(VOLUMES, 2)])
    blocks = VOLUMES.reshape(2, 2, 2, 2, 2, 2, 2, 3)
    np.testing.assert_allclose(a, blocks.max((2, 4, 6)))
    np.testing.assert_allclose(b, blocks.mean((2, 4, 6)), rtol=1e-4, atol=1e-6)


def test_softmax_along_the_last_axis(session: tf.Session) -> None:
    exponents = np.exp(SERIES)
    np.testing.assert_allclose(
        session.run(layers.softmax(SERIES)), exponents / exponents.sum(-1, keepdims=True), rtol=1e-5
    )


def test_embeddings_that_are_gathered_once(session: tf.Session) -> None:
    got = session.run(layers.embedding_lookup_unique(tf.constant(ROWS), [[1, 1], [0, 1]]))
    np.testing.assert_array_equal(got, ROWS[[[1, 1], [0, 1]]])


def test_a_bag_of_words_leaves_out_padding(session: tf.Session) -> None:
    made = [layers.bow_encoder([[1, 2], [0, -1]], 3, 5), tf.global_variables()[0]]
    assert names() == ["BowEncoder/embeddings"]
    bags, table = run(session, made)
    np.testing.assert_allclose(bags, [table[[1, 2]].mean(0), table[0]], rtol=1e-5)


def test_summaries_of_activations(session: tf.Session) -> None:
    y = layers.fully_connected(ROWS, 3, tf.nn.relu6, outputs_collections=tf.GraphKeys.ACTIVATIONS)
    layers.summarize_activations()
    layers.summarize_tensor(tf.reduce_sum(y))
    assert layers.summarize_tensor(tf.constant("text")) is None
    made = [s.op.name for s in tf.get_collection(tf.GraphKeys.SUMMARIES)]
    scope = "fully_connected/Relu6"
    assert made == [f"{scope}/zeros", f"{scope}/sixes", f"{scope}/activation", "Sum_summary"]


def test_outputs_by_the_names_of_their_scopes(session: tf.Session) -> None:
    with tf.variable_scope("net"):
        x = layers.conv2d(IMAGES, 2, 3, scope="conv1", outputs_collections="ends")
        pooled = layers.max_pool2d(x, 2, scope="pool1", outputs_collections="ends")
    ends = slim.utils.convert_collection_to_dict("ends", clear_collection=True)
    assert ends == {"net/conv1": x, "net/pool1": pooled}
    assert tf.get_collection("ends") == []


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: layers.conv1d(IMAGES, 2, 3), "3 axes are required"),
        (lambda: layers.convolution(ROWS, 2, 3), "3 to 5 axes are required"),
        (lambda: layers.group_norm(IMAGES, 3), "groups is 3"),
        (lambda: layers.instance_norm(ROWS), "3 axes at least"),
        (lambda: layers.maxout(IMAGES, 3), "axis -1 has 4 channels; a multiple of num_units, 3"),
        (lambda: layers.unit_norm(ROWS, 2), "dim is 2"),
        (lambda: layers.inner_flatten(ROWS, 3), "new_rank is 3"),
        (lambda: slim.utils.two_element_tuple([1, 2, 3]), "2 positive integers"),
    ],
)
def test_wrong_arguments(call: Callable[[], Any], message: str) -> None:
    with pytest.raises(tf.errors.InvalidArgumentError, match=message):
        call()
