"""Plans for the native kernel `move`: which boxes of elements go where, in the form that csrc/movement/move.h reads.

A `View` is a tensor seen with shape, strides and offset of one's own, as NumPy's are; a move copies one view to another
of the same shape. All strides and offsets are in bytes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from timberframe.errors import UnimplementedError
from timberframe_cpu.native import native
from timberframe_sdk.native import Native

MAX_RANK = 16
"""Dimensions of a box after merging: MOVE_MAX_RANK in move.h."""

_ROWS, _FILL, _STRIDED, _TRANSPOSE = range(4)
_LITERAL = -1
_UNITS = (1, 2, 4, 8, 16)

Dim = tuple[int, int, int]
"""Size, source stride and target stride of one dimension."""


class View(NamedTuple):
    """A box of elements of one tensor.

    tensor: number of an input as a source, of an output as a target; `element` and `output` make other sources.
    """

    shape: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int = 0
    tensor: int = 0

    def window(self, starts: Sequence[int], sizes: Sequence[int], steps: Sequence[int] | None = None) -> View:
        """The part that begins at `starts` and takes `sizes` elements, every steps[i]-th."""
        strides = self.strides if steps is None else tuple([s * n for s, n in zip(self.strides, steps, strict=True)])
        offset = self.offset + sum([a * s for a, s in zip(starts, self.strides, strict=True)])
        return View(tuple(sizes), strides, offset, self.tensor)

    def along(self, axis: int, start: int, size: int, step: int = 1) -> View:
        """The part that takes `size` elements of one dimension, every step-th from `start` on."""
        shape, strides = self.shape, self.strides
        stride = strides[axis]
        if step != 1:
            strides = (*strides[:axis], stride * step, *strides[axis + 1 :])
        return View((*shape[:axis], size, *shape[axis + 1 :]), strides, self.offset + start * stride, self.tensor)

    def permuted(self, order: Sequence[int]) -> View:
        """The dimensions in another order."""
        shape, strides = self.shape, self.strides
        return View(tuple([shape[i] for i in order]), tuple([strides[i] for i in order]), self.offset, self.tensor)

    def broadcast(self, shape: Sequence[int]) -> View:
        """Dimensions of one, and new leading ones, repeated up to `shape`."""
        new = (0,) * (len(shape) - len(self.shape))
        strides = [0 if n == 1 else s for n, s in zip(self.shape, self.strides, strict=True)]
        return View(tuple(shape), (*new, *strides), self.offset, self.tensor)

    def output(self) -> View:
        """As a source: this part of the output, which earlier moves of the plan have written."""
        return View(self.shape, self.strides, self.offset, -2 - self.tensor)


def dense(shape: Sequence[int], itemsize: int, tensor: int = 0) -> View:
    """A whole row-major tensor, or a view of its elements in another shape."""
    strides, step = [], itemsize
    for size in reversed(shape):
        strides.append(step)
        step *= size
    return View(tuple(shape), tuple(strides[::-1]), 0, tensor)


def element(shape: Sequence[int], tensor: int = _LITERAL) -> View:
    """The first element of an input (of the plan's literal, if none is named), repeated in a shape."""
    return View(tuple(shape), (0,) * len(shape), 0, tensor)


def move(source: View, target: View, itemsize: int) -> list[int]:
    """The words of one move; none if the box is empty. Raises UnimplementedError above 16 dimensions."""
    if 0 in target.shape:
        return []
    unit = itemsize
    dims = _merged(zip(target.shape, source.strides, target.strides, strict=True))
    while dims and dims[-1][1] == dims[-1][2] == unit and dims[-1][0] * unit in _UNITS:
        unit *= dims.pop()[0]  # several elements that stay together move as one
    if not dims:
        dims = [(1, unit, unit)]
    if len(dims) > MAX_RANK:
        raise UnimplementedError(f"a box of {len(dims)} dimensions that do not merge; at most {MAX_RANK} are possible")
    kind = _kind(dims, unit)
    words = [source.tensor, target.tensor, unit, kind, len(dims), source.offset, target.offset]
    for dim in dims:
        words += dim
    return words


def _merged(dims: Iterable[Dim]) -> list[Dim]:
    """The dimensions in the target's order, neighbours made one where they can be."""
    kept = [d for d in dims if d[0] != 1]
    if len(kept) > 1:
        kept.sort(key=_target_stride)
    merged: list[Dim] = []
    for dim in kept:
        size, source, target = dim
        if merged and merged[-1][1] == source * size and merged[-1][2] == target * size:
            merged[-1] = (merged[-1][0] * size, source, target)
        else:
            merged.append(dim)
    return merged


def _target_stride(dim: Dim) -> int:
    return -abs(dim[2])


def _kind(dims: list[Dim], unit: int) -> int:
    """How the innermost dimensions are walked; for a transpose, brings the source's contiguous one next to the last."""
    _, source, target = dims[-1]
    if target != unit:
        return _STRIDED
    if source in (unit, 0):
        return _ROWS if source else _FILL
    across = next((i for i in range(len(dims) - 1) if dims[i][1] == unit), None)
    if across is None:
        return _STRIDED
    contiguous = dims.pop(across)
    dims.insert(len(dims) - 1, contiguous)
    return _TRANSPOSE


def plan(moves: Iterable[tuple[View, View]], itemsize: int, literal: bytes = b"", kernel: str = "move") -> Native:
    """The kernel that performs these (source, target) moves in order; `literal` holds the element of `element()`."""
    words: list[int] = []
    count = 0
    for source, target in moves:
        record = move(source, target, itemsize)
        if record:
            words += record
            count += 1
    head = literal.ljust(16, b"\0")
    bits = [int.from_bytes(head[i : i + 8], "little", signed=True) for i in (0, 8)]
    return native(kernel, count, *bits, *words)
