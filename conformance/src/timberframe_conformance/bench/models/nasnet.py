"""NASNet mobile (Zoph et al. 2017)."""

from __future__ import annotations

from typing import Any

import timberframe as tf
from timberframe_conformance.bench.models.layers import Layers, avg_pool, join, max_pool, pad_for_stride

FILTERS = 44
"""A 24th of the 1,056 channels at the end."""
REPEATS = 4
GAIN = 0.2
"""Factor at the end of each branch, so that the sums over 16 cells stay small."""


def nasnet_mobile(layers: Layers, images: Any) -> Any:
    """Returns probabilities of the classes."""
    x = layers.batch_norm(layers.conv(images, 32, 3, 2, "VALID"))
    previous = None
    for filters in (FILTERS // 4, FILTERS // 2):
        x, previous = _reduction(layers, x, previous, filters), x
    for i in range(3):
        filters = FILTERS << i
        if i > 0:
            # The input of the reduction, not of the cell before it, goes into the next cell.
            x, previous = _reduction(layers, x, previous, filters), x
        for _ in range(REPEATS):
            x, previous = _normal(layers, x, previous, filters), x
    return layers.classify(tf.nn.relu(x))


def _norm(layers: Layers, x: Any, gain: float = 1.0) -> Any:
    return layers.batch_norm(x, gain=gain)


def _squeezed(layers: Layers, x: Any, filters: int) -> Any:
    return _norm(layers, layers.conv(tf.nn.relu(x), filters))


def _separable(layers: Layers, x: Any, filters: int, size: int, stride: int = 1) -> Any:
    """Returns two separable convolutions, the first of which may halve the image."""
    y = tf.nn.relu(x)
    if stride == 2:
        y = layers.separable(pad_for_stride(y, size), filters, size, 2, "VALID")
    else:
        y = layers.separable(y, filters, size)
    return _norm(layers, layers.separable(tf.nn.relu(_norm(layers, y)), filters, size), GAIN)


def _adjusted(layers: Layers, previous: Any, x: Any, filters: int) -> Any:
    """Returns the cell before last in the shape of the last one."""
    if previous is None:
        return x
    if previous.shape[1] != x.shape[1]:
        y = tf.nn.relu(previous)
        shifted = tf.pad(y, [[0, 0], [0, 1], [0, 1], [0, 0]])[:, 1:, 1:, :]
        half = layers.channels(filters) // 2
        sizes = half, layers.channels(filters) - half
        parts = (layers.conv_to(avg_pool(part, 1, 2), n) for part, n in zip((y, shifted), sizes, strict=True))
        return _norm(layers, join(*parts))
    return _squeezed(layers, previous, filters) if previous.shape[3] != layers.channels(filters) else previous


def _normal(layers: Layers, x: Any, previous: Any, filters: int) -> Any:
    """Returns a cell that keeps the image's size."""
    p, h = _adjusted(layers, previous, x, filters), _squeezed(layers, x, filters)
    pooled = avg_pool(p, 3, 1, "SAME")
    return join(
        p,
        _separable(layers, h, filters, 5) + _separable(layers, p, filters, 3),
        _separable(layers, p, filters, 5) + _separable(layers, p, filters, 3),
        avg_pool(h, 3, 1, "SAME") + p,
        pooled + avg_pool(p, 3, 1, "SAME"),
        _separable(layers, h, filters, 3) + h,
    )


def _reduction(layers: Layers, x: Any, previous: Any, filters: int) -> Any:
    """Returns a cell that halves the image."""
    p, h = _adjusted(layers, previous, x, filters), _squeezed(layers, x, filters)
    padded = pad_for_stride(h, 3)
    first = _separable(layers, h, filters, 5, 2) + _separable(layers, p, filters, 7, 2)
    second = max_pool(padded, 3, 2) + _separable(layers, p, filters, 7, 2)
    third = avg_pool(padded, 3, 2) + _separable(layers, p, filters, 5, 2)
    fourth = second + avg_pool(first, 3, 1, "SAME")
    return join(second, third, fourth, _separable(layers, first, filters, 3) + max_pool(padded, 3, 2))
