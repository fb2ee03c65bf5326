"""Accelerator kernels that bring images to another size.

Sizes are known when planning, so which rows and columns an element takes, and how heavy they are, is found on the host.
A gradient is the transposed map, gathered in the same way.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from timberframe_accelerator.kernels.constants import unsigned
from timberframe_accelerator.kernels.indexing import FLOATS, bits_name
from timberframe_accelerator.launches import Source, index_name, index_type, spread_rows
from timberframe_accelerator.moving import quotient_words
from timberframe_sdk import KernelDef, KernelNode, Launcher
from timberframe_sdk.declare import kernel

KERNELS: list[KernelDef] = []

_WIDE = 16  # channels from which neighbouring work-items take those of one pixel
_IMAGES = {"T": (*FLOATS, "int8", "int16", "int32", "int64", "uint8", "uint16")}


class _Map(NamedTuple):
    """Which pixels of a line of `size` each of `length` resized pixels takes, in no order, and their weights."""

    resized: np.ndarray
    pixels: np.ndarray
    weights: np.ndarray
    size: int
    length: int

    def tables(self, backward: bool) -> tuple[np.ndarray, np.ndarray]:
        """Returns what resize.h reads: spans and positions, and the weights at the same positions."""
        to, from_, count = self.resized, self.pixels, self.length
        if backward:
            to, from_, count = self.pixels, self.resized, self.size
        order = np.lexsort((from_, to))
        ends = count + 1 + np.cumsum(np.bincount(to, minlength=count))
        positions = np.concatenate([[count + 1], ends, from_[order]])
        return positions.astype(np.int32), np.concatenate([np.zeros(count + 1), self.weights[order]])


def _line(node: KernelNode, size: int, count: int) -> _Map:
    """Returns the map of one dimension of an image of `size` pixels to `count`."""
    from timberframe_ops.image.interpolation import area, bicubic
    from timberframe_ops.image.resizing import nearest, neighbours

    kind = node.op.removeprefix("Resize").removesuffix("Grad")
    numbers = np.arange(count)
    if kind == "Bilinear":
        before, after, part = neighbours(node.attrs, size, count)
        pixels, weights = np.concatenate([before, after]), np.concatenate([1 - part, part])
        kept = weights != 0
        return _Map(np.tile(numbers, 2)[kept], pixels[kept], weights[kept], size, count)
    if kind == "NearestNeighbor":
        return _Map(numbers, nearest(node.attrs, size, count), np.ones(count), size, count)
    found = (bicubic if kind == "Bicubic" else area)(size, count, node.attrs)
    resized, pixels = np.nonzero(found)
    return _Map(resized, pixels, found[resized, pixels], size, count)


class _Resizing:
    """What the kernels of a node share. image, resized: [batch, height, width, channels]."""

    def __init__(self, node: KernelNode, image: Sequence[int], resized: Sequence[int], backward: bool = False) -> None:
        device: Any = node.device
        self.device, self.backward = device, backward
        x, out = node.inputs[0], node.outputs[0]
        self.lines = [_line(node, image[d], resized[d]) for d in (1, 2)]
        self.index, self.name = index_type(x.size, out.size), index_name(x.size, out.size)
        batch, height, width, channels = out.shape
        self.wide = int(channels >= _WIDE)
        rows = batch * height * (width if self.wide else 1)
        length = channels * (1 if self.wide else width)
        self.items, self.group = spread_rows(length, rows, device.limits.reduction_group_size)
        words = rows, *x.shape[1:], height, width, *quotient_words(max(channels, 1))
        self.sizes, self.count = [self.index(n) for n in words], out.size

    def launcher(self, name: str, types: dict[str, str], tables: Sequence[np.ndarray]) -> Launcher:
        """Returns the launcher of a kernel of resize.h."""
        if not self.count:
            return lambda *arrays: None
        function = self.device.function(Source.file("resize.h", INDEX=self.name, WIDE=self.wide, **types), name)
        held = [self.device.table(t) for t in tables]
        return lambda *arrays: function(self.items, self.group, arrays[0], arrays[-1], *held, *self.sizes)

    def weighted(self, types: dict[str, str]) -> Launcher:
        """Returns the launcher of a weighted sum."""
        wide = np.float64 if types["SUM"] == "float64" else np.float32
        pairs = [line.tables(self.backward) for line in self.lines]
        return self.launcher("tf_resize", types, [t for p, w in pairs for t in (p, w.astype(wide))])


@kernel(KERNELS, ("ResizeBilinear", "ResizeBicubic", "ResizeArea"), "", types=_IMAGES)
def resize(node: KernelNode) -> Launcher:
    """Weighted means of neighbouring pixels, in float32."""
    image, resized = node.inputs[0], node.outputs[0]
    types = {"T": image.dtype.name, "OUT": "float32", "SUM": "float32"}
    return _Resizing(node, image.shape, resized.shape).weighted(types)


@kernel(KERNELS, "ResizeBilinearGrad", "", types={"T": FLOATS})
@kernel(KERNELS, "ResizeBicubicGrad", "", types={"T": ("float32", "float64")})
def resize_grad(node: KernelNode) -> Launcher:
    """For each pixel the gradients of those that took it."""
    dtype = node.outputs[0].dtype.name
    types = {"T": "float32", "OUT": dtype, "SUM": "float64" if dtype == "float64" else "float32"}
    return _Resizing(node, node.outputs[0].shape, node.inputs[0].shape, backward=True).weighted(types)


@kernel(KERNELS, "ResizeNearestNeighbor", "", types=_IMAGES)
def resize_nearest(node: KernelNode) -> Launcher:
    """The pixel that each position falls on."""
    found = _Resizing(node, node.inputs[0].shape, node.outputs[0].shape)
    bits = bits_name(node.outputs[0].dtype)
    tables = [line.pixels.astype(np.int32) for line in found.lines]
    return found.launcher("tf_resize_nearest", {"T": bits, "OUT": bits, "SUM": bits}, tables)


@kernel(KERNELS, "ResizeNearestNeighborGrad", "", types={"T": (*FLOATS, "int8", "uint8", "int32")})
def resize_nearest_grad(node: KernelNode) -> Launcher:
    """For each pixel the gradients of those that are copies of it."""
    found = _Resizing(node, node.outputs[0].shape, node.inputs[0].shape, backward=True)
    dtype = unsigned(node.outputs[0].dtype.name)
    tables = [line.tables(True)[0] for line in found.lines]
    return found.launcher("tf_resize_whole", {"T": dtype, "OUT": dtype, "SUM": dtype}, tables)
