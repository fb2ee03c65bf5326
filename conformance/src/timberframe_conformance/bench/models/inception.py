"""InceptionV3 (Szegedy et al. 2015) and Xception (Chollet 2016)."""

from __future__ import annotations

from typing import Any

import timberframe as tf
from timberframe_conformance.bench.models.layers import Layers, avg_pool, join, max_pool

Size = int | tuple[int, int]
BRANCH_GAIN = 0.1
"""Factor at the end of Xception's branches, so that the sum over 12 blocks stays small."""


def inception_v3(layers: Layers, images: Any) -> Any:
    """Returns probabilities of the classes."""

    def conv(x: Any, filters: int, size: Size = 1, stride: int = 1, padding: str = "SAME") -> Any:
        return tf.nn.relu(layers.batch_norm(layers.conv(x, filters, size, stride, padding), scale=False))

    def chain(x: Any, *steps: tuple[int, Size]) -> Any:
        for filters, size in steps:
            x = conv(x, filters, size)
        return x

    def pooled(x: Any, filters: int) -> Any:
        return conv(avg_pool(x, 3, 1, "SAME"), filters)

    def halved(x: Any, filters: int) -> Any:
        return conv(x, filters, 3, 2, "VALID")

    x = conv(conv(images, 32, 3, 2, "VALID"), 32, 3, padding="VALID")
    x = max_pool(conv(x, 64, 3), 3, 2)
    x = max_pool(conv(conv(x, 80, padding="VALID"), 192, 3, padding="VALID"), 3, 2)
    for width in (32, 64, 64):
        towers = chain(x, (48, 1), (64, 5)), chain(x, (64, 1), (96, 3), (96, 3))
        x = join(conv(x, 64), *towers, pooled(x, width))
    x = join(halved(x, 384), halved(chain(x, (64, 1), (96, 3)), 96), max_pool(x, 3, 2))
    row, column = (1, 7), (7, 1)
    for c in (128, 160, 160, 192):
        single = chain(x, (c, 1), (c, row), (192, column))
        double = chain(x, (c, 1), (c, column), (c, row), (c, column), (192, row))
        x = join(conv(x, 192), single, double, pooled(x, 192))
    long = halved(chain(x, (192, 1), (192, row), (192, column)), 192)
    x = join(halved(conv(x, 192), 320), long, max_pool(x, 3, 2))
    for _ in range(2):
        short, long = conv(x, 384), chain(x, (448, 1), (384, 3))
        split = (join(conv(y, 384, (1, 3)), conv(y, 384, (3, 1))) for y in (short, long))
        x = join(conv(x, 320), *split, pooled(x, 192))
    return layers.classify(x)


def xception(layers: Layers, images: Any) -> Any:
    """Returns probabilities of the classes."""

    def separable(x: Any, filters: int, gain: float = 1.0) -> Any:
        return layers.batch_norm(layers.separable(x, filters), gain=gain)

    def halved(x: Any, first: int, filters: int, activate: bool = True) -> Any:
        shortcut = layers.batch_norm(layers.conv(x, filters, 1, 2))
        y = separable(tf.nn.relu(x) if activate else x, first)
        return shortcut + max_pool(separable(tf.nn.relu(y), filters, BRANCH_GAIN), 3, 2, "SAME")

    x = tf.nn.relu(layers.batch_norm(layers.conv(images, 32, 3, 2, "VALID")))
    x = tf.nn.relu(layers.batch_norm(layers.conv(x, 64, 3, padding="VALID")))
    for i, filters in enumerate((128, 256, 728)):
        x = halved(x, filters, filters, activate=i > 0)
    for _ in range(8):
        y = x
        for gain in (1.0, 1.0, BRANCH_GAIN):
            y = separable(tf.nn.relu(y), 728, gain)
        x = x + y
    x = halved(x, 728, 1024)
    for filters in (1536, 2048):
        x = tf.nn.relu(separable(x, filters))
    return layers.classify(x)
