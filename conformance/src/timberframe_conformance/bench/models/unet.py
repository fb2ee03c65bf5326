"""U-Net (Ronneberger et al. 2015) with a quarter of the channels, and borders that keep the image's size."""

from __future__ import annotations

from typing import Any

import timberframe as tf
from timberframe_conformance.bench.models.layers import Layers, join, max_pool

CHANNELS = (16, 32, 64, 128)
DEEPEST = 256


def unet(layers: Layers, images: Any) -> Any:
    """For each pixel the probability that it belongs to the object."""

    def convs(x: Any, filters: int) -> Any:
        for _ in range(2):
            x = tf.nn.relu(layers.conv(x, filters, 3, bias=True))
        return x

    x, skipped = images, []
    for filters in CHANNELS:
        x = convs(x, filters)
        skipped.append(x)
        x = max_pool(x, 2, 2)
    x = convs(x, DEEPEST)
    for filters, skip in zip(reversed(CHANNELS), reversed(skipped), strict=True):
        x = convs(join(skip, _doubled(layers, x, skip)), filters)
    return tf.sigmoid(layers.conv(x, 1, bias=True))


def _doubled(layers: Layers, x: Any, skip: Any) -> Any:
    """Returns a transposed convolution of size and stride 2 to the shape of the images to be joined."""
    shape = [int(d) for d in skip.shape]
    before = int(x.shape[3])
    weights = layers.filters([2, 2, shape[3], before], before)
    return tf.nn.bias_add(tf.nn.conv2d_transpose(x, weights, shape, [1, 2, 2, 1], "SAME"), layers.bias(shape[3]))
