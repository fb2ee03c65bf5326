"""The linear maps from the rows of one image to those of another size, one for each way of resizing.

Coordinates are computed in float32, as TensorFlow does, so that the same pixels are chosen.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

_TABLE = 1024  # steps between two pixels for which cubic weights are kept


def scale_of(size: int, wanted: int, align_corners: bool) -> np.float32:
    """Returns how many pixels of the source one pixel of the result stands for."""
    if align_corners and wanted > 1:
        return np.float32(size - 1) / np.float32(wanted - 1)
    return np.float32(size) / np.float32(wanted)


def _positions(size: int, wanted: int, attrs: Mapping[str, Any]) -> np.ndarray:
    """Returns where each pixel of the result lies among those of the source."""
    scale = scale_of(size, wanted, attrs["align_corners"])
    numbers = np.arange(wanted, dtype=np.float32)
    half = np.float32(0.5)
    return (numbers + half) * scale - half if attrs.get("half_pixel_centers") else numbers * scale


def area(size: int, wanted: int, attrs: Mapping[str, Any]) -> np.ndarray:
    """Returns weights [wanted, size] by how much of each source pixel a pixel of the result covers."""
    scale = scale_of(size, wanted, attrs["align_corners"])
    weights = np.zeros((wanted, size))
    for i in range(wanted):
        low, high = np.float32(i) * scale, np.float32(i + 1) * scale
        for j in range(int(np.floor(low)), int(np.ceil(high))):
            covered = min(np.float32(j + 1), high) - max(np.float32(j), low)
            weights[i, min(max(j, 0), size - 1)] += covered
    return weights / np.float64(scale)


def bicubic(size: int, wanted: int, attrs: Mapping[str, Any]) -> np.ndarray:
    """Returns weights [wanted, size] of the four pixels around each position, by Keys' cubic convolution.

    With half_pixel_centers the parameter is -0.5 and pixels outside count for nothing, else it is -0.75 and the border
    is repeated. R. Keys, Cubic convolution interpolation for digital image processing, 1981.
    """
    keys = bool(attrs.get("half_pixel_centers"))
    positions = _positions(size, wanted, attrs)
    below = np.floor(positions)
    offset = np.rint((positions - below) * np.float32(_TABLE)).astype(np.float64) / _TABLE
    a = -0.5 if keys else -0.75
    weights, rows = np.zeros((wanted, size)), np.arange(wanted)
    for step in (-1, 0, 1, 2):
        x = np.abs(offset - step)
        near = ((a + 2) * x - (a + 3)) * x * x + 1
        far = ((a * x - 5 * a) * x + 8 * a) * x - 4 * a
        at = below.astype(np.int64) + step
        inside = np.clip(at, 0, size - 1)
        value = np.where(x <= 1, near, far) if step in (0, 1) else far
        np.add.at(weights, (rows, inside), np.where((at == inside) | (not keys), value, 0.0))
    return weights / weights.sum(1, keepdims=True) if keys else weights


Weights = Callable[[int, int, Mapping[str, Any]], np.ndarray]


def resized(weights: Weights, images: np.ndarray, height: int, width: int, attrs: Mapping[str, Any]) -> np.ndarray:
    """Returns images [batch, height, width, channels] at another size, in float64."""
    down = weights(images.shape[1], height, attrs)
    across = weights(images.shape[2], width, attrs)
    return weighted(across, weighted(down, images.astype(np.float64), 1), 2)


def spread(weights: Weights, grads: np.ndarray, height: int, width: int, attrs: Mapping[str, Any]) -> np.ndarray:
    """Returns the transposed map: gradients of resized images as those of images of this size, in float64."""
    down = weights(height, grads.shape[1], attrs)
    across = weights(width, grads.shape[2], attrs)
    return weighted(across.T, weighted(down.T, grads.astype(np.float64), 1), 2)


def weighted(weights: np.ndarray, x: np.ndarray, axis: int) -> np.ndarray:
    """Weighted sums along an axis, one for each row of weights; what has weight 0 has no part, be it NaN."""
    x = np.moveaxis(x, axis, 0)
    rows, terms = np.nonzero(weights)
    counts = np.bincount(rows, minlength=len(weights))
    first = np.cumsum(counts) - counts
    found = np.zeros((len(weights), *x.shape[1:]), x.dtype)
    for number in range(counts.max(initial=0)):
        at = np.flatnonzero(counts > number)
        term = terms[first[at] + number]
        found[at] += weights[at, term].reshape(-1, 1, 1, 1) * x[term]
    return np.moveaxis(found, 0, axis)
