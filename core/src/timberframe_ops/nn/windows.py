"""Geometry of sliding windows, shared by convolution and pooling.

Sizes follow TensorFlow: SAME gives ceil(size / stride) positions and splits the padding evenly, the odd one at the end;
VALID and EXPLICIT give as many as fit entirely into the padded input.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from timberframe_core.errors import UnimplementedError
from timberframe_core.ops.definition.opdef import Attrs, InferenceContext

CHANNELS_LAST = ("NHWC", "NDHWC")


def channel_axis(data_format: str, rank: int) -> int:
    """Returns where the channels are in a tensor of this layout and rank."""
    return rank - 1 if data_format in CHANNELS_LAST else 1


def spatial_axes(data_format: str, rank: int = 4) -> tuple[int, ...]:
    """Returns the axes that a window slides over."""
    return tuple(range(1, rank - 1)) if data_format in CHANNELS_LAST else tuple(range(2, rank))


def unimplemented(c: InferenceContext, message: str) -> UnimplementedError:
    """Returns an error to raise for a combination of attrs that has a meaning but no
    implementation, in TensorFlow as here.
    """
    return UnimplementedError(f"{c.op.name} '{c.name}': {message}", c.name)


def extent(kernel: int, dilation: int) -> int:
    """Input positions from a window's first to its last tap."""
    return (kernel - 1) * dilation + 1


def padding_amounts(
    size: int, kernel: int, stride: int, dilation: int, padding: str, explicit: tuple[int, int] = (0, 0)
) -> tuple[int, int]:
    """Returns zeros put before and after one dimension."""
    if padding == "VALID":
        return 0, 0
    if padding == "EXPLICIT":
        return explicit
    total = max((-(-size // stride) - 1) * stride + extent(kernel, dilation) - size, 0)
    return total // 2, total - total // 2


def output_size(
    c: InferenceContext,
    size: int | None,
    kernel: int | None,
    stride: int,
    dilation: int,
    padding: str,
    explicit: tuple[int, int] = (0, 0),
) -> int | None:
    """Window positions in one dimension; an error where the window is larger than the padded input."""
    if size is None:
        return None
    if padding == "SAME":
        return -(-size // stride)
    if kernel is None:
        return None
    room = size + sum(explicit) - extent(kernel, dilation)
    if room < 0:
        raise c.error(
            f"the window covers {extent(kernel, dilation)} positions of a padded size {size + sum(explicit)}; "
            "it must not be larger than the padded input"
        )
    return room // stride + 1


def explicit_pairs(c: InferenceContext, rank: int = 4) -> list[tuple[int, int]]:
    """Returns the attr explicit_paddings as (before, after) by axis, checked; zeros when padding is not EXPLICIT."""
    padding, amounts = c.attrs["padding"], c.attrs["explicit_paddings"]
    if padding != "EXPLICIT":
        if amounts:
            fact = f"explicit_paddings is {list(amounts)} with padding {padding}"
            raise c.error(f"{fact}; it must be empty unless padding is EXPLICIT")
        return [(0, 0)] * rank
    if len(amounts) != 2 * rank:
        raise c.error(f"explicit_paddings has {len(amounts)} values; it must have {2 * rank}, two for each dimension")
    if min(amounts) < 0:
        raise c.error(f"explicit_paddings is {list(amounts)}; amounts must not be negative")
    pairs = [(amounts[2 * i], amounts[2 * i + 1]) for i in range(rank)]
    for axis in (0, channel_axis(c.attrs["data_format"], rank)):
        if pairs[axis] != (0, 0):
            raise c.error(
                f"explicit_paddings pads dimension {axis} by {pairs[axis]}; batch and channels must not be padded"
            )
    return pairs


def check_window_attr(c: InferenceContext, name: str, values: Sequence[int], rank: int = 4) -> None:
    """Raises an error unless the list (strides, dilations or ksize) has `rank` positive values."""
    if len(values) != rank:
        raise c.error(f"{name} is {list(values)}; it must have {rank} values")
    if min(values) <= 0:
        raise c.error(f"{name} is {list(values)}; its values must be positive")


def pad_spatial(x: np.ndarray, pads: Sequence[tuple[int, int]], value: Any = 0) -> np.ndarray:
    """Returns an NHWC array with its height and width padded."""
    return np.pad(x, [(0, 0), *pads, (0, 0)], constant_values=value)


def windows(
    x: np.ndarray, kernel: Sequence[int], strides: Sequence[int], dilations: Sequence[int] = (1, 1)
) -> np.ndarray:
    """Returns a view of all windows of a padded NHWC array: [N, out height, out width, C,
    kernel height, kernel width].
    """
    spans = tuple(extent(k, d) for k, d in zip(kernel, dilations, strict=True))
    if x.shape[1] < spans[0] or x.shape[2] < spans[1]:  # an empty image
        counts = [max(x.shape[1 + i] - spans[i] + strides[i], 0) // strides[i] for i in range(2)]
        return np.zeros((x.shape[0], *counts, x.shape[3], *kernel), x.dtype)
    view = np.lib.stride_tricks.sliding_window_view(x, spans, axis=(1, 2))
    return view[:, :: strides[0], :: strides[1], :, :: dilations[0], :: dilations[1]]


def to_channels_last(x: np.ndarray, data_format: str) -> np.ndarray:
    """Returns a view with the channels last."""
    return x if data_format in CHANNELS_LAST else np.moveaxis(x, 1, -1)


def from_channels_last(x: np.ndarray, data_format: str) -> np.ndarray:
    """Returns the inverse of `to_channels_last`."""
    return x if data_format in CHANNELS_LAST else np.ascontiguousarray(np.moveaxis(x, -1, 1))


def widen(x: np.ndarray) -> np.ndarray:
    """float16 and bfloat16 as float32, the type that they are computed in; others unchanged."""
    return x.astype(np.float32) if x.dtype.itemsize == 2 and x.dtype.kind not in "iu" else x


def input_gradient_terms(attrs: Attrs, sizes: np.ndarray, filter: np.ndarray, grad: np.ndarray) -> int:
    """Returns the most products that an element of a convolution's gradient by its input is a sum of.

    Taps that lie on one pixel of a line are of windows whole strides apart.
    """
    axes = spatial_axes(attrs["data_format"], filter.ndim)
    taps = 1
    for n, axis in zip(filter.shape, axes, strict=False):
        stride, dilation = attrs["strides"][axis], attrs["dilations"][axis]
        taps *= -(-n * math.gcd(stride, dilation) // stride)
    return int(taps * filter.shape[-1])
