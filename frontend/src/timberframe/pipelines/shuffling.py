"""Elements in random order: TensorFlow's for equal seeds."""

from __future__ import annotations

import os
import threading
from collections import deque
from typing import Any

import numpy as np

from timberframe.pipelines.base import (
    Block,
    Context,
    Cursor,
    Element,
    Empty,
    Pipeline,
    State,
    Wrapper,
    block_of,
    element_of,
)
from timberframe.pipelines.numbers import Numbers
from timberframe.pipelines.positions import pack, unpack
from timberframe_core.plugin.host_ops import HostCall

_drawing = threading.Lock()
"""Held while seeds are drawn: iterators of one dataset may be begun by several threads."""


class Shuffle(Pipeline):
    """Elements drawn from a buffer, which those that come after fill up again.

    again: whether each repetition has an order of its own, which follows from the seeds, too. apart: whether each place
    of the pipeline in others has seeds of its own also where they would be shared; see Context.
    """

    def __init__(
        self, call: HostCall, source: Pipeline, size: int, seeds: tuple[int, int], again: bool, apart: bool = False
    ) -> None:
        super().__init__(call, source.dtypes, source.shapes)
        if size < 1:
            raise call.error(f"buffer_size is {size}; it must be greater than zero")
        self.source, self.buffer_size, self.again = source, size, again
        self.seeds = seeds if any(seeds) else (int.from_bytes(os.urandom(8)), int.from_bytes(os.urandom(8)))
        self._apart = apart
        self._numbers: dict[str, Numbers] = {}

    def begin(self, context: Context, path: str) -> Cursor:
        seeds = self.seeds
        if self.again:
            with _drawing:
                own = self._numbers.setdefault(path if self._apart else "", Numbers(*seeds))
                numbers = context.numbers(path, own)
                seeds = numbers.next(), numbers.next()
        if context.draws_alone:
            return Empty()  # TensorFlow begins the source with the first element
        return _ShuffleCursor(self, context, self.source.begin(context, f"{path}/0"), seeds)

    def size(self) -> int:
        return self.source.size()


class _ShuffleCursor(Wrapper):
    """The buffer is a list whose elements are drawn by exchange with the first that is left, as TensorFlow does.

    Where the source has a table, the buffer holds numbers of rows. `_arrived` are elements that the source gave ahead.
    """

    def __init__(self, pipeline: Shuffle, context: Context, source: Cursor, seeds: tuple[int, int]) -> None:
        super().__init__(source)
        self._context = context
        self.table = source.table
        self._pipeline = pipeline
        self._numbers = Numbers(*seeds)
        self._buffer: list[Any] = []
        self._first = 0
        self._held = 0
        self._arrived: deque[Any] = deque()
        self._ended = False
        self._error: Exception | None = None

    def next(self) -> Element | None:
        if not self._fill(1):
            return None
        drawn = self._draw(self._numbers.next())
        return drawn if self.table is None else element_of(self.table, drawn)

    def block(self, count: int) -> Block | None:
        if self.table is not None:
            rows = self.rows(count)
            return None if rows is None else block_of(self.table, rows)
        drawn = self._drawn(count)
        return Block(len(drawn), None, drawn) if drawn else None

    def rows(self, count: int) -> np.ndarray | None:
        drawn = self._drawn(count)
        return np.array(drawn, np.int64) if drawn else None

    def _fill(self, ahead: int) -> bool:
        """Fills the buffer; whether it holds anything. ahead: how many elements may be taken of the source at once."""
        size, arrived, buffer = self._pipeline.buffer_size, self._arrived, self._buffer
        while self._held < size:
            if not arrived and (self._ended or not self._receive(max(ahead, size - self._held))):
                break
            if len(buffer) < size:
                buffer.append(arrived.popleft())
            else:
                buffer[(self._first + self._held) % size] = arrived.popleft()
            self._held += 1
        return self._held > 0

    def _receive(self, count: int) -> bool:
        """Takes elements of the source, at least one; False where it has no more."""
        if self._error is not None:
            error, self._error = self._error, None
            raise error
        if self.table is not None:
            rows = self.source.rows(count)
            self._arrived.extend(() if rows is None else rows.tolist())
        elif count > 1:
            block = self.source.block(count)
            self._arrived.extend(() if block is None else block.elements())
        else:
            element = self.source.next()
            self._arrived.extend(() if element is None else (element,))
        self._ended = not self._arrived
        return not self._ended

    def _draw(self, number: int) -> Any:
        buffer, first = self._buffer, self._first
        size = len(buffer)
        at, start = (first + number % self._held) % size, first % size
        drawn = buffer[at]
        buffer[at], buffer[start] = buffer[start], None
        self._first = first + 1
        self._held -= 1
        return drawn

    def _drawn(self, count: int) -> list[Any]:
        """Up to `count` elements; an error that comes after some of them is raised by the next call."""
        found: list[Any] = []
        try:
            while len(found) < count and self._fill(count - len(found)):
                replaced = min(count - len(found), len(self._arrived))
                if replaced and self._held == self._pipeline.buffer_size:
                    self._exchange(self._numbers.take(replaced), found)
                elif self._ended and not self._arrived:
                    self._drain(self._numbers.take(min(count - len(found), self._held)), found)
                else:
                    found.append(self._draw(self._numbers.next()))
        except Exception as e:
            if not found:
                raise
            self._error = None if self._context.cancelled else e
        return found

    def _exchange(self, numbers: np.ndarray, found: list[Any]) -> None:
        """Draws from the full buffer, and fills it up each time."""
        buffer, size, arrived, count = self._buffer, self._pipeline.buffer_size, self._arrived, len(numbers)
        starts = np.arange(self._first, self._first + count) % size
        drawn = (starts + numbers.astype(np.int64) % size) % size
        if count == len(arrived):
            others = list(arrived)
            arrived.clear()
        else:
            others = [arrived.popleft() for _ in range(count)]
        give = found.append
        for at, start, other in zip(drawn.tolist(), starts.tolist(), others, strict=True):
            give(buffer[at])
            buffer[at] = buffer[start]
            buffer[start] = other
        self._first += count

    def _drain(self, numbers: np.ndarray, found: list[Any]) -> None:
        """Draws from the buffer when nothing more comes."""
        buffer, size, count = self._buffer, len(self._buffer), len(numbers)
        steps = np.arange(count)
        drawn = (self._first + steps + numbers.astype(np.int64) % (self._held - steps)) % size
        starts = (self._first + steps) % size
        give = found.append
        for at, start in zip(drawn.tolist(), starts.tolist(), strict=True):
            give(buffer[at])
            buffer[at], buffer[start] = buffer[start], None
        self._first += count
        self._held -= count

    def position(self) -> State:
        held = [self._buffer[i % len(self._buffer)] for i in range(self._first, self._first + self._held)]
        rows = self.table is not None
        return {
            "source": self.source.position(),
            "numbers": self._numbers.position(),
            "held": held if rows else pack(held),
            "arrived": [*self._arrived] if rows else pack(self._arrived),
            "ended": self._ended,
            "first": self._first,
        }

    def set_position(self, state: State) -> None:
        self.source.set_position(state["source"])
        self._numbers.set_position(state["numbers"])
        rows, size = self.table is not None, self._pipeline.buffer_size
        held = state["held"] if rows else unpack(state["held"])
        self._arrived = deque(state["arrived"] if rows else unpack(state["arrived"]))
        self._ended, self._first, self._held, self._error = state["ended"], state["first"], len(held), None
        self._buffer = [None] * min(size, self._first + self._held)
        for i, element in enumerate(held, self._first):
            self._buffer[i % len(self._buffer)] = element
