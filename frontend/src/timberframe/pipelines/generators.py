"""Pipelines of what Python generators give."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import Any

from timberframe.pipelines.base import Captured, Context, Cursor, Element, Pipeline, State
from timberframe_core.dtypes import DType
from timberframe_core.errors import OpError, OutOfRangeError
from timberframe_core.plugin.host_ops import HostCall
from timberframe_core.shapes import Shape


class Generator(Pipeline):
    """What a function gives again and again until it raises OutOfRangeError; `start` gives what it and `end` get."""

    def __init__(
        self,
        call: HostCall,
        functions: tuple[Captured, Captured, Captured],
        dtypes: Sequence[DType],
        shapes: Sequence[Shape],
    ) -> None:
        super().__init__(call, dtypes, shapes)
        self.functions = functions

    def begin(self, context: Context, path: str) -> Cursor:
        return _GeneratorCursor(self, context)


class _GeneratorCursor(Cursor):
    """Its position is the number of elements: to go on from one, the generator is begun again and gives as many."""

    def __init__(self, pipeline: Generator, context: Context) -> None:
        self._pipeline = pipeline
        self._start, self._step, self._end = (f.prepare(context) for f in pipeline.functions)
        self._state: Sequence[Any] | None = None
        self._given = 0
        self._ended = False

    def next(self) -> Element | None:
        if self._ended:
            return None
        if self._state is None:
            self._state = self._start(())
        self._given += 1
        try:
            return self._step(self._state)
        except OutOfRangeError:
            self._finish()
            return None

    def _finish(self) -> None:
        self._ended = True
        state, self._state = self._state, None
        if state is not None:
            self._end(state)

    def position(self) -> State:
        return {"given": self._given, "ended": self._ended}

    def set_position(self, state: State) -> None:
        if state["ended"]:
            self._ended = True
            return
        while self._given < state["given"] and not self._ended:
            with contextlib.suppress(OpError):
                self.next()

    def close(self) -> None:
        with contextlib.suppress(OpError):
            self._finish()
