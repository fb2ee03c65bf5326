"""Pipelines that begin with tensors or numbers."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from timberframe.pipelines.base import (
    INFINITE,
    Block,
    Context,
    Cursor,
    Element,
    Pipeline,
    State,
    block_of,
)
from timberframe.pipelines.numbers import Numbers
from timberframe_core.dtypes import DType
from timberframe_core.plugin.host_ops import HostCall
from timberframe_core.shapes import Shape


class Tensors(Pipeline):
    """One element: these tensors."""

    def __init__(self, call: HostCall, components: Sequence[Any], dtypes: Sequence[DType]) -> None:
        super().__init__(call, dtypes, [tuple(x.shape) for x in components])
        self.components = tuple(components)

    def begin(self, context: Context, path: str) -> Cursor:
        return _TensorsCursor(self)

    def size(self) -> int:
        return 1


class _TensorsCursor(Cursor):
    def __init__(self, pipeline: Tensors) -> None:
        self._element: Element | None = pipeline.components

    def next(self) -> Element | None:
        found, self._element = self._element, None
        return found

    def position(self) -> State:
        return {"given": self._element is None}

    def set_position(self, state: State) -> None:
        if state["given"]:
            self._element = None


class _Progression:
    """The numbers first, first + step, ... as a column of a table."""

    def __init__(self, first: int, step: int) -> None:
        self._first, self._step = first, step

    def __getitem__(self, index: Any) -> np.ndarray:
        if isinstance(index, tuple):
            return np.array(self._first + self._step * index[0], np.int64)
        if isinstance(index, slice):
            index = np.arange(index.start, index.stop)
        found: np.ndarray = self._first + self._step * np.asarray(index, np.int64)
        return found


class Table(Pipeline):
    """The rows of some columns, which are arrays of equal first dimensions or `_Progression`s."""

    def __init__(
        self, call: HostCall, columns: Sequence[Any], count: int, dtypes: Sequence[DType], shapes: Sequence[Shape]
    ) -> None:
        super().__init__(call, dtypes, shapes)
        self.columns, self.count = tuple(columns), count
        self.table = self.columns

    def begin(self, context: Context, path: str) -> Cursor:
        return _TableCursor(self.columns, self.count)

    def size(self) -> int:
        return self.count


class _TableCursor(Cursor):
    def __init__(self, columns: Sequence[Any], count: int) -> None:
        self.table = columns
        self._count = count
        self._at = 0

    def next(self) -> Element | None:
        at = self._at
        if at >= self._count:
            return None
        self._at = at + 1
        return tuple([column[at, ...] for column in self.table or ()])

    def rows(self, count: int) -> np.ndarray | None:
        at = self._at
        if at >= self._count:
            return None
        self._at = end = min(at + count, self._count)
        return np.arange(at, end)

    def block(self, count: int) -> Block | None:
        rows = self.rows(count)
        return None if rows is None else block_of(self.table or (), rows)

    def position(self) -> State:
        return {"at": self._at}

    def set_position(self, state: State) -> None:
        self._at = state["at"]


def slices(call: HostCall) -> Table:
    """Returns the rows of tensors."""
    columns = [np.asarray(x) for x in call.inputs]
    sizes = {x.shape[:1] for x in columns}
    if () in sizes or len(sizes) != 1:
        raise call.error(
            f"the components have shapes {', '.join(str(x.shape) for x in columns)}; "
            "all need as many rows, and thus at least one dimension"
        )
    return Table(call, columns, len(columns[0]), call.attrs["Toutput_types"], [x.shape[1:] for x in columns])


def numbers(call: HostCall) -> Table:
    """Returns the integers of a range."""
    start, stop, step = (int(x) for x in call.inputs)
    if not step:
        raise call.error("step is 0; it must not be")
    (dtype,) = call.attrs["output_types"]
    column: Any = _Progression(start, step)
    count = len(range(start, stop, step))
    if dtype.name != "int64":
        column = np.arange(start, stop, step).astype(dtype.numpy)
    return Table(call, [column], count, [dtype], [()])


class RandomNumbers(Pipeline):
    """Random integers of 32 bits, as int64, without an end."""

    def __init__(self, call: HostCall) -> None:
        super().__init__(call, call.attrs["output_types"], [()])
        self.seeds = int(call.inputs[0]), int(call.inputs[1])

    def begin(self, context: Context, path: str) -> Cursor:
        seeds = self.seeds if any(self.seeds) else (int.from_bytes(os.urandom(8)), int.from_bytes(os.urandom(8)))
        return _RandomCursor(Numbers(*seeds))

    def size(self) -> int:
        return INFINITE


class _RandomCursor(Cursor):
    fresh = True

    def __init__(self, numbers: Numbers) -> None:
        self._numbers = numbers

    def next(self) -> Element | None:
        return (np.array(self._numbers.next(), np.int64),)

    def position(self) -> State:
        return self._numbers.position()

    def set_position(self, state: State) -> None:
        self._numbers.set_position(state)
