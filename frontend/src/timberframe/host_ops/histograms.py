"""Histograms with TensorFlow's buckets: 0, and steps of 10 % from 1e-12 to 1e20 on both sides of it."""

from __future__ import annotations

import functools
import sys
from typing import Any

import numpy as np

from timberframe_core.graphdef import messages


@functools.cache
def _limits() -> np.ndarray:
    """Returns the upper limits of the buckets."""
    rising, limit = [], 1e-12
    while limit < 1e20:
        rising.append(limit)
        limit *= 1.1
    rising.append(sys.float_info.max)
    return np.array([*(-x for x in reversed(rising)), 0.0, *rising])


def histogram_of(values: np.ndarray) -> Any:
    """Returns the HistogramProto of finite float64 numbers; a run of empty buckets is one bucket."""
    limits = _limits()
    found = np.minimum(np.searchsorted(limits, values, side="right"), len(limits) - 1)
    counts = np.bincount(found, minlength=len(limits)).astype(np.float64)
    ends_a_run = np.append((counts[:-1] > 0) | (counts[1:] > 0), True)
    result = messages.HistogramProto(
        min=values.min() if values.size else sys.float_info.max,
        max=values.max() if values.size else -sys.float_info.max,
        num=values.size,
        sum=values.sum(),
        sum_squares=(values * values).sum(),
    )
    result.bucket_limit.extend(limits[ends_a_run])
    result.bucket.extend(counts[ends_a_run])
    return result
