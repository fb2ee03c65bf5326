"""Windows of pooling ops as kernels see them: sizes, strides and padding, whatever the layout."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from timberframe_core.plugin.contracts import KernelNode

Sizes = Sequence[int]


class Windows(NamedTuple):
    """Windows over `batch` images or volumes whose elements hold `inner` values each; numbers by dimension."""

    batch: int
    inner: int
    size: tuple[int, ...]
    out: tuple[int, ...]
    window: tuple[int, ...]
    stride: tuple[int, ...]
    before: tuple[int, ...]


def window_values(node: KernelNode) -> tuple[Sizes, Sizes]:
    """ksize and strides: attrs, or the last two inputs."""
    if "ksize" in node.attrs:
        return node.attrs["ksize"], node.attrs["strides"]
    ksize, strides = (node.const(len(node.inputs) - i) for i in (2, 1))
    assert ksize is not None
    assert strides is not None
    return ksize.tolist(), strides.tolist()


def padding_before(node: KernelNode, x: Sizes, y: Sizes) -> tuple[int, ...]:
    """Padding before the first element of each spatial dimension of a tensor of shape x that is pooled to y."""
    from timberframe_ops.nn.windows import spatial_axes

    ksize, strides = window_values(node)
    before = []
    for axis in spatial_axes(node.attrs.get("data_format", "NHWC"), len(x)):
        total = max((y[axis] - 1) * strides[axis] + ksize[axis] - x[axis], 0)
        explicit = node.attrs["explicit_paddings"][2 * axis] if node.attrs["padding"] == "EXPLICIT" else 0
        before.append(total // 2 if node.attrs["padding"] == "SAME" else explicit)
    return tuple(before)


def windows(node: KernelNode, x: Sizes, y: Sizes) -> Windows:
    """Returns the windows in space over a tensor of shape x that is pooled to y.

    Where channels come first, each is an image with one. A window of channels is one of rows of an image that has a row
    for each channel; its pixels are images where channels come last, else channels.
    """
    from timberframe_ops.nn.windows import spatial_axes

    ksize, strides = window_values(node)
    data_format = node.attrs.get("data_format", "NHWC")
    axes, first = spatial_axes(data_format, len(x)), data_format.startswith("NC")
    channel = 1 if first else len(x) - 1
    size, out, window, stride = (tuple([v[a] for a in axes]) for v in (x, y, ksize, strides))
    depth, channels = ksize[channel], x[channel]
    if depth > 1:
        pixels = size[0] * size[1]
        batch, inner = (x[0], pixels) if first else (x[0] * pixels, 1)
        return Windows(batch, inner, (channels, 1), (channels // depth, 1), (depth, 1), (depth, 1), (0, 0))
    batch, inner = (x[0] * channels, 1) if first else (x[0], channels)
    return Windows(batch, inner, size, out, window, stride, padding_before(node, x, y))
