"""LeNet (LeCun et al. 1998) with the widths of TensorFlow's tutorial on MNIST, and a network of dense layers."""

from __future__ import annotations

from typing import Any

import timberframe as tf
from timberframe_conformance.bench.models.layers import Layers, max_pool

DIGITS = 10


def lenet(layers: Layers, images: Any) -> Any:
    """Logits of the ten digits."""
    x = images
    for filters in (32, 64):
        x = max_pool(tf.nn.relu(layers.conv(x, filters, 5, bias=True)), 2, 2)
    batch, height, width, channels = (int(d) for d in x.shape)
    x = tf.reshape(x, [batch, height * width * channels])
    return layers.dense(layers.dense(x, 1024, tf.nn.relu), DIGITS, gain=1.0)


def mlp(layers: Layers, pixels: Any, units: tuple[int, ...] = (256, 128)) -> Any:
    """Logits of the ten digits."""
    x = pixels
    for count in units:
        x = layers.dense(x, count, tf.nn.relu)
    return layers.dense(x, DIGITS, gain=1.0)
