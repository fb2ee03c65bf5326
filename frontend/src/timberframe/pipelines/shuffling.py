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
    block_of,
    element_of,
)
from timberframe.pipelines.numbers import Numbers
from timberframe.pipelines.positions import pack, unpack
from timberframe_core.plugin.host_ops import HostCall

_MOST_ROUNDS = 3
"""Number of repetitions of which TensorFlow's buffer holds elements; a further one adds one element at most."""

_AT_ONCE = 1 << 16
"""Number of elements that a buffer takes before it is seen whether the call was stopped."""

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
        self.table = source.table
        self._numbers: dict[str, Numbers] = {}

    def begin(self, context: Context, path: str) -> Cursor:
        return self.begin_repeated(context, path, 1)

    def begin_repeated(self, context: Context, path: str, count: int) -> Cursor:
        """Returns one cursor for all repetitions: the next fills the room that the last leaves, as in TensorFlow."""
        seeds = self.draw_seeds(context, path)
        return Empty() if context.draws_alone else _ShuffleCursor(self, context, path, count, seeds)

    def draw_seeds(self, context: Context, path: str) -> tuple[int, int]:
        """Returns the seeds of the next repetition."""
        if not self.again:
            return self.seeds
        with _drawing:
            own = self._numbers.setdefault(path if self._apart else "", Numbers(*self.seeds))
            numbers = context.numbers(path, own)
            return numbers.next(), numbers.next()

    def size(self) -> int:
        return self.source.size()


class _Round:
    """One repetition: a cursor of the source, and a buffer of its elements.

    The buffer is a list whose elements are drawn by exchange with the first that is left, as TensorFlow does. Where the
    source has a table, it holds numbers of rows. `arrived` are elements that the source gave ahead.
    """

    def __init__(self, source: Cursor, context: Context, size: int, by_rows: bool) -> None:
        self.source, self._context, self._size, self._by_rows = source, context, size, by_rows
        self.held = 0
        self.arrived: deque[Any] = deque()
        self._buffer: list[Any] = []
        self._first = 0
        self._source_ended = False

    @property
    def ended(self) -> bool:
        """Whether nothing more comes into the buffer."""
        return self._source_ended and not self.arrived

    @property
    def gave_nothing(self) -> bool:
        """Whether no element has come yet."""
        return not self._first and not self.held

    def fill(self, room: int, ahead: int) -> None:
        """Fills the buffer up to `room` elements. ahead: how many may be taken of the source at once, if more."""
        arrived, buffer = self.arrived, self._buffer
        while self.held < room:
            if not arrived and (self._source_ended or not self._receive(max(ahead, min(room - self.held, _AT_ONCE)))):
                break
            if len(buffer) < self._size:
                buffer.append(arrived.popleft())
            else:
                buffer[(self._first + self.held) % self._size] = arrived.popleft()
            self.held += 1

    def _receive(self, count: int) -> bool:
        """Takes elements of the source, at least one; False where it has no more."""
        self._context.cancel.check()
        if self._by_rows:
            rows = self.source.rows(count)
            self.arrived.extend(() if rows is None else rows.tolist())
        elif count > 1:
            block = self.source.block(count)
            self.arrived.extend(() if block is None else block.elements())
        else:
            element = self.source.next()
            self.arrived.extend(() if element is None else (element,))
        self._source_ended = not self.arrived
        return not self._source_ended

    def draw(self, number: int) -> Any:
        """Draws one element by a random number."""
        buffer, first = self._buffer, self._first
        size = len(buffer)
        at, start = (first + number % self.held) % size, first % size
        drawn = buffer[at]
        buffer[at], buffer[start] = buffer[start], None
        self._first = first + 1
        self.held -= 1
        return drawn

    def exchange(self, numbers: np.ndarray, found: list[Any]) -> None:
        """Draws from the full buffer, and fills it up each time with what has arrived."""
        buffer, size, arrived, count = self._buffer, self._size, self.arrived, len(numbers)
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

    def drain(self, numbers: np.ndarray, found: list[Any]) -> None:
        """Draws from the buffer when nothing more comes."""
        buffer, size, count = self._buffer, len(self._buffer), len(numbers)
        steps = np.arange(count)
        drawn = (self._first + steps + numbers.astype(np.int64) % (self.held - steps)) % size
        starts = (self._first + steps) % size
        give = found.append
        for at, start in zip(drawn.tolist(), starts.tolist(), strict=True):
            give(buffer[at])
            buffer[at], buffer[start] = buffer[start], None
        self._first += count
        self.held -= count

    def position(self) -> State:
        """Returns where the source stands, and what it gave."""
        held = [self._buffer[i % len(self._buffer)] for i in range(self._first, self._first + self.held)]
        return {
            "source": None if self.ended else self.source.position(),
            "held": held if self._by_rows else pack(held),
            "arrived": [*self.arrived] if self._by_rows else pack(self.arrived),
            "ended": self._source_ended,
            "first": self._first,
        }

    def set_position(self, state: State) -> None:
        """Goes on from where another one stood."""
        if state["source"] is not None:
            self.source.set_position(state["source"])
        held = state["held"] if self._by_rows else unpack(state["held"])
        self.arrived = deque(state["arrived"] if self._by_rows else unpack(state["arrived"]))
        self._source_ended, self._first, self.held = state["ended"], state["first"], len(held)
        self._buffer = [None] * min(self._size, self._first + self.held)
        for i, element in enumerate(held, self._first):
            self._buffer[i % len(self._buffer)] = element


