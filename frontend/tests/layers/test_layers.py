"""tf.layers: what layers compute, and how their variables and operations are named."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import timberframe as tf

from ..conftest import run

pytestmark = pytest.mark.usefixtures("session")

WINDOWS = [
    (tf.layers.conv1d, 1, {"filters": 4}),
    (tf.layers.conv2d, 2, {"filters": 4}),
    (tf.layers.conv3d, 3, {"filters": 4}),
    (tf.layers.conv2d_transpose, 2, {"filters": 4}),
    (tf.layers.conv3d_transpose, 3, {"filters": 4}),
    (tf.layers.separable_conv1d, 1, {"filters": 4, "depth_multiplier": 2}),
    (tf.layers.separable_conv2d, 2, {"filters": 4, "depth_multiplier": 2}),
]
POOLS = [
    (tf.layers.max_pooling1d, 1), (tf.layers.max_pooling2d, 2), (tf.layers.max_pooling3d, 3),
    (tf.layers.average_pooling1d, 1), (tf.layers.average_pooling2d, 2), (tf.layers.average_pooling3d, 3),
]  # fmt: skip

IMAGE = np.zeros((1, 4, 4, 1), np.float32)


def names() -> list[str]:
    return [v.op.name for v in tf.global_variables()]


def test_dense_is_a_product_and_a_bias(session: tf.Session) -> None:
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    layer = tf.layers.Dense(4, activation=tf.nn.relu, bias_initializer=tf.constant_initializer(0.5))
    y = layer(x)
    got, kernel = run(session, [y, layer.kernel])
    np.testing.assert_allclose(got, np.maximum(x @ kernel + 0.5, 0), rtol=1e-6)


def test_dense_takes_the_last_axis_of_higher_ranks(session: tf.Session) -> None:
    x = np.ones((2, 5, 3), np.float32)
    layer = tf.layers.Dense(4)
    y = layer(tf.placeholder_with_default(x, [None, 5, 3]))
    assert y.shape.as_list() == [None, 5, 4]
    got, kernel = run(session, [y, layer.kernel])
    np.testing.assert_allclose(got, x @ kernel, rtol=1e-6)


def test_scopes_are_numbered_and_named_as_in_tensorflow() -> None:
    x = tf.zeros([2, 3])
    first, second, named = tf.layers.dense(x, 1), tf.layers.dense(x, 1), tf.layers.dense(x, 1, name="fc")
    assert names() == ["dense/kernel", "dense/bias", "dense_1/kernel", "dense_1/bias", "fc/kernel", "fc/bias"]
    assert [t.op.name for t in (first, second, named)] == ["dense/BiasAdd", "dense_1/BiasAdd", "fc/BiasAdd"]


def test_scopes_around_are_part_of_the_names() -> None:
    with tf.variable_scope("net"):
        y = tf.layers.conv2d(tf.zeros([1, 4, 4, 1]), 2, 3)
    assert names() == ["net/conv2d/kernel", "net/conv2d/bias"]
    assert y.op.name == "net/conv2d/BiasAdd"


def test_reuse_takes_the_same_variables(session: tf.Session) -> None:
    x = tf.ones([2, 3])
    first = tf.layers.dense(x, 2, name="fc")
    again = tf.layers.dense(x, 2, name="fc", reuse=True)
    assert names() == ["fc/kernel", "fc/bias"]
    a, b = run(session, [first, again])
    assert a.tolist() == b.tolist()


def test_the_same_name_without_reuse_is_refused() -> None:
    tf.layers.dense(tf.ones([2, 3]), 2, name="fc")
    with pytest.raises(tf.errors.InvalidArgumentError, match="'fc/kernel': exists already"):
        tf.layers.dense(tf.ones([2, 3]), 2, name="fc")


def test_a_layer_object_has_its_variables_once(session: tf.Session) -> None:
    layer = tf.layers.Dense(2, use_bias=False)
    a, b = layer(tf.ones([1, 3])), layer(tf.ones([1, 3]))
    assert names() == ["dense/kernel"]
    assert [v.op.name for v in layer.trainable_variables] == ["dense/kernel"]
    one, two = run(session, [a, b])
    assert one.tolist() == two.tolist()


def test_regularizers_add_their_loss_once(session: tf.Session) -> None:
    for reuse in (None, True):
        tf.layers.dense(
            tf.ones([1, 2]), 2, kernel_initializer=tf.ones_initializer(), name="fc", reuse=reuse,
            kernel_regularizer=lambda w: 0.5 * tf.reduce_sum(w),
        )  # fmt: skip
    (loss,) = tf.get_collection(tf.GraphKeys.REGULARIZATION_LOSSES)
    assert run(session, loss) == 2.0


def test_frozen_layers_are_not_trained() -> None:
    tf.layers.dense(tf.ones([1, 2]), 2, trainable=False)
    assert tf.trainable_variables() == []
    assert names() == ["dense/kernel", "dense/bias"]


@pytest.mark.parametrize(("layer", "rank", "more"), WINDOWS, ids=lambda x: getattr(x, "__name__", ""))
@pytest.mark.parametrize("padding", ["valid", "same"])
@pytest.mark.parametrize("strides", [1, 2])
def test_shapes_known_before_a_run_are_those_of_the_run(
    session: tf.Session, layer: Callable[..., Any], rank: int, more: dict[str, Any], padding: str, strides: int
) -> None:
    x = np.random.default_rng(0).standard_normal((2, *[7] * rank, 3)).astype(np.float32)
    y = layer(
        tf.placeholder_with_default(x, [None, *[7] * rank, 3]), kernel_size=3, strides=strides, padding=padding, **more
    )
    assert y.shape.as_list()[1:] == list(run(session, y).shape)[1:]


@pytest.mark.parametrize(("layer", "rank"), POOLS, ids=lambda x: getattr(x, "__name__", ""))
def test_pools_along_each_axis(session: tf.Session, layer: Callable[..., Any], rank: int) -> None:
    x = np.random.default_rng(0).standard_normal((2, *[4] * rank, 3)).astype(np.float32)
    split = x.reshape(2, *[2, 2] * rank, 3)
    axes = tuple(range(2, 2 * rank + 1, 2))
    wanted = split.max(axes) if "max" in layer.__name__ else split.mean(axes)
    np.testing.assert_allclose(run(session, layer(x, 2, 2)), wanted, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    "layer",
    [
        lambda x, f: tf.layers.conv2d(x, 4, 3, data_format=f),
        lambda x, f: tf.layers.separable_conv2d(x, 4, 3, data_format=f),
        lambda x, f: tf.layers.conv2d_transpose(x, 4, 3, 2, data_format=f),
        lambda x, f: tf.layers.max_pooling2d(x, 2, 2, data_format=f),
    ],
    ids=["conv2d", "separable_conv2d", "conv2d_transpose", "max_pooling2d"],
)
def test_channels_first_computes_the_same(session: tf.Session, layer: Callable[[Any, str], Any]) -> None:
    x = np.random.default_rng(0).standard_normal((2, 5, 5, 3)).astype(np.float32)
    with tf.variable_scope("net"):
        last = layer(x, "channels_last")
    with tf.variable_scope("net", reuse=True):
        first = layer(x.transpose(0, 3, 1, 2), "channels_first")
    a, b = run(session, [last, first])
    np.testing.assert_allclose(b.transpose(0, 2, 3, 1), a, rtol=1e-5, atol=1e-6)


def test_dropout_drops_in_training_alone(session: tf.Session) -> None:
    x, training = np.ones((100, 100), np.float32), tf.placeholder(tf.bool, [])
    y = tf.layers.dropout(x, rate=0.25, training=training)
    assert session.run(y, {training: False}).tolist() == x.tolist()
    dropped = session.run(y, {training: True})
    assert set(np.unique(dropped)) == {0.0, np.float32(4 / 3)}
    assert 0.7 < (dropped > 0).mean() < 0.8


def test_flatten_keeps_the_batch(session: tf.Session) -> None:
    x = tf.placeholder(tf.float32, [None, 2, 3])
    y = tf.layers.flatten(x)
    assert y.shape.as_list() == [None, 6]
    assert session.run(y, {x: np.arange(12).reshape(2, 2, 3)}).tolist() == np.arange(12).reshape(2, 6).tolist()


@pytest.mark.parametrize("fused", [True, False])
def test_batch_normalization_in_training_and_after(session: tf.Session, fused: bool) -> None:
    rng = np.random.default_rng(0)
    value = (rng.standard_normal((8, 5, 5, 3)) * 2 + 1).astype(np.float32)
    x, training = tf.placeholder(tf.float32, [None, 5, 5, 3]), tf.placeholder(tf.bool, [])
    y = tf.layers.batch_normalization(x, momentum=0.9, training=training, fused=fused)
    updates = tf.get_collection(tf.GraphKeys.UPDATE_OPS)
    assert len(updates) == 2
    got, _ = run(session, [y, updates], {x: value, training: True})
    mean, variance = value.mean((0, 1, 2)), value.var((0, 1, 2))
    np.testing.assert_allclose(got, (value - mean) / np.sqrt(variance + 1e-3), rtol=1e-4, atol=1e-5)
    moving = {v.op.name.rpartition("/")[2]: session.run(v) for v in tf.global_variables()}
    np.testing.assert_allclose(moving["moving_mean"], 0.1 * mean, rtol=1e-4)
    unbiased = variance * 200 / 199 if fused else variance
    np.testing.assert_allclose(moving["moving_variance"], 0.9 + 0.1 * unbiased, rtol=1e-4)
    after = session.run(y, {x: value, training: False})
    wanted = (value - moving["moving_mean"]) / np.sqrt(moving["moving_variance"] + 1e-3)
    np.testing.assert_allclose(after, wanted, rtol=1e-4, atol=1e-5)


def test_batch_normalization_outside_training_updates_nothing() -> None:
    tf.layers.batch_normalization(tf.zeros([2, 3]), training=False)
    assert tf.get_collection(tf.GraphKeys.UPDATE_OPS) == []
    assert names() == [f"batch_normalization/{v}" for v in ("gamma", "beta", "moving_mean", "moving_variance")]


def test_a_network_learns(session: tf.Session) -> None:
    rng = np.random.default_rng(0)
    x = rng.standard_normal((64, 8, 8, 1)).astype(np.float32)
    labels = (x[:, 2:6, 2:6].mean((1, 2, 3)) > 0).astype(np.int64)
    tf.set_random_seed(1)
    h = tf.layers.conv2d(x, 4, 3, activation=tf.nn.relu)
    h = tf.layers.batch_normalization(tf.layers.max_pooling2d(h, 2, 2), training=True)
    loss = tf.losses.sparse_softmax_cross_entropy(labels, tf.layers.dense(tf.layers.flatten(h), 2))
    with tf.control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS)):
        train = tf.train.AdamOptimizer(0.02).minimize(loss)
    before = run(session, loss)
    for _ in range(20):
        session.run(train)
    assert session.run(loss) < before / 4


def test_layers_of_ones_own(session: tf.Session) -> None:
    class Scale(tf.layers.Layer):
        def build(self, input_shape: Any) -> None:
            self.factor = self.add_weight("factor", input_shape[-1:], initializer=tf.constant_initializer(3.0))
            self.built = True

        def call(self, inputs: Any, plus: float = 0.0) -> Any:
            return inputs * self.factor + plus

    assert run(session, Scale()(tf.ones([1, 2]), plus=1.0)).tolist() == [[4.0, 4.0]]
    assert names() == ["scale/factor"]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: tf.layers.dense(tf.zeros([3]), 2), r"layer 'dense': input 'zeros:0' has shape \(3,\); rank 2 or more"),
        (lambda: tf.layers.dense(tf.placeholder(tf.float32, [2, None]), 2), "along axis -1 must be known"),
        (lambda: tf.layers.conv2d(tf.zeros([1, 4, 4]), 2, 3), r"has shape \(1, 4, 4\); rank 4 is required"),
        (lambda: tf.layers.conv2d(IMAGE, 2, (3, 3, 3)), r"kernel_size is \(3, 3, 3\); a positive integer, or 2"),
        (lambda: tf.layers.conv2d(IMAGE, 2, 3, padding="full"), "padding is 'full'; 'valid' or 'same'"),
        (lambda: tf.layers.max_pooling2d(IMAGE, 2, 2, data_format="NHWC"), "data_format is 'NHWC'"),
        (lambda: tf.layers.batch_normalization(tf.zeros([2, 3]), renorm=True, fused=True), "leave it out"),
        (lambda: tf.layers.batch_normalization(tf.zeros([2, 3]), axis=2), "axis is 2 for an input of shape"),
        (lambda: tf.layers.Dense(2).scope_name, "layer 'dense': has no scope before its first call"),
        (lambda: tf.layers.Dense(2.5), "units is 2.5; an integer"),
    ],
)  # fmt: skip
def test_wrong_arguments(call: Callable[[], Any], message: str) -> None:
    with pytest.raises(tf.errors.OpError, match=message):
        call()


def test_another_size_than_at_the_first_call_is_refused() -> None:
    layer = tf.layers.Dense(2)
    layer(tf.zeros([1, 3]))
    with pytest.raises(tf.errors.InvalidArgumentError, match="size 3 is required along axis -1"):
        layer(tf.zeros([1, 4]))


def test_windows_may_be_sizes_of_a_shape() -> None:
    x = tf.zeros([2, 4, 6, 1])
    assert tf.layers.average_pooling2d(x, x.shape[1:3], 1).shape.as_list() == [2, 1, 1, 1]
    assert tf.layers.max_pooling2d(x, x.shape[1], np.int64(2)).shape.as_list() == [2, 1, 2, 1]
    with pytest.raises(tf.errors.InvalidArgumentError, match="pool_size is True; a positive integer, or 2 of them"):
        tf.layers.max_pooling2d(x, True, 1)


def test_programs_may_keep_attributes_with_tensors() -> None:
    x = tf.zeros([2])
    x.scope = "hidden"
    assert x.scope == "hidden"
