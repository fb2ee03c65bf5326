"""Accelerator kernels of convolutions over images and volumes, and of their gradients: products that gather."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np

from timberframe_accelerator.convolution_stages import (
    ConvolutionStages,
    forward_taps,
    phase_words,
    phases_of,
    terms_of,
)
from timberframe_accelerator.launches import Source
from timberframe_accelerator.product import LANES, MOST_BATCHES, Tiles, add_parts, cut_depth, tiles_for
from timberframe_accelerator.stages import BufferView, nothing
from timberframe_accelerator.unfolding import Unfolded
from timberframe_sdk import KernelDef, KernelNode, Launcher
from timberframe_sdk.declare import kernel
from timberframe_sdk.plans.convolution import Convolution

KERNELS: list[KernelDef] = []

_FAR = -(1 << 30)
_PART_PIXELS = 512  # worth a part of a gradient by the filter


def _padded(terms: np.ndarray[Any, Any], multiple: int) -> np.ndarray[Any, Any]:
    """Terms filled up to a multiple of so many by some that lie outside of every image."""
    more = np.zeros((5, -terms.shape[1] % multiple), np.int32)
    more[0] = _FAR
    return np.concatenate([terms, more], axis=1)


class Gathered(ConvolutionStages):
    """A convolution or gradient by kernels that gather an operand while they multiply."""

    def source(self, kernel: int, tiles: Tiles, channels: int, written: str) -> Source:
        """convolution.h for products that gather (0), or for the gradient by the filter (1)."""
        types = {"T": self.dtype.name, "TZ": written, "PART": self.part}
        modes = {"CONTIGUOUS": int(channels % LANES == 0), "LEFT_SWAPPED": kernel, "RIGHT_SWAPPED": 0}
        return Source.file("convolution.h", **types, **modes, **tiles.macros())

    def gathered(
        self, views: tuple[BufferView, BufferView, BufferView], words: list[int], phases: list[tuple[list[int], Any]],
        channels: int, columns: int,
    ) -> None:  # fmt: skip
        """Adds the launch of tf_convolve. phases: the first six words of each, and its terms."""
        rows = self.conv.x.shape[0] * max(math.prod(p[3:6]) for p, _ in phases)
        tiles = tiles_for(self.stages.device.limits, self.part, rows, columns)
        tables = [_padded(terms, tiles.depth) for _, terms in phases]
        starts = itertools.accumulate((t.shape[1] for t in tables), initial=0)
        words = [*words, sum(t.shape[1] for t in tables)]
        for (phase, terms), start in zip(phases, starts, strict=False):
            words += phase_words(phase, start, terms.shape[1])
        function = self.stages.device.function(self.source(0, tiles, channels, self.written), "tf_convolve")
        numbers, row_tiles = self.groups * len(phases), -(-rows // tiles.rows)
        items = tiles.count(rows, columns) * LANES, tiles.lines, min(numbers, MOST_BATCHES)
        tables_in = [self.stages.device.table(np.array(t, np.int32)) for t in (words, np.concatenate(tables, axis=1))]
        last = np.int32(numbers), np.int32(row_tiles)
        self.stages.call(function, items, (LANES, tiles.lines, 1), *views, *tables_in, *last)

    def forward(self) -> Launcher:
        """x by the filter."""
        w, total = self.windows, self.groups * self.outside
        source = [n.size for n in w], self.groups * self.depth, [n.stride for n in w]
        target = [n.out_size for n in w], total, [1, 1, 1]
        words = self.sizes(source, target, [self.depth, self.outside, 0, total, self.outside])
        kernel = [n.kernel for n in w]
        terms = terms_of([forward_taps(n) for n in w], source[0], kernel, self.depth, source[1], self.depth)
        x, y = self.channels_last(BufferView(0), self.conv.x), self.result(self.conv.y)
        self.gathered((x, BufferView(1), y), words, [([0, 0, 0, *target[0]], terms)], self.depth, self.outside)
        self.back(y, self.conv.y)
        return self.stages.launcher()

    def by_input(self) -> Launcher:
        """Returns the filter, transposed for each tap, and the result's gradient."""
        w, total = self.windows, self.groups * self.outside
        source = [n.out_size for n in w], total, [1, 1, 1]
        target = [n.size for n in w], self.groups * self.depth, [n.stride for n in w]
        words = self.sizes(source, target, [self.outside, self.depth, self.outside, self.depth, 0])
        kernel = [n.kernel for n in w]
        phases = []
        for parts in itertools.product(*(phases_of(n) for n in w)):
            terms = terms_of([p[2] for p in parts], source[0], kernel, self.outside, total, total)
            phases.append(([*(p[0] for p in parts), *(p[1] for p in parts)], terms))
        filter = self.stages.swap(BufferView(0), None, self.dtype, math.prod(kernel), self.depth, total)
        dy, dx = self.channels_last(BufferView(1), self.conv.y), self.result(self.conv.x)
        self.gathered((dy, filter, dx), words, phases, self.outside, self.depth)
        self.back(dx, self.conv.x)
        return self.stages.launcher()

    def by_filter(self) -> Launcher:
        """x and the result's gradient, over all pixels."""
        w, total = self.windows, self.groups * self.outside
        source = [n.size for n in w], self.groups * self.depth, [n.stride for n in w]
        target = [n.out_size for n in w], total, [1, 1, 1]
        kernel = [n.kernel for n in w]
        terms = terms_of([forward_taps(n) for n in w], source[0], kernel, self.depth, source[1], self.depth)
        rows, pixels = terms.shape[1], self.conv.x.shape[0] * math.prod(target[0])
        device = self.stages.device
        tiles = tiles_for(device.limits, self.part, rows, self.outside)
        number = tiles.count(rows, self.outside)
        parts, length = cut_depth(pixels, number * self.groups, tiles.depth, _PART_PIXELS)
        table = _padded(terms, tiles.rows)
        words = self.sizes(source, target, [self.depth, self.outside, 0, 0, 0, table.shape[1]])
        words += phase_words([0, 0, 0, *target[0]], 0, rows)
        tables = [device.table(np.array(t, np.int32)) for t in (words, table)]
        x, dy = self.channels_last(BufferView(0), self.conv.x), self.channels_last(BufferView(1), self.conv.y)
        size, itemsize = self.conv.filter.size, np.dtype(self.part).itemsize
        out = BufferView(self.stages.result) if parts == 1 else self.stages.room(parts * size, itemsize)
        written = self.written if parts == 1 else self.part
        function = device.function(self.source(1, tiles, self.depth, written), "tf_convolve_filter")
        numbers = self.groups * parts
        items = number * LANES, tiles.lines, min(numbers, MOST_BATCHES)
        last = np.int32(numbers), np.int32(-(-rows // tiles.rows)), np.int32(length)
        self.stages.call(function, items, (LANES, tiles.lines, 1), x, dy, out, *tables, *last)
        if parts > 1:
            add_parts(self.stages, out, BufferView(self.stages.result), self.dtype, size, parts)
        return self.stages.launcher()


_FLOATS = ("float16", "bfloat16", "float32", "float64")


@kernel(KERNELS, "Conv2D", "", types={"T": (*_FLOATS, "int32")})
@kernel(KERNELS, "Conv3D", "", types={"T": _FLOATS})
def convolve(node: KernelNode) -> Launcher:
    """The convolution of images or volumes."""
    if not node.outputs[0].size:
        return nothing
    conv = Convolution.forward(node)
    return Unfolded(conv).forward() or Gathered(conv).forward()


@kernel(KERNELS, "Conv2DBackpropInput", "", types={"T": (*_FLOATS, "int32")})
@kernel(KERNELS, "Conv3DBackpropInputV2", "", types={"T": _FLOATS})
def convolve_by_input(node: KernelNode) -> Launcher:
    """The gradient by the images or volumes."""
    if not node.outputs[0].size:
        return nothing
    conv = Convolution.by_input(node)
    return Unfolded(conv).by_input() or Gathered(conv).by_input()


@kernel(KERNELS, ("Conv2DBackpropFilter", "Conv3DBackpropFilterV2"), "", types={"T": _FLOATS})
def convolve_by_filter(node: KernelNode) -> Launcher:
    """The gradient by the filter."""
    if not node.outputs[0].size:
        return nothing
    conv = Convolution.by_filter(node)
    return Unfolded(conv).by_filter() or Gathered(conv).by_filter()
