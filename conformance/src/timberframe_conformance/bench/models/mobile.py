"""MobileNet V1 (Howard et al. 2017), V2 (Sandler et al. 2018) and V3 small (Howard et al. 2019)."""

from __future__ import annotations

from typing import Any

import timberframe as tf
from timberframe_conformance.bench.models.layers import (
    CLASSES,
    Activation,
    Layers,
    hard_sigmoid,
    hard_swish,
    mean,
    pad,
    pad_for_stride,
)

V1_MULTIPLIER = 0.25
V1_BLOCKS = ((64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2), *5 * ((512, 1),), (1024, 2), (1024, 1))
"""Channels and stride."""
V2_BLOCKS = ((16, 1, 1, 1), (24, 2, 2, 6), (32, 3, 2, 6), (64, 4, 2, 6), (96, 3, 1, 6), (160, 3, 2, 6), (320, 1, 1, 6))
"""Channels, number of blocks, stride of the first, expansion."""
V3_BLOCKS = (
    (16, 16, 3, 2, True, "relu"), (72, 24, 3, 2, False, "relu"), (88, 24, 3, 1, False, "relu"),
    (96, 40, 5, 2, True, "hard_swish"), (240, 40, 5, 1, True, "hard_swish"), (240, 40, 5, 1, True, "hard_swish"),
    (120, 48, 5, 1, True, "hard_swish"), (144, 48, 5, 1, True, "hard_swish"), (288, 96, 5, 2, True, "hard_swish"),
    (576, 96, 5, 1, True, "hard_swish"), (576, 96, 5, 1, True, "hard_swish"),
)  # fmt: skip
"""Channels within, channels after, size, stride, squeeze and excitation, activation."""
V3_ACTIVATIONS: dict[str, Activation] = {"relu": tf.nn.relu, "hard_swish": hard_swish}


def mobilenet_v1(layers: Layers, images: Any) -> Any:
    """Returns probabilities of the classes, by a quarter of the channels."""

    def conv(x: Any, filters: int, size: int = 1, stride: int = 1) -> Any:
        y = layers.conv(x, int(filters * V1_MULTIPLIER), size, stride)
        return tf.nn.relu6(layers.batch_norm(y))

    x = conv(images, 32, 3, 2)
    for filters, stride in V1_BLOCKS:
        padding = "SAME" if stride == 1 else "VALID"
        y = layers.depthwise(x if stride == 1 else pad(x, 0, 1), 3, stride, padding)
        x = conv(tf.nn.relu6(layers.batch_norm(y)), filters)
    x = layers.conv(mean(x, keep=True), CLASSES, bias=True)
    return tf.nn.softmax(tf.reshape(x, [int(x.shape[0]), int(x.shape[3])]))


def mobilenet_v2(layers: Layers, images: Any) -> Any:
    """Returns probabilities of the classes."""
    x = tf.nn.relu6(layers.batch_norm(layers.conv(images, 32, 3, 2)))
    before = 32
    for channels, count, stride, expansion in V2_BLOCKS:
        for i in range(count):
            x = _inverted(layers, x, before, channels, stride if i == 0 else 1, expansion)
            before = channels
    return layers.classify(tf.nn.relu6(layers.batch_norm(layers.conv(x, 1280))))


def _inverted(layers: Layers, x: Any, before: int, channels: int, stride: int, expansion: int) -> Any:
    """More channels, a depthwise convolution, fewer channels; the input is added where it fits."""
    y = x
    if expansion > 1:
        y = tf.nn.relu6(layers.batch_norm(layers.conv(y, expansion * before)))
    padding = "SAME" if stride == 1 else "VALID"
    y = layers.depthwise(y if stride == 1 else pad_for_stride(y, 3), 3, stride, padding)
    y = tf.nn.relu6(layers.batch_norm(y))
    y = layers.batch_norm(layers.conv(y, channels))
    return x + y if stride == 1 and before == channels else y


def mobilenet_v3_small(layers: Layers, images: Any) -> Any:
    """Returns probabilities of the classes."""
    x = hard_swish(layers.batch_norm(layers.conv(images, 16, 3, 2)))
    before = 16
    for i, (expanded, channels, size, stride, squeezed, activation) in enumerate(V3_BLOCKS):
        act, y = V3_ACTIVATIONS[activation], x
        if i > 0:
            y = act(layers.batch_norm(layers.conv(y, expanded)))
        padding = "SAME" if stride == 1 else "VALID"
        y = layers.depthwise(y if stride == 1 else pad_for_stride(y, size), size, stride, padding)
        y = act(layers.batch_norm(y))
        if squeezed:
            y = _excited(layers, y, expanded)
        y = layers.batch_norm(layers.conv(y, channels))
        x = x + y if stride == 1 and before == channels else y
        before = channels
    x = hard_swish(layers.batch_norm(layers.conv(x, 576)))
    x = hard_swish(layers.conv(mean(x, keep=True), 1024, bias=True))
    x = layers.conv(x, CLASSES, bias=True)
    return tf.nn.softmax(tf.reshape(x, [int(x.shape[0]), int(x.shape[3])]))


def divisible(channels: float, divisor: int = 8) -> int:
    """Returns the nearest multiple that is not more than a tenth below, as the authors round channels."""
    nearest = max(divisor, int(channels + divisor / 2) // divisor * divisor)
    return nearest + divisor if nearest < 0.9 * channels else nearest


def _excited(layers: Layers, x: Any, channels: int) -> Any:
    """Returns each channel by a factor that follows from the means of all (squeeze and excitation)."""
    y = tf.nn.relu(layers.conv(mean(x, keep=True), divisible(channels * 0.25), bias=True))
    return x * hard_sigmoid(layers.conv(y, channels, bias=True))
