"""Products of matrices on accelerators: which kernel of matmul.h, with which tiles, and its arguments.

MatMul and similar ops are such products, and einsums and what else needs one share this.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from timberframe_accelerator.launches import Limits, Source, index_name, index_type, spread
from timberframe_accelerator.library import Multiplication, Types
from timberframe_accelerator.stages import BufferView, Stages
from timberframe_sdk.elementwise.fusion import merged_dims

LANES, LINES = 16, 16
"""Work-items of a group that computes a tile: LANES along columns, which a CPU's registers take at once."""
_SMALL_DEPTH, _SMALL = 8, 4096  # terms and products up to which a matrix is not worth a tile
_GROUPS = 64  # that are enough work for a device: with fewer, the terms are cut into parts
_PART = 1024  # terms worth a part
_ASIDE = 2048  # bytes of shared memory for what convolutions keep beside the tiles
MOST_BATCHES = 65535  # groups in the third dimension that CUDA takes

_MOST_CALLS = 64  # of a library for one batch of products


@dataclass(frozen=True)
class Tiles:
    """Sizes of the tiles of product.h."""

    lines: int
    each_row: int
    each_column: int
    depth: int

    @property
    def rows(self) -> int:
        return self.lines * self.each_row

    @property
    def columns(self) -> int:
        return LANES * self.each_column

    def count(self, rows: int, columns: int) -> int:
        """Tiles of a matrix."""
        return -(-rows // self.rows) * -(-columns // self.columns)

    def macros(self) -> dict[str, int]:
        return {
            "LANES": LANES, "LINES": self.lines, "EACH_ROW": self.each_row, "EACH_COLUMN": self.each_column,
            "DEPTH": self.depth,
        }  # fmt: skip


def tiles_for(limits: Limits, part: str, rows: int, columns: int) -> Tiles:
    """Returns the tiles for a product of this size: 64 x 64, or 16 along a side that is not
    longer; less for wide dtypes.
    """
    lines = LINES if limits.max_group_size >= LANES * LINES else 8
    most = 4 if np.dtype(part).itemsize == 4 else 2  # sums of 8 bytes that registers hold
    each_row, each_column = (1 if rows <= LANES else 4), (1 if columns <= LANES else most)
    for depth in (32, 16):
        tiles = Tiles(lines, each_row, each_column, depth)
        if depth * (tiles.rows + tiles.columns + 1) * np.dtype(part).itemsize + _ASIDE <= limits.shared_bytes:
            break
    return tiles


def part_type(dtype: np.dtype[Any]) -> str:
    """Returns the dtype in which products are added: float32 for 16-bit floats, unsigned for
    integers, whose sums wrap.
    """
    if dtype.kind in "iu":
        return "uint64" if dtype.itemsize == 8 else "uint32"
    return "float64" if dtype.name == "float64" else "float32"


def written_type(dtype: np.dtype[Any]) -> str:
    """Returns the dtype in which a result is written: unsigned for integers, as their sums are."""
    return f"uint{8 * dtype.itemsize}" if dtype.kind == "i" else dtype.name


def cut_depth(depth: int, tiles: int, step: int, worth: int = _PART) -> tuple[int, int]:
    """Into how many parts the terms of a product are cut, and the length of each, by its sizes alone."""
    parts = max(1, min(_GROUPS // max(tiles, 1), depth // worth))
    length = -(-max(depth, 1) // parts // step) * step
    return max(1, -(-depth // length)), length


def add_parts(
    stages: Stages, sums: BufferView, result: BufferView, dtype: np.dtype[Any], count: int, parts: int
) -> None:
    """Adds the stage that adds the parts of `count` sums into a result of this dtype."""
    macros = {"PART": part_type(dtype), "T": written_type(dtype), "INDEX": index_name(count)}
    function = stages.device.function(Source.file("parts.h", **macros), "tf_add_parts")
    stages.call(function, *spread(count), sums, result, index_type(count)(count), np.int32(parts))


@dataclass(frozen=True)
class Product:
    """A batch of products of matrices: the sizes of each, whether the operands lie transposed, and their batches."""

    rows: int
    columns: int
    depth: int
    swaps: tuple[bool, bool]
    x_batch: tuple[int, ...] = ()
    y_batch: tuple[int, ...] = ()

    @property
    def batch(self) -> tuple[int, ...]:
        return tuple(np.broadcast_shapes(self.x_batch, self.y_batch))

    @property
    def small(self) -> bool:
        """Whether a work-item for each element does better than tiles."""
        return self.depth <= _SMALL_DEPTH or self.rows * self.columns * self.depth <= _SMALL

    def merged(self) -> Product:
        """Returns the same with one matrix on the right taken by all rows of the batch at once."""
        if math.prod(self.y_batch) != 1 or self.swaps[0]:
            return self
        return Product(self.rows * math.prod(self.batch), self.columns, self.depth, self.swaps)

    def walk(self) -> np.ndarray[Any, Any]:
        """Returns the words by which matmul.h finds the matrices of each product."""
        dims = merged_dims([self.x_batch, self.y_batch], self.batch)
        return np.array([len(dims), *(n for size, steps in dims for n in (size, *steps))], np.int64)

    def add(self, stages: Stages, operands: tuple[BufferView, BufferView], result: BufferView, types: Types) -> None:
        """Adds the stages that multiply. types: dtypes of the operands and of the result."""
        this = self.merged()
        count = math.prod(this.batch) * this.rows * this.columns
        if count and not this._add_library(stages, operands, result, types):
            (this._add_small if this.small else this._add_tiled)(stages, operands, result, types, count)

    def _add_library(
        self, stages: Stages, operands: tuple[BufferView, BufferView], result: BufferView, types: Types
    ) -> bool:
        """Makes the device's library multiply, a call for the longest dimension of the batch; whether it does so."""
        sizes = self.rows * self.depth, self.depth * self.columns, self.rows * self.columns
        dims = [(1, (0, 0, 0))]
        for size, steps in merged_dims([self.x_batch, self.y_batch], self.batch):
            across = math.prod(n for n, _ in dims)
            dims.append((size, (steps[0] * sizes[0], steps[1] * sizes[1], across * sizes[2])))
        dims.sort()
        count, apart = dims.pop()
        if math.prod(size for size, _ in dims) > _MOST_CALLS or not self.depth:
            return False
        pitches = (
            self.rows if self.swaps[0] else self.depth,
            self.depth if self.swaps[1] else self.columns,
            self.columns,
        )
        wanted = Multiplication(self.rows, self.columns, self.depth, self.swaps, pitches, types, count, apart)
        function = stages.device.multiplier(wanted)
        if function is None:
            return False
        for numbers in itertools.product(*(range(size) for size, _ in dims)):
            starts = [sum(n * steps[i] for n, (_, steps) in zip(numbers, dims, strict=True)) for i in range(3)]
            views = [BufferView(v.argument, v.start + s) for v, s in zip((*operands, result), starts, strict=True)]
            stages.call(function, (1,), (1,), *views)
        return True

    def _add_small(
        self, stages: Stages, operands: tuple[BufferView, BufferView], result: BufferView, types: Types, count: int
    ) -> None:
        macros = _macros(types) | Tiles(1, 1, 1, 1).macros() | {"LEFT_SWAPPED": 0, "RIGHT_SWAPPED": 0}
        source = Source.file("matmul.h", INDEX=index_name(count), TZ=written_type(types[2]), **macros)
        x_steps = (1, self.rows) if self.swaps[0] else (self.depth, 1)
        y_steps = (1, self.depth) if self.swaps[1] else (self.columns, 1)
        sizes = map(np.int32, (self.rows, self.columns, self.depth, *x_steps, *y_steps))
        function, walk = stages.device.function(source, "tf_small_matmul"), stages.device.table(self.walk())
        stages.call(function, *spread(count), *operands, result, index_type(count)(count), *sizes, walk)

    def _add_tiled(
        self, stages: Stages, operands: tuple[BufferView, BufferView], result: BufferView, types: Types, count: int
    ) -> None:
        part, batch = part_type(types[2]), math.prod(self.batch)
        tiles = tiles_for(stages.device.limits, part, self.rows, self.columns)
        number = tiles.count(self.rows, self.columns)
        parts, length = cut_depth(self.depth, number * batch, tiles.depth)
        written = written_type(types[2]) if parts == 1 else part
        swaps = {"LEFT_SWAPPED": int(self.swaps[0]), "RIGHT_SWAPPED": int(self.swaps[1])}
        source = Source.file("matmul.h", TZ=written, **_macros(types), **tiles.macros(), **swaps)
        function, walk = stages.device.function(source, "tf_matmul"), stages.device.table(self.walk())
        items = number * LANES, tiles.lines, min(batch * parts, MOST_BATCHES)
        sizes = map(np.int32, (self.rows, self.columns, self.depth, batch, parts, length))
        sums = result if parts == 1 else stages.room(parts * count, np.dtype(part).itemsize)
        stages.call(function, items, (LANES, tiles.lines, 1), *operands, sums, *sizes, walk)
        if parts > 1:
            add_parts(stages, sums, result, types[2], count, parts)


def _macros(types: Types) -> dict[str, str | int]:
    return {"TX": types[0].name, "TY": types[1].name, "PART": part_type(types[2])}
