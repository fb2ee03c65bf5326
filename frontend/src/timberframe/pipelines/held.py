"""Pipelines of elements that are held, as those of a window."""

from __future__ import annotations

from collections.abc import Sequence

from timberframe.pipelines.base import Block, Context, Cursor, Element, Pipeline, State
from timberframe_core.dtypes import DType
from timberframe_core.shapes import Shape


class Elements(Pipeline):
    """Elements that are held: those of a window."""

    def __init__(self, elements: Sequence[Element], dtypes: Sequence[DType], shapes: Sequence[Shape]) -> None:
        self.op, self.node, self.path = "WindowDataset", "", ""
        self.dtypes, self.shapes = tuple(dtypes), tuple(shapes)
        self.elements = elements

    def begin(self, context: Context, path: str) -> Cursor:
        return _ElementsCursor(self.elements)

    def size(self) -> int:
        return len(self.elements)


class _ElementsCursor(Cursor):
    def __init__(self, elements: Sequence[Element]) -> None:
        self._elements = elements
        self._at = 0

    def next(self) -> Element | None:
        if self._at >= len(self._elements):
            return None
        self._at += 1
        return self._elements[self._at - 1]

    def block(self, count: int) -> Block | None:
        found = self._elements[self._at : self._at + count]
        self._at += len(found)
        return Block(len(found), None, found) if found else None

    def position(self) -> State:
        return {"at": self._at}

    def set_position(self, state: State) -> None:
        self._at = state["at"]
