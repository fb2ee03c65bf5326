"""Arithmetic of TensorFlow 1's quantized ops: integers whose whole range stands for the numbers from low to high.

It is that of Dequantize and QuantizeV2 with mode MIN_FIRST, in the order and the precisions of TensorFlow's
quantization_utils.h.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from timberframe_ops.quantization.quantize import round_away

F32 = np.float32


def limits(dtype: np.dtype[Any]) -> tuple[int, int]:
    """Returns the least and the greatest integer of a dtype."""
    info = np.iinfo(dtype)
    return int(info.min), int(info.max)


def _steps(dtype: np.dtype[Any]) -> float:
    return float(2 ** (8 * dtype.itemsize) - 1)


def numbers(x: np.ndarray, low: Any, high: Any) -> np.ndarray:
    """Returns the float32 numbers that integers stand for."""
    low, high = F32(low), F32(high)
    if low == high:
        return np.full(x.shape, low)
    step = float(high - low) / _steps(x.dtype)
    first = float(round_away(np.asarray(float(low / F32(step))))) * float(F32(step))
    return (first + (x.astype(np.float64) - limits(x.dtype)[0]) * step).astype(F32)


def integer_of(value: Any, low: Any, high: Any, dtype: np.dtype[Any]) -> np.ndarray:
    """Returns the integers that stand for numbers, as int64: those beyond the dtype's are left as they are."""
    least, (low, high) = limits(dtype)[0], (F32(low), F32(high))
    if low == high:
        return np.full(np.shape(value), least, np.int64)
    scale = _steps(dtype) / float(high - low)
    found = round_away(np.asarray(value, np.float64) * scale) - round_away(np.asarray(float(low) * scale))
    return np.asarray(found, np.float64).astype(np.int64) + least


def integers(values: np.ndarray, low: Any, high: Any, dtype: np.dtype[Any]) -> np.ndarray:
    """Returns the integers of a dtype that stand for numbers; those of numbers outside the range are the ends."""
    return np.asarray(np.clip(integer_of(values, low, high, dtype), *limits(dtype)).astype(dtype))


def requantized(x: np.ndarray, low: Any, high: Any, new_low: Any, new_high: Any, dtype: np.dtype[Any]) -> np.ndarray:
    """Returns integers that stand for the same numbers with another range; int32 to uint8 is in fixed point."""
    if x.dtype == np.int32 and dtype == np.uint8:
        return _in_fixed_point(x, *(F32(end) for end in (low, high, new_low, new_high)))
    return integers(numbers(x, low, high), new_low, new_high, dtype)


def _in_fixed_point(x: np.ndarray, low: Any, high: Any, new_low: Any, new_high: Any) -> np.ndarray:
    """Requantizes with 16 bits after the point, which TensorFlow uses for this most common pair of dtypes."""
    new_range = F32(new_high - new_low)
    if new_range == 0:
        return np.zeros(x.shape, np.uint8)
    one = 1 << 16
    scale = int(255.0 * one * float(F32(high - low)) / float(new_range))
    middle = F32(float(low + high) / 2.0)
    offset = int(F32(middle * F32(255.0 / float(new_range)) * F32(one)))
    new_offset = int(one * (float(new_low) * 255.0) / float(new_range))
    found = ((x.astype(np.int64) * scale) >> 32) + (offset - new_offset + (one >> 1))
    return np.asarray(np.clip(found >> 16, 0, 255).astype(np.uint8))


def product_range(
    ends: Sequence[Any], dtypes: tuple[np.dtype[Any], np.dtype[Any]], out: np.dtype[Any]
) -> tuple[np.ndarray, np.ndarray]:
    """Returns the range of sums of products: one step of theirs is the product of the steps of both operands."""
    steps = [
        F32((F32(high) - F32(low)) / F32(_steps(t))) for low, high, t in zip(ends[::2], ends[1::2], dtypes, strict=True)
    ]
    step = F32(steps[0] * steps[1])
    least, most = limits(out)
    return np.asarray(step * F32(least)), np.asarray(step * F32(most))


def centred(x: np.ndarray, low: Any, high: Any) -> np.ndarray:
    """Returns integers less the one that stands for 0, as int32."""
    return np.asarray(x.astype(np.int64) - integer_of(0.0, low, high, x.dtype)).astype(np.int32)
