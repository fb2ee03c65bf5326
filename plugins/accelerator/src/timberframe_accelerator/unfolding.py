"""Convolutions and their gradients as products of a device's library: images are unfolded into matrices, in pieces.

A convolution whose windows are single pixels is a product as it is. Of others, and of their gradients, the rows of a
piece of the pixels are laid out in the workspace, which the library multiplies.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from timberframe_accelerator.convolution_stages import (
    ConvolutionStages,
    Taps,
    forward_taps,
    phase_words,
    phases_of,
    terms_of,
)
from timberframe_accelerator.launches import Function, Source, spread_rows
from timberframe_accelerator.library import Multiplication
from timberframe_accelerator.product import add_parts
from timberframe_accelerator.stages import BufferView
from timberframe_sdk import InternalError, Launcher

PIECE_BYTES = 32 << 20
"""Bytes of unfolded rows at a time: what the second-level caches of large GPUs hold, so that they need not be read back
from memory."""
LEAST_COLUMNS = 8
"""Columns of a product, for each byte of an element, from which on unfolding is worth it: by data sheets (2.5 TB/s, 10
TFLOP/s of the kernels that gather, five times as many of a library), not measured."""


@dataclass(frozen=True)
class _Rows:
    """The rows of a phase's pixels, of `length` elements each.

    tables: sizes and terms, as pixels.h reads them, where `unit` elements are one.
    """

    tables: tuple[Any, Any]
    pixels: int
    length: int
    unit: int

    def pieces(self, nbytes: int) -> Iterator[tuple[int, int]]:
        """Returns the first pixel and the number of pixels of each piece; `nbytes` are those of a row."""
        most = max(1, PIECE_BYTES // max(nbytes, 1))
        return ((first, min(most, self.pixels - first)) for first in range(0, self.pixels, most))


class Unfolded(ConvolutionStages):
    """A convolution or gradient by a library; each method gives None where the device has none that serves it."""

    @property
    def _plain(self) -> bool:
        """Whether the window of each pixel is that pixel."""
        return all(w.kernel == w.stride == 1 and w.size == w.out_size for w in self.windows)

    @property
    def _pixels(self) -> int:
        """Pixels of the result of the convolution."""
        return self.conv.y.size // max(self.groups * self.outside, 1)

    def _worth(self, columns: int) -> bool:
        return self._plain or columns >= LEAST_COLUMNS * self.dtype.itemsize

    def forward(self) -> Launcher | None:
        """x by the filter."""
        terms, total = math.prod(w.kernel for w in self.windows) * self.depth, self.groups * self.outside
        wanted = Multiplication(
            self._pixels, self.outside, terms, (False, False), (self._pitch(terms), total, total), (self.dtype,) * 3,
            self.groups, (self.depth, self.outside, self.outside),
        )  # fmt: skip
        if not self._worth(self.outside) or self.stages.device.multiplier(wanted) is None:
            return None
        x, y = self.channels_last(BufferView(0), self.conv.x), self.result(self.conv.y)
        if self._plain:
            self._multiply(wanted, x, BufferView(1), y)
        else:
            self._forward_in_pieces(wanted, x, y)
        self.back(y, self.conv.y)
        return self.stages.launcher()

    def by_input(self) -> Launcher | None:
        """Returns the result's gradient by the filter, transposed for each tap."""
        total, channels = self.groups * self.outside, self.groups * self.depth
        wanted = Multiplication(
            self._pixels, self.depth, self.outside, (False, True), (total, total, channels), (self.dtype,) * 3,
            self.groups, (self.outside, self.outside, self.depth),
        )  # fmt: skip
        served = self._plain or self.groups == 1  # with groups, the lines of a tap do not lie together
        if not served or not self._worth(self.depth) or self.stages.device.multiplier(wanted) is None:
            return None
        dy, dx = self.channels_last(BufferView(1), self.conv.y), self.result(self.conv.x)
        if self._plain:
            self._multiply(wanted, dy, BufferView(0), dx)
        else:
            self._by_input_in_pieces(dy, dx)
        self.back(dx, self.conv.x)
        return self.stages.launcher()

    def by_filter(self) -> Launcher | None:
        """x, transposed, by the result's gradient."""
        terms, total = math.prod(w.kernel for w in self.windows) * self.depth, self.groups * self.outside
        wanted = Multiplication(
            terms, self.outside, self._pixels, (True, False), (self._pitch(terms), total, total), (self.dtype,) * 3,
            self.groups, (self.depth, self.outside, self.outside),
        )  # fmt: skip
        if not self._worth(self.outside) or self.stages.device.multiplier(wanted) is None:
            return None
        x, dy = self.channels_last(BufferView(0), self.conv.x), self.channels_last(BufferView(1), self.conv.y)
        if self._plain:
            self._multiply(wanted, x, dy, BufferView(self.stages.result))
        else:
            self._by_filter_in_pieces(wanted, x, dy)
        return self.stages.launcher()

    def _pitch(self, terms: int) -> int:
        """Returns elements from one pixel's row to the next's."""
        return self.groups * self.depth if self._plain else terms

    def _forward_in_pieces(self, wanted: Multiplication, x: BufferView, y: BufferView) -> None:
        rows = self._rows([forward_taps(w) for w in self.windows])
        room = self._room([rows], rows.length)
        for first, count in self._pieces(rows):
            self._unfold(rows, x, room, first, count)
            piece = replace(wanted, rows=count, steps=(count * rows.length, *wanted.steps[1:]))
            self._multiply(piece, room, BufferView(1), BufferView(y.argument, y.start + first * wanted.pitches[2]))

    def _by_filter_in_pieces(self, wanted: Multiplication, x: BufferView, dy: BufferView) -> None:
        """Pieces are added to each other in the dtype of sums, and rounded to the tensors' at the end."""
        rows = self._rows([forward_taps(w) for w in self.windows])
        room, pieces = self._room([rows], rows.length), list(self._pieces(rows))
        size, part = self.conv.filter.size, np.dtype(self.part)
        result = sums = BufferView(self.stages.result)
        if len(pieces) > 1 and part != self.dtype:
            sums = self.stages.room(size, part.itemsize)
            wanted = replace(wanted, types=(self.dtype, self.dtype, part))
        for first, count in pieces:
            self._unfold(rows, x, room, first, count)
            steps = count * rows.length, *wanted.steps[1:]
            piece = replace(wanted, depth=count, steps=steps, adds=first > 0)
            self._multiply(piece, room, BufferView(dy.argument, dy.start + first * wanted.pitches[1]), sums)
        if sums != result:
            add_parts(self.stages, sums, result, self.dtype, size, 1)

    def _by_input_in_pieces(self, dy: BufferView, dx: BufferView) -> None:
        """Phase by phase: the pixels of x that lie a stride apart. The rows of an only phase are those of dx."""
        phases = list(itertools.product(*(phases_of(w) for w in self.windows)))
        rows = [self._rows([taps for _, _, taps in phase], phase) for phase in phases]
        room = self._room(rows, max(r.length for r in rows))
        made = self._room(rows, self.depth) if len(phases) > 1 else dx
        for phase, of_phase in zip(phases, rows, strict=True):
            if not of_phase.length:
                self._place(of_phase, dx, dx, 0, of_phase.pixels)  # no window covers these pixels
                continue
            filter = self._swapped_taps([[k for k, _ in taps] for _, _, taps in phase])
            for first, count in self._pieces(of_phase):
                self._unfold(of_phase, dy, room, first, count)
                pitches = of_phase.length, self.depth, self.depth
                types = self.dtype, self.dtype, self.dtype
                wanted = Multiplication(count, self.depth, of_phase.length, (False, False), pitches, types)
                if made is dx:
                    self._multiply(wanted, room, filter, BufferView(dx.argument, dx.start + first * self.depth))
                else:
                    self._multiply(wanted, room, filter, made)
                    self._place(of_phase, made, dx, first, count)

    def _swapped_taps(self, numbers: Sequence[Sequence[int]]) -> BufferView:
        """Returns the filter's matrices of these taps, each transposed, one after the other."""
        kernel, size = [w.kernel for w in self.windows], self.depth * self.outside
        taps = [(i * kernel[1] + j) * kernel[2] + k for i, j, k in itertools.product(*numbers)]
        if taps == list(range(len(taps))):
            return self.stages.swap(BufferView(0), None, self.dtype, len(taps), self.depth, self.outside)
        room = self.stages.room(len(taps) * size, self.dtype.itemsize)
        for i, tap in enumerate(taps):
            to = BufferView(room.argument, room.start + i * size)
            self.stages.swap(BufferView(0, tap * size), to, self.dtype, 1, self.depth, self.outside)
        return room

    def _rows(self, taps: Sequence[Taps], phase: Sequence[tuple[int, int, Taps]] | None = None) -> _Rows:
        """Returns the rows of x for these taps; with a phase, those of the result's gradient
        for the pixels of x in that.
        """
        inside, outside = [w.size for w in self.windows], [w.out_size for w in self.windows]
        strides, ones = [w.stride for w in self.windows], [1, 1, 1]
        if phase is None:
            depth, columns, first, counts = self.depth, self.outside, [0, 0, 0], outside
            unit = self._unit(depth)
        else:
            depth, columns, first, counts = self.outside, self.depth, [p[0] for p in phase], [p[1] for p in phase]
            unit = self._unit(depth, columns)
        source, target = (inside, outside) if phase is None else (outside, inside)
        pitch = self.groups * depth // unit
        terms = terms_of(taps, source, [w.kernel for w in self.windows], depth // unit, pitch, 0)
        count = terms.shape[1]
        steps, apart = (strides, ones) if phase is None else (ones, strides)
        sides = (source, pitch, steps), (target, self.groups * columns // unit, apart)
        sizes = self.sizes(*sides, [depth // unit, 0, 0, 0, 0, count]) + phase_words([*first, *counts], 0, count)
        table = self.stages.device.table
        tables = table(np.array(sizes, np.int32)), table(terms)
        return _Rows(tables, self.conv.x.shape[0] * math.prod(counts), count * unit, unit)

    def _unit(self, *channels: int) -> int:
        """Returns elements that are moved at once: up to 8 bytes, where all of these numbers
        of channels are multiples.
        """
        units = [8 // self.dtype.itemsize, 4 // self.dtype.itemsize, 1]
        return next(u for u in units if u and all(c % u == 0 for c in channels))

    def _pieces(self, rows: _Rows) -> Iterator[tuple[int, int]]:
        return rows.pieces(self.groups * rows.length * self.dtype.itemsize)

    def _room(self, rows: Sequence[_Rows], length: int) -> BufferView:
        """Workspace for `length` elements of each pixel of the largest piece."""
        most = max((count for r in rows if r.length for _, count in self._pieces(r)), default=0)
        return self.stages.room(self.groups * most * length, self.dtype.itemsize)

    def _function(self, rows: _Rows, name: str) -> Function:
        source = Source.file("unfold.h", T=f"uint{8 * rows.unit * self.dtype.itemsize}")
        found: Function = self.stages.device.function(source, name)
        return found

    def _unfold(self, rows: _Rows, image: BufferView, room: BufferView, first: int, count: int) -> None:
        views = [BufferView(v.argument, v.start // rows.unit) for v in (image, room)]
        items, group = spread_rows(rows.length // rows.unit, count * self.groups)
        function, numbers = self._function(rows, "tf_unfold"), (np.int32(first), np.int32(count))
        self.stages.call(function, items, group, *views, *rows.tables, *numbers)

    def _place(self, rows: _Rows, source: BufferView, target: BufferView, first: int, count: int) -> None:
        views = [BufferView(v.argument, v.start // rows.unit) for v in (source, target)]
        items, group = spread_rows(self.depth // rows.unit, count)
        function, numbers = self._function(rows, "tf_place"), (np.int32(first), np.int32(count))
        if count:
            self.stages.call(function, items, group, *views, rows.tables[0], *numbers)

    def _multiply(self, wanted: Multiplication, x: BufferView, y: BufferView, result: BufferView) -> None:
        function = self.stages.device.multiplier(wanted)
        if function is None:
            raise InternalError(f"{self.stages.device.spec}: has a library for a product and none for {wanted}")
        self.stages.call(function, (1,), (1,), x, y, result)
