"""EfficientNet-B0 (Tan and Le 2019)."""

from __future__ import annotations

from typing import Any

import timberframe as tf
from timberframe_conformance.bench.models.layers import Layers, mean, pad_for_stride, swish

BLOCKS = (
    (3, 1, 16, 1, 1), (3, 2, 24, 6, 2), (5, 2, 40, 6, 2), (3, 3, 80, 6, 2), (5, 3, 112, 6, 1), (5, 4, 192, 6, 2),
    (3, 1, 320, 6, 1),
)  # fmt: skip
"""Size, number of blocks, channels, expansion, stride of the first."""


def efficientnet_b0(layers: Layers, images: Any) -> Any:
    """Returns probabilities of the classes."""
    x = layers.conv(pad_for_stride(images, 3), 32, 3, 2, "VALID")
    x = swish(layers.batch_norm(x))
    before = 32
    for size, count, channels, expansion, stride in BLOCKS:
        for i in range(count):
            x = _block(layers, x, before, channels, size, stride if i == 0 else 1, expansion)
            before = channels
    return layers.classify(swish(layers.batch_norm(layers.conv(x, 1280))))


def _block(layers: Layers, x: Any, before: int, channels: int, size: int, stride: int, expansion: int) -> Any:
    """More channels, a depthwise convolution, excitation, fewer channels; the input is added where it fits."""
    y, expanded = x, before * expansion
    if expansion > 1:
        y = swish(layers.batch_norm(layers.conv(y, expanded)))
    padding = "SAME" if stride == 1 else "VALID"
    y = layers.depthwise(y if stride == 1 else pad_for_stride(y, size), size, stride, padding)
    y = swish(layers.batch_norm(y))
    y = _excited(layers, y, before // 4, expanded)
    y = layers.batch_norm(layers.conv(y, channels))
    return x + y if stride == 1 and before == channels else y


def _excited(layers: Layers, x: Any, squeezed: int, expanded: int) -> Any:
    """Returns each channel by a factor that follows from the means of all (squeeze and excitation)."""
    count = int(x.shape[3])
    y = tf.reshape(mean(x), [int(x.shape[0]), 1, 1, count])
    y = swish(layers.conv(y, squeezed, bias=True))
    return x * tf.sigmoid(layers.conv(y, expanded, bias=True))