class _ShuffleCursor(Cursor):
    """Draws from the first repetition that has elements, while those that come after fill up the room that it leaves.

    As in TensorFlow, a repetition begins when the source of the one before has ended, and draws its seeds when all
    elements of that one are given. `_error` came with an element that is not due yet.
    """

    def __init__(self, pipeline: Shuffle, context: Context, path: str, count: int, seeds: tuple[int, int]) -> None:
        self._pipeline, self._context, self._path, self._count = pipeline, context, path, count
        self.table = pipeline.table
        self._numbers = Numbers(*seeds)
        self._rounds: deque[_Round] = deque()
        self._begun = 0
        self._error: Exception | None = None

    @property
    def fresh(self) -> bool:  # type: ignore[override]  # known when the source has begun
        """Whether nobody else has the arrays that it gives."""
        return bool(self._rounds) and self._rounds[0].source.fresh

    def next(self) -> Element | None:
        drawn = self._drawn(1)
        if not drawn:
            return None
        found: Element = drawn[0] if self.table is None else element_of(self.table, drawn[0])
        return found

    def block(self, count: int) -> Block | None:
        if self.table is not None:
            rows = self.rows(count)
            return None if rows is None else block_of(self.table, rows)
        drawn = self._drawn(count)
        return Block(len(drawn), None, drawn) if drawn else None

    def rows(self, count: int) -> np.ndarray | None:
        drawn = self._drawn(count)
        return np.array(drawn, np.int64) if drawn else None

    def _drawn(self, count: int) -> list[Any]:
        """Up to `count` elements; an error that comes after some of them is raised by the next call."""
        found: list[Any] = []
        try:
            while len(found) < count and self._fill(0, count - len(found)):
                self._draw(count - len(found), found)
        except Exception as e:
            if not found:
                raise
            self._error = None if self._context.cancelled else e
        return found

    def _draw(self, count: int, found: list[Any]) -> None:
        """Draws some elements, at most `count`, of the first repetition; the buffer is as full as it can be."""
        self._drop_empty()
        first = self._rounds[0]
        if not first.ended:
            replaced = min(count, len(first.arrived))
            if replaced:
                first.exchange(self._numbers.take(replaced), found)
            else:
                found.append(first.draw(self._numbers.next()))
            return
        several = min(count, first.held)
        if several > 1:
            try:
                self._fill(several - 1, 0)
            except Exception as e:
                self._error = None if self._context.cancelled else e
                several = min(several, 1 + self._held() - self._pipeline.buffer_size)
        first.drain(self._numbers.take(several), found)

    def _held(self) -> int:
        return sum(r.held for r in self._rounds)

    def _drop_empty(self) -> None:
        """Ends repetitions of which everything is given; each one that comes after has seeds of its own."""
        while not self._rounds[0].held:
            self._rounds.popleft().source.close()
            self._numbers = Numbers(*self._pipeline.draw_seeds(self._context, self._path))

    def _fill(self, more: int, ahead: int) -> bool:
        """Fills the buffer, and takes `more` elements for those that are drawn next; whether it holds any.

        ahead: how many elements of an open repetition may be taken at once.
        """
        if self._error is not None:
            error, self._error = self._error, None
            raise error
        room = self._pipeline.buffer_size + more
        while (held := self._held()) < room and not (held and len(self._rounds) > _MOST_ROUNDS):
            last = self._rounds[-1] if self._rounds else None
            if last is None or last.ended:
                if 0 <= self._count <= self._begun:
                    break
                last = self._begin_round()
            few = held and len(self._rounds) > _MOST_ROUNDS  # TensorFlow looks at their number before each element
            last.fill(last.held + (1 if few else room - held), ahead if len(self._rounds) == 1 else 0)
            if last.ended and last.gave_nothing and not held and self._count < 0:
                self._rounds.clear()
                break
        return self._held() > 0

    def _begin_round(self) -> _Round:
        source = self._pipeline.source.begin(self._context, f"{self._path}/0")
        self._rounds.append(_Round(source, self._context, self._pipeline.buffer_size, self.table is not None))
        self._begun += 1
        return self._rounds[-1]

    def position(self) -> State:
        return {
            "numbers": self._numbers.position(),
            "rounds": [r.position() for r in self._rounds],
            "begun": self._begun,
        }

    def set_position(self, state: State) -> None:
        self._numbers.set_position(state["numbers"])
        self._error = None
        for r in self._rounds:
            r.source.close()
        self._rounds.clear()
        for given in state["rounds"]:
            self._begin_round().set_position(given)
        self._begun = state["begun"]

    def pause(self) -> None:
        for r in self._rounds:
            r.source.pause()

    def resume(self) -> None:
        for r in self._rounds:
            r.source.resume()

    def close(self) -> None:
        for r in self._rounds:
            r.source.close()
