"""Training steps: networks with a loss and an optimizer's update, on data that is made up."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

import timberframe as tf
from timberframe_conformance.bench.models.layers import Layers, max_pool, mean
from timberframe_conformance.bench.models.recurrent import lstm
from timberframe_conformance.bench.models.residual import EPSILON, EXPANSION
from timberframe_conformance.bench.models.small import DIGITS, lenet, mlp
from timberframe_conformance.bench.models.transformer import Sizes, block

Shape = tuple[int, ...]
Built = tuple[Mapping[Any, np.ndarray], list[Any], Any]
"""Feeds; loss and the lengths of all variables' gradients; step."""

ADAM_RATE, MOMENTUM_RATE, MOMENTUM = 1e-4, 1e-2, 0.9
AVERAGE_DECAY = 0.99
BLOCK_CHANNELS = 64


@dataclass(frozen=True)
class Step:
    """How a training graph is built. shape, small: of the inputs with their batch, and in small versions."""

    network: Callable[[Layers, Any], Any]
    shape: Shape
    small: Shape
    momentum: bool = False

    def build(self, layers: Layers, rng: np.random.Generator, shape: Shape) -> Built:
        """Returns the network, cross entropy with random classes, and the update."""
        values = rng.standard_normal(shape, np.float32)
        inputs = tf.placeholder(tf.float32, shape, name="input0")
        labels = tf.placeholder(tf.int32, [shape[0]], name="input1")
        logits = self.network(layers, inputs)
        losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits)
        loss = tf.reduce_mean(losses)
        chosen = tf.train.MomentumOptimizer(MOMENTUM_RATE, MOMENTUM) if self.momentum else None
        optimizer = chosen or tf.train.AdamOptimizer(ADAM_RATE)
        gradients = optimizer.compute_gradients(loss)
        with tf.control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS)):
            step = optimizer.apply_gradients(gradients, name="step")
        lengths = tf.stack([tf.norm(gradient) for gradient, _ in gradients], name="lengths")
        classes = rng.integers(0, int(logits.shape[1]), shape[0]).astype(np.int32)
        return {inputs: values, labels: classes}, [tf.identity(loss, name="loss"), lengths], step


def _mlp(layers: Layers, pixels: Any) -> Any:
    return mlp(layers, pixels, (512, 512))


def _lstm(layers: Layers, x: Any) -> Any:
    """Classes by the mean of the outputs."""
    return layers.dense(tf.reduce_mean(lstm(layers, x), 1), DIGITS, gain=1.0)


def _residual(layers: Layers, images: Any) -> Any:
    """Returns a first convolution and two blocks of ResNet-50, which normalise by their batch."""
    x = tf.nn.relu(_batch_norm(layers, layers.conv(images, BLOCK_CHANNELS, 3, 2)))
    for _ in range(2):
        x = _bottleneck(layers, max_pool(x, 3, 1, "SAME"), BLOCK_CHANNELS)
    return layers.dense(mean(x), DIGITS, gain=1.0)


def _bottleneck(layers: Layers, x: Any, channels: int) -> Any:
    wide = layers.channels(EXPANSION * channels)
    shortcut = x
    if int(x.shape[3]) != wide:
        shortcut = _batch_norm(layers, layers.conv(x, EXPANSION * channels))
    y = tf.nn.relu(_batch_norm(layers, layers.conv(x, channels)))
    y = tf.nn.relu(_batch_norm(layers, layers.conv(y, channels, 3)))
    return tf.nn.relu(shortcut + _batch_norm(layers, layers.conv(y, EXPANSION * channels)))


def _batch_norm(layers: Layers, x: Any) -> Any:
    """Batch normalisation by the batch itself, whose statistics move the averages."""
    width = int(x.shape[3])
    gamma, beta = layers.weight(np.ones(width)), layers.weight(np.zeros(width))
    y, *found = tf.nn.fused_batch_norm(x, gamma, beta, epsilon=EPSILON, is_training=True)
    for start, value in zip((np.zeros(width), np.ones(width)), found, strict=True):
        average = layers.weight(start, trainable=False)
        change = (average - value) * (1 - AVERAGE_DECAY)
        tf.add_to_collection(tf.GraphKeys.UPDATE_OPS, tf.assign_sub(average, change).op)
    return y


def _transformer(layers: Layers, x: Any) -> Any:
    """Classes by the mean of what a block of attention makes of vectors [batch, length, width]."""
    batch, length, width = (int(d) for d in x.shape)
    flat = block(layers, tf.reshape(x, [batch * length, width]), (batch, length), Sizes())
    return layers.dense(tf.reduce_mean(tf.reshape(flat, [batch, length, width]), 1), DIGITS, gain=1.0)


STEPS: dict[str, Step] = {
    "MLP training": Step(_mlp, (128, 784), (8, 20)),
    "CNN training": Step(lenet, (64, 28, 28, 1), (4, 12, 12, 1)),
    "LSTM training": Step(_lstm, (32, 16, 32), (4, 5, 6)),
    "ResNet block training": Step(_residual, (8, 32, 32, 3), (4, 8, 8, 3), momentum=True),
    "transformer block training": Step(_transformer, (8, 32, 128), (3, 4, 16)),
}
