"""Pipelines of batches: consecutive elements as the rows of arrays."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from timberframe.pipelines.base import Block, Context, Cursor, Element, Pipeline, State, Wrapper
from timberframe.pipelines.functions import Map
from timberframe.pipelines.positions import pack, unpack
from timberframe_core.dtypes import DType, string
from timberframe_core.errors import OpError
from timberframe_core.plugin.host_ops import HostCall
from timberframe_core.shapes import Shape, format_shape


class Batch(Pipeline):
    """Batches of `count` elements. drop: leaves out a last one with fewer."""

    def __init__(self, call: HostCall, source: Pipeline, count: int, drop: bool) -> None:
        if count < 1:
            raise call.error(f"batch_size is {count}; it must be greater than zero")
        super().__init__(call, source.dtypes, [_batched(s, count if drop else None) for s in source.shapes])
        self.source, self.count, self.drop = source, count, drop
        self.drops_whole = isinstance(source, Map)
        """Whether an error in an element drops its batch; TensorFlow, which joins the two, does so after a map."""

    def begin(self, context: Context, path: str) -> Cursor:
        return _BatchCursor(self, context, self.source.begin(context, f"{path}/0"))

    def size(self) -> int:
        size = self.source.size()
        return size if size < 0 else size // self.count if self.drop else -(-size // self.count)

    def rows(self, elements: Sequence[Element]) -> list[np.ndarray]:
        """Returns elements as the rows of arrays."""
        return [self._column(i, [e[i] for e in elements], d) for i, d in enumerate(self.dtypes)]

    def _column(self, i: int, parts: list[Any], dtype: DType) -> np.ndarray:
        shape = parts[0].shape
        for k, x in enumerate(parts):
            if x.shape != shape:
                raise self.error(
                    f"component {i} of element {k} of a batch has shape {format_shape(tuple(x.shape))}, that of the "
                    f"first {format_shape(tuple(shape))}; a batch needs equal shapes"
                )
        return stacked(parts, shape, dtype)


def _batched(shape: Shape, count: int | None) -> Shape:
    return None if shape is None else (count, *shape)


def stacked(parts: Sequence[Any], shape: Sequence[int], dtype: DType) -> np.ndarray:
    """Arrays of one shape as the rows of another."""
    if dtype is string:
        made: np.ndarray = np.empty((len(parts), *shape), object)
        if shape:
            for row, x in zip(made, parts, strict=True):
                row[...] = x
        else:
            made[:] = [x[()] if isinstance(x, np.ndarray) else x for x in parts]
        return made
    if not shape:
        return (
            np.array([x.item() for x in parts], dtype.numpy)
            if dtype.numpy.kind in "biuf"
            else _filled(parts, (), dtype)
        )
    return _filled(parts, shape, dtype)


def _filled(parts: Sequence[Any], shape: Sequence[int], dtype: DType) -> np.ndarray:
    made: np.ndarray = np.empty((len(parts), *shape), dtype.numpy)
    for i, x in enumerate(parts):
        made[i] = x
    return made


class _BatchCursor(Wrapper):
    """`_begun` has elements of a batch whose making was stopped."""

    def __init__(self, pipeline: Batch, context: Context, source: Cursor) -> None:
        super().__init__(source)
        self.fresh = True
        self._pipeline, self._context = pipeline, context
        self._begun: list[Block] = []
        self._ended = False

    def next(self) -> Element | None:
        if self._ended:
            return None
        wanted, blocks, self._begun = self._pipeline.count, self._begun, []
        count = sum([b.count for b in blocks])
        while count < wanted:
            try:
                block = self.source.block(wanted - count)
            except Exception:
                if self._context.cancelled:
                    self._begun = blocks
                else:
                    self._drop(wanted - count - 1)
                raise
            if block is None:
                self._ended = True
                break
            blocks.append(block)
            count += block.count
        if not count or (count < wanted and self._pipeline.drop):
            return None
        if len(blocks) == 1 and blocks[0].has_columns:
            return blocks[0].columns()
        if all(b.has_columns for b in blocks):
            columns = list(zip(*(b.columns() for b in blocks), strict=True))
            if all(len({x.shape[1:] for x in c}) == 1 for c in columns):
                return [np.concatenate(c) for c in columns]
        return self._pipeline.rows([e for b in blocks for e in b.elements()])

    def _drop(self, count: int) -> None:
        """Leaves out the rest of a batch in which an element is an error, where TensorFlow does."""
        if self._pipeline.drops_whole:
            for _ in range(count):
                with contextlib.suppress(OpError):
                    self.source.next()

    def position(self) -> State:
        begun = [e for block in self._begun for e in block.elements()]
        return {"ended": self._ended, "begun": pack(begun), "source": self.source.position()}

    def set_position(self, state: State) -> None:
        self._ended, begun = state["ended"], unpack(state["begun"])
        self._begun = [Block(len(begun), None, begun)] if begun else []
        self.source.set_position(state["source"])


class PaddedBatch(Batch):
    """Batches of elements that are padded to one shape. shapes: of each component, with -1 for the largest size."""

    def __init__(
        self,
        call: HostCall,
        source: Pipeline,
        count: int,
        drop: bool,
        shapes: Sequence[np.ndarray],
        values: Sequence[np.ndarray],
    ) -> None:
        super().__init__(call, source, count, drop)
        self.padded = [tuple(int(d) for d in s) for s in shapes]
        self.values = [v[()] for v in values]
        if len(self.padded) != len(self.dtypes):
            raise call.error(f"{len(self.padded)} padded_shapes for {len(self.dtypes)} components; each needs one")
        for i, (padded, shape) in enumerate(zip(self.padded, source.shapes, strict=True)):
            if shape is not None and len(shape) != len(padded):
                raise call.error(
                    f"component {i} has shape {format_shape(shape)}, its padded shape {format_shape(padded)}; "
                    "the ranks must be equal"
                )
        lead = (count if drop else None,)
        self.shapes = tuple((*lead, *(None if d < 0 else d for d in p)) for p in self.padded)

    def rows(self, elements: Sequence[Element]) -> list[np.ndarray]:
        return [self._padded(i, [e[i] for e in elements], d) for i, d in enumerate(self.dtypes)]

    def _padded(self, i: int, parts: list[Any], dtype: DType) -> np.ndarray:
        padded, value = self.padded[i], self.values[i]
        rank = len(padded)
        limits = [(k, d) for k, d in enumerate(padded) if d >= 0]
        for x in parts:
            if x.ndim != rank or (limits and any(x.shape[k] > d for k, d in limits)):
                raise self.error(
                    f"component {i} of an element has shape {format_shape(tuple(x.shape))}; it cannot be padded to "
                    f"{format_shape(padded)}"
                )
        shapes = {x.shape for x in parts}
        sizes = tuple(max(s[k] for s in shapes) if d < 0 else d for k, d in enumerate(padded))
        if shapes == {sizes}:
            return stacked(parts, sizes, dtype)
        made: np.ndarray = np.empty((len(parts), *sizes), dtype.numpy)
        made[...] = value
        if rank == 1:
            made[np.arange(sizes[0]) < np.array([[len(x)] for x in parts])] = np.concatenate(parts)
        else:
            for row, x in zip(made, parts, strict=True):
                row[tuple(map(slice, x.shape))] = x
        return made


class Unbatch(Pipeline):
    """The rows of each element."""

    def __init__(self, call: HostCall, source: Pipeline, dtypes: Sequence[DType], shapes: Sequence[Shape]) -> None:
        super().__init__(call, dtypes, shapes)
        self.source = source

    def begin(self, context: Context, path: str) -> Cursor:
        return _UnbatchCursor(self, self.source.begin(context, f"{path}/0"))


class _UnbatchCursor(Wrapper):
    def __init__(self, pipeline: Unbatch, source: Cursor) -> None:
        super().__init__(source)
        self.fresh = False
        self._pipeline = pipeline
        self._columns: Sequence[Any] | None = None
        self._at = 0

    def _available(self) -> int:
        while True:
            if self._columns is None:
                self._columns = self.source.next()
                self._at = 0
                if self._columns is None:
                    return 0
                sizes = {x.shape[:1] for x in self._columns}
                if () in sizes or len(sizes) != 1:
                    found = ", ".join(format_shape(tuple(x.shape)) for x in self._columns)
                    self._columns = None
                    raise self._pipeline.error(
                        f"the components of an element have shapes {found}; all need as many rows to be taken apart"
                    )
            left = len(self._columns[0]) - self._at
            if left:
                return left
            self._columns = None

    def next(self) -> Element | None:
        if not self._available():
            return None
        assert self._columns is not None
        self._at += 1
        return tuple([c[self._at - 1, ...] for c in self._columns])

    def block(self, count: int) -> Block | None:
        count = min(count, self._available())
        if not count:
            return None
        assert self._columns is not None
        columns, at = self._columns, self._at
        self._at += count
        return Block(count, lambda: [np.array(c[at : at + count]) for c in columns])

    def position(self) -> State:
        held = [] if self._columns is None else pack([self._columns])
        return {"held": held, "at": self._at, "source": self.source.position()}

    def set_position(self, state: State) -> None:
        self._columns = state["held"][0] if state["held"] else None
        self._at = state["at"]
        self.source.set_position(state["source"])
