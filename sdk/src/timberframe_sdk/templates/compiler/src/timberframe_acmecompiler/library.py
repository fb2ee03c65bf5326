"""What programs of the toolchain call, as those of a real one call its run-time library."""

from __future__ import annotations

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

LOWEST = float(np.finfo(np.float32).min)  # what MaxPool gives for a window without numbers
Dimension = tuple[int, int, int, int, int]
"""How a window moves over one dimension: size, size of the output, window, stride, padding in front."""


def softmax(x: np.ndarray) -> np.ndarray:
    powers = np.exp(x - x.max(-1, keepdims=True, initial=-np.inf), dtype=np.float64)
    found: np.ndarray = powers / powers.sum(-1, keepdims=True)
    return found.astype(x.dtype)


def windows_of(x: np.ndarray, rows: Dimension, columns: Dimension, fill: float) -> np.ndarray:
    """Every window of images: [batch, out height, out width, channels, window height, window width]."""
    spans = [(out - 1) * stride + window for _, out, window, stride, _ in (rows, columns)]
    padded = np.full((len(x), *spans, x.shape[3]), fill, x.dtype)
    height, width = (min(d[0], span - d[4]) for d, span in zip((rows, columns), spans, strict=True))
    padded[:, rows[4] :, columns[4] :][:, :height, :width] = x[:, :height, :width]
    found = sliding_window_view(padded, (rows[2], columns[2]), axis=(1, 2))
    return found[:, :: rows[3], :: columns[3]]


def conv2d(x: np.ndarray, filters: np.ndarray, rows: Dimension, columns: Dimension) -> np.ndarray:
    if not len(x) or not rows[1] or not columns[1]:
        return np.zeros((len(x), rows[1], columns[1], filters.shape[3]), x.dtype)
    return np.tensordot(windows_of(x, rows, columns, 0), filters, axes=((4, 5, 3), (0, 1, 2)))


def max_pool(x: np.ndarray, rows: Dimension, columns: Dimension) -> np.ndarray:
    if not len(x) or not rows[1] or not columns[1]:
        return np.zeros((len(x), rows[1], columns[1], x.shape[3]), x.dtype)
    found: np.ndarray = np.fmax.reduce(windows_of(x, rows, columns, LOWEST), (4, 5), initial=LOWEST)
    return found
