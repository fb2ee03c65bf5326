"""DenseNet-121 (Huang et al. 2016)."""

from __future__ import annotations

from typing import Any

import timberframe as tf
from timberframe_conformance.bench.models.layers import Layers, avg_pool, join, max_pool, pad

EPSILON = 1.001e-5
GROWTH = 32
BLOCKS = (6, 12, 24, 16)


def densenet121(layers: Layers, images: Any) -> Any:
    """Returns probabilities of the classes."""

    def activated(x: Any) -> Any:
        return tf.nn.relu(layers.batch_norm(x, EPSILON))

    x = activated(layers.conv(pad(images, 3, 3), 64, 7, 2, "VALID"))
    x = max_pool(pad(x, 1, 1), 3, 2)
    channels = 64
    for i, count in enumerate(BLOCKS):
        if i > 0:
            channels //= 2
            x = avg_pool(layers.conv(activated(x), channels), 2, 2)
        for _ in range(count):
            y = activated(layers.conv(activated(x), 4 * GROWTH))
            x = join(x, layers.conv(y, GROWTH, 3))
        channels += count * GROWTH
    return layers.classify(activated(x))
