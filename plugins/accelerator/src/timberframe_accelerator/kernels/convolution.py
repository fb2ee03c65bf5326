"""Accelerator kernels of convolutions over images and volumes, and of their gradients: products that gather."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from timberframe_accelerator.launches import Source
from timberframe_accelerator.moving import quotient_words
from timberframe_accelerator.product import (
    LANES,
    MOST_BATCHES,
    Tiles,
    add_parts,
    cut_depth,
    part_type,
    tiles_for,
    written_type,
)
from timberframe_accelerator.stages import BufferView, Stages, nothing
from timberframe_sdk import KernelDef, KernelNode, Launcher, Value
from timberframe_sdk.declare import kernel
from timberframe_sdk.plans.convolution import Convolution, Window

KERNELS: list[KernelDef] = []

_FAR = -(1 << 30)
_PART_PIXELS = 512  # worth a part of a gradient by the filter
_ONE = Window(1, 1, 1, 1, 1, 0)  # a dimension that a convolution of fewer dimensions lacks

Taps = Sequence[tuple[int, int]]  # of the taps of a dimension that meet something: number, and distance


def _windows(conv: Convolution) -> list[Window]:
    """The windows of depth, height and width."""
    return [*[_ONE] * (3 - len(conv.windows)), *conv.windows]


def _terms(
    dims: Sequence[Taps], sizes: Sequence[int], kernel: Sequence[int], channels: int, pitch: int, lines: int
) -> np.ndarray[Any, Any]:
    """The terms of convolution.h for the taps of each dimension of an image of these sizes, times `channels`.

    pitch: channels of the image's pixels. lines: lines of the filter for each tap.
    """
    taps = np.array(list(itertools.product(*dims)), np.int64).reshape(-1, 3, 2)
    number, far = taps[..., 0], taps[..., 1]
    offset = ((far[:, 0] * sizes[1] + far[:, 1]) * sizes[2] + far[:, 2]) * pitch
    line = ((number[:, 0] * kernel[1] + number[:, 1]) * kernel[2] + number[:, 2]) * lines
    inner = np.arange(channels)
    rows = [*np.repeat(far, channels, axis=0).T, (offset[:, None] + inner).ravel(), (line[:, None] + inner).ravel()]
    return np.array(rows, np.int32).reshape(5, -1)


def _padded(terms: np.ndarray[Any, Any], multiple: int) -> np.ndarray[Any, Any]:
    """Terms filled up to a multiple of so many by some that lie outside of every image."""
    more = np.zeros((5, -terms.shape[1] % multiple), np.int32)
    more[0] = _FAR
    return np.concatenate([terms, more], axis=1)


def _forward_taps(w: Window) -> Taps:
    return [(k, k * w.dilation - w.before) for k in range(w.kernel)]


def _phases(w: Window) -> list[tuple[int, int, Taps]]:
    """The pixels of an input that lie a stride apart: the first, their number, and the taps that they meet."""
    found: list[tuple[int, int, Taps]] = []
    for first in range(min(w.stride, w.size)):
        steps = [(k, first + w.before - k * w.dilation) for k in range(w.kernel)]
        taps = [(k, step // w.stride) for k, step in steps if step % w.stride == 0]
        found.append((first, -(-(w.size - first) // w.stride), taps))
    return found


def _phase_words(phase: Sequence[int], first_term: int, terms: int) -> list[int]:
    """The words of a phase, given the first six of them."""
    return [*phase, first_term, terms, *(word for n in phase[3:] for word in quotient_words(max(n, 1)))]


class _Plan:
    """One convolution or gradient: its stages, with channels last."""

    def __init__(self, conv: Convolution) -> None:
        self.conv = conv
        self.stages = Stages(conv.node)
        self.windows = _windows(conv)
        self.groups, self.depth, self.outside = conv.groups
        self.dtype = conv.x.dtype
        self.part = part_type(self.dtype)
        self.written = written_type(self.dtype)

    def channels_last(self, view: BufferView, value: Value) -> BufferView:
        """A tensor in this layout, transposed where it is not."""
        if not self.conv.channels_first:
            return view
        shape = value.shape
        return self.stages.swap(view, None, value.dtype, shape[0], shape[1], math.prod(shape[2:]))

    def result(self, value: Value) -> BufferView:
        """Where kernels write a result: the workspace if it is transposed afterwards."""
        return (
            self.stages.room(value.size, value.dtype.itemsize)
            if self.conv.channels_first
            else BufferView(self.stages.result)
        )

    def back(self, view: BufferView, value: Value) -> None:
        """Brings a result into the node's layout."""
        if self.conv.channels_first:
            shape = value.shape
            self.stages.swap(
                view, BufferView(self.stages.result), value.dtype, shape[0], math.prod(shape[2:]), shape[1]
            )

    def sizes(
        self, source: tuple[list[int], int, list[int]], target: tuple[list[int], int, list[int]], rest: Sequence[int]
    ) -> list[int]:
        """The words of convolution.h before the phases: sizes, channels and steps of both sides, and from GROUPS on."""
        sides = [n for sizes, channels, steps in (source, target) for n in (*sizes, channels, *steps)]
        return [*sides, self.conv.x.shape[0], self.groups, *rest]

    def source(self, kernel: int, tiles: Tiles, channels: int, written: str) -> Source:
        """convolution.h for products that gather (0), or for the gradient by the filter (1)."""
        types = {"T": self.dtype.name, "TZ": written, "PART": self.part}
        modes = {"CONTIGUOUS": int(channels % LANES == 0), "LEFT_SWAPPED": kernel, "RIGHT_SWAPPED": 0}
        return Source.file("convolution.h", **types, **modes, **tiles.macros())

    def gathered(
        self, views: tuple[BufferView, BufferView, BufferView], words: list[int], phases: list[tuple[list[int], Any]],
        channels: int, columns: int,
    ) -> None:  # fmt: skip
        """The launch of tf_convolve. phases: the first six words of each, and its terms."""
        rows = self.conv.x.shape[0] * max(math.prod(p[3:6]) for p, _ in phases)
        tiles = tiles_for(self.stages.device.limits, self.part, rows, columns)
        tables = [_padded(terms, tiles.depth) for _, terms in phases]
        starts = itertools.accumulate((t.shape[1] for t in tables), initial=0)
        words = [*words, sum(t.shape[1] for t in tables)]
        for (phase, terms), start in zip(phases, starts, strict=False):
            words += _phase_words(phase, start, terms.shape[1])
        function = self.stages.device.function(self.source(0, tiles, channels, self.written), "tf_convolve")
        numbers, row_tiles = self.groups * len(phases), -(-rows // tiles.rows)
        items = tiles.count(rows, columns) * LANES, tiles.lines, min(numbers, MOST_BATCHES)
        tables_in = [self.stages.device.table(np.array(t, np.int32)) for t in (words, np.concatenate(tables, axis=1))]
        last = np.int32(numbers), np.int32(row_tiles)
        self.stages.call(function, items, (LANES, tiles.lines, 1), *views, *tables_in, *last)

    def forward(self) -> None:
        """x by the filter."""
        w, total = self.windows, self.groups * self.outside
        source = [n.size for n in w], self.groups * self.depth, [n.stride for n in w]
        target = [n.out_size for n in w], total, [1, 1, 1]
        words = self.sizes(source, target, [self.depth, self.outside, 0, total, self.outside])
        kernel = [n.kernel for n in w]
        terms = _terms([_forward_taps(n) for n in w], source[0], kernel, self.depth, source[1], self.depth)
        x, y = self.channels_last(BufferView(0), self.conv.x), self.result(self.conv.y)
        self.gathered((x, BufferView(1), y), words, [([0, 0, 0, *target[0]], terms)], self.depth, self.outside)
        self.back(y, self.conv.y)

    def by_input(self) -> None:
        """The filter, transposed for each tap, and the result's gradient."""
        w, total = self.windows, self.groups * self.outside
        source = [n.out_size for n in w], total, [1, 1, 1]
        target = [n.size for n in w], self.groups * self.depth, [n.stride for n in w]
        words = self.sizes(source, target, [self.outside, self.depth, self.outside, self.depth, 0])
        kernel = [n.kernel for n in w]
        phases = []
        for parts in itertools.product(*(_phases(n) for n in w)):
            terms = _terms([p[2] for p in parts], source[0], kernel, self.outside, total, total)
            phases.append(([*(p[0] for p in parts), *(p[1] for p in parts)], terms))
        filter = self.stages.swap(BufferView(0), None, self.dtype, math.prod(kernel), self.depth, total)
        dy, dx = self.channels_last(BufferView(1), self.conv.y), self.result(self.conv.x)
        self.gathered((dy, filter, dx), words, phases, self.outside, self.depth)
        self.back(dx, self.conv.x)

    def by_filter(self) -> None:
        """x and the result's gradient, over all pixels."""
        w, total = self.windows, self.groups * self.outside
        source = [n.size for n in w], self.groups * self.depth, [n.stride for n in w]
        target = [n.out_size for n in w], total, [1, 1, 1]
        kernel = [n.kernel for n in w]
        terms = _terms([_forward_taps(n) for n in w], source[0], kernel, self.depth, source[1], self.depth)
        rows, pixels = terms.shape[1], self.conv.x.shape[0] * math.prod(target[0])
        device = self.stages.device
        tiles = tiles_for(device.limits, self.part, rows, self.outside)
        number = tiles.count(rows, self.outside)
        parts, length = cut_depth(pixels, number * self.groups, tiles.depth, _PART_PIXELS)
        table = _padded(terms, tiles.rows)
        words = self.sizes(source, target, [self.depth, self.outside, 0, 0, 0, table.shape[1]])
        words += _phase_words([0, 0, 0, *target[0]], 0, rows)
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


_FLOATS = ("float16", "bfloat16", "float32", "float64")


@kernel(KERNELS, "Conv2D", "", types={"T": (*_FLOATS, "int32")})
@kernel(KERNELS, "Conv3D", "", types={"T": _FLOATS})
def convolve(node: KernelNode) -> Launcher:
    """The convolution of images or volumes."""
    plan = _Plan(Convolution.forward(node))
    if not node.outputs[0].size:
        return nothing
    plan.forward()
    return plan.stages.launcher()


@kernel(KERNELS, "Conv2DBackpropInput", "", types={"T": (*_FLOATS, "int32")})
@kernel(KERNELS, "Conv3DBackpropInputV2", "", types={"T": _FLOATS})
def convolve_by_input(node: KernelNode) -> Launcher:
    """The gradient by the images or volumes."""
    plan = _Plan(Convolution.by_input(node))
    if not node.outputs[0].size:
        return nothing
    plan.by_input()
    return plan.stages.launcher()


@kernel(KERNELS, ("Conv2DBackpropFilter", "Conv3DBackpropFilterV2"), "", types={"T": _FLOATS})
def convolve_by_filter(node: KernelNode) -> Launcher:
    """The gradient by the filter."""
    plan = _Plan(Convolution.by_filter(node))
    if not node.outputs[0].size:
        return nothing
    plan.by_filter()
    return plan.stages.launcher()
