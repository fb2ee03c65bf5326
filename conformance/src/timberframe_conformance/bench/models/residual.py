"""ResNet-50 (He et al. 2015), with the strides and biases of Keras' version."""

from __future__ import annotations

from typing import Any

import timberframe as tf
from timberframe_conformance.bench.models.layers import Layers, max_pool, pad

EPSILON = 1.001e-5
STAGES = ((64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2))
"""Channels within the blocks, number of blocks, stride of the first."""
EXPANSION = 4
BRANCH_GAIN = 0.2
"""Factor at the end of a branch, so that the sum over 16 blocks stays small."""


def resnet50(layers: Layers, images: Any) -> Any:
    """Returns probabilities of the classes."""
    x = layers.conv(pad(images, 3, 3), 64, 7, 2, "VALID", bias=True)
    x = tf.nn.relu(layers.batch_norm(x, EPSILON))
    x = max_pool(pad(x, 1, 1), 3, 2)
    for channels, count, stride in STAGES:
        for i in range(count):
            x = bottleneck(layers, x, channels, stride if i == 0 else 1, project=i == 0)
    return layers.classify(x)


def bottleneck(layers: Layers, x: Any, channels: int, stride: int, project: bool) -> Any:
    """Returns a 1x1, a 3x3 and a 1x1 convolution plus a shortcut, which is a convolution if shapes change."""
    shortcut = x
    if project:
        shortcut = layers.batch_norm(layers.conv(x, EXPANSION * channels, 1, stride, bias=True), EPSILON)
    y = tf.nn.relu(layers.batch_norm(layers.conv(x, channels, 1, stride, bias=True), EPSILON))
    y = tf.nn.relu(layers.batch_norm(layers.conv(y, channels, 3, bias=True), EPSILON))
    y = layers.batch_norm(layers.conv(y, EXPANSION * channels, bias=True), EPSILON, gain=BRANCH_GAIN)
    return tf.nn.relu(shortcut + y)
