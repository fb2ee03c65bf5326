"""Pipelines of what functions make of elements: map, filter, scan, take_while."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Any

import numpy as np

from timberframe.pipelines.base import Block, Captured, Context, Cursor, Element, Pipeline, State, Wrapper
from timberframe.pipelines.batched import Batched
from timberframe.pipelines.positions import pack, unpack
from timberframe_core.dtypes import DType
from timberframe_core.plugin.host_ops import HostCall
from timberframe_core.shapes import Shape


class Map(Pipeline):
    """A function of each element."""

    def __init__(
        self, call: HostCall, source: Pipeline, function: Captured, dtypes: Sequence[DType], shapes: Sequence[Shape]
    ) -> None:
        super().__init__(call, dtypes, shapes)
        self.source, self.function = source, function

    def begin(self, context: Context, path: str) -> Cursor:
        return MapCursor(self, context, self.source.begin(context, f"{path}/0"))

    def size(self) -> int:
        return self.source.size()


class MapCursor(Wrapper):
    """The function of each element.

    `_waiting` are elements of the source that the function has not got yet, since one before them was an error.
    """

    def __init__(self, pipeline: Map, context: Context, source: Cursor) -> None:
        super().__init__(source)
        self._function = pipeline.function.prepare(context)
        self._batched = Batched.of(pipeline.function, context)
        self.fresh = not pipeline.function.returns_inputs
        self._context = context
        self._waiting: deque[Element] = deque()

    def take(self) -> Element | None:
        """Returns the next element of the source."""
        return self._waiting.popleft() if self._waiting else self.source.next()

    def next(self) -> Element | None:
        element = self.take()
        try:
            return None if element is None else self._function(element)
        except Exception:
            if self._context.cancelled and element is not None:
                self._waiting.appendleft(element)
            raise

    def block(self, count: int) -> Block | None:
        if self._waiting:
            return super().block(count)
        block = self.source.block(count)
        if block is None:
            return None
        if self._batched is not None:
            columns = self._batched.columns(block)
            if columns is not None:
                return Block(block.count, lambda: columns)
        elements, function, made = block.elements(), self._function, []
        for i, element in enumerate(elements):
            try:
                made.append(function(element))
            except Exception:
                again = (
                    made or self._context.cancelled
                )  # others must come before the error, or it is none of the element
                self._waiting.extend(elements[i if again else i + 1 :])
                if not made:
                    raise
                break
        return Block(len(made), None, made)

    def position(self) -> State:
        return {"waiting": pack(self._waiting), "source": self.source.position()}

    def set_position(self, state: State) -> None:
        self._waiting = deque(unpack(state["waiting"]))
        self.source.set_position(state["source"])


class Filter(Pipeline):
    """The elements for which a function gives true."""

    def __init__(self, call: HostCall, source: Pipeline, predicate: Captured) -> None:
        super().__init__(call, source.dtypes, source.shapes)
        self.source, self.predicate = source, predicate

    def begin(self, context: Context, path: str) -> Cursor:
        return _FilterCursor(self, context, self.source.begin(context, f"{path}/0"))

    def chosen(self, answer: Any) -> bool:
        """Returns what the function gave, as a bool."""
        if np.shape(answer):
            raise self.error(f"predicate gives a tensor of shape {np.shape(answer)}; a scalar is required")
        return bool(answer)


class _FilterCursor(Wrapper):
    """`_waiting` are elements of the source that the function has not got yet, since one before them was an error."""

    def __init__(self, pipeline: Filter, context: Context, source: Cursor) -> None:
        super().__init__(source)
        self._chosen, self._context = pipeline.chosen, context
        self._predicate = pipeline.predicate.prepare(context)
        self._batched = Batched.of(pipeline.predicate, context)
        self._waiting: deque[Element] = deque()

    def next(self) -> Element | None:
        while True:
            element = self._waiting.popleft() if self._waiting else self.source.next()
            try:
                if element is None or self._chosen(self._predicate(element)[0]):
                    return element
            except Exception:
                if self._context.cancelled and element is not None:
                    self._waiting.appendleft(element)
                raise
            self._context.cancel.check()

    def block(self, count: int) -> Block | None:
        if self._batched is None or self._waiting:
            return super().block(count)
        while (block := self.source.block(count)) is not None:
            answers = self._batched.columns(block)
            if answers is None:
                self._waiting.extend(block.elements())
                return super().block(count)
            chosen = answers[0].nonzero()[0]
            if len(chosen):
                return block if len(chosen) == block.count else block.some(chosen)
            self._context.cancel.check()
        return None

    def position(self) -> State:
        return {"waiting": pack(self._waiting), "source": self.source.position()}

    def set_position(self, state: State) -> None:
        self._waiting = deque(unpack(state["waiting"]))
        self.source.set_position(state["source"])


class TakeWhile(Filter):
    """The elements before the first one for which a function gives false."""

    def begin(self, context: Context, path: str) -> Cursor:
        return _TakeWhileCursor(self, context, self.source.begin(context, f"{path}/0"))


class _TakeWhileCursor(Wrapper):
    def __init__(self, pipeline: TakeWhile, context: Context, source: Cursor) -> None:
        super().__init__(source)
        self._chosen = pipeline.chosen
        self._predicate = pipeline.predicate.prepare(context)
        self._ended = False

    def next(self) -> Element | None:
        element = None if self._ended else self.source.next()
        if element is None or not self._chosen(self._predicate(element)[0]):
            self._ended = True
            return None
        return element

    def position(self) -> State:
        return {"ended": self._ended, "source": self.source.position()}

    def set_position(self, state: State) -> None:
        self._ended = state["ended"]
        self.source.set_position(state["source"])


class Scan(Pipeline):
    """What a function makes of a state and each element, after the next state."""

    def __init__(
        self,
        call: HostCall,
        source: Pipeline,
        function: Captured,
        initial: Sequence[Any],
        dtypes: Sequence[DType],
        shapes: Sequence[Shape],
    ) -> None:
        super().__init__(call, dtypes, shapes)
        self.source, self.function, self.initial = source, function, tuple(initial)

    def begin(self, context: Context, path: str) -> Cursor:
        return _ScanCursor(self, context, self.source.begin(context, f"{path}/0"))

    def size(self) -> int:
        return self.source.size()


class _ScanCursor(Wrapper):
    def __init__(self, pipeline: Scan, context: Context, source: Cursor) -> None:
        super().__init__(source)
        self.fresh = False
        self._function = pipeline.function.prepare(context)
        self._state: Sequence[Any] = pipeline.initial

    def next(self) -> Element | None:
        element = self.source.next()
        if element is None:
            return None
        made, count = self._function((*self._state, *element)), len(self._state)
        self._state = made[:count]
        return made[count:]

    def position(self) -> State:
        return {"state": pack([self._state]), "source": self.source.position()}

    def set_position(self, state: State) -> None:
        (self._state,) = unpack(state["state"])
        self.source.set_position(state["source"])


def reduce(source: Pipeline, context: Context, function: Captured, initial: Sequence[Any]) -> Sequence[Any]:
    """Returns the last state, after the function has made the next one of a state and each element."""
    state, step, cursor = initial, function.prepare(context), source.begin(context, "")
    try:
        while (element := cursor.next()) is not None:
            state = step((*state, *element))
            context.cancel.check()
    finally:
        cursor.close()
    return state
