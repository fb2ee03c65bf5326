"""Queues as a session keeps them: elements, and who waits to add or take some."""

from __future__ import annotations

import heapq
import itertools
import os
import threading
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from timberframe_core.dtypes import DType
from timberframe_core.errors import CancelledError, InvalidArgumentError, OutOfRangeError
from timberframe_core.plugin.contracts import CancelToken
from timberframe_core.shapes import Shape, compatible, format_shape, is_static
from timberframe_ops.random.philox import Philox

Element = tuple[np.ndarray, ...]


class Queue:
    """A queue whose elements leave in the order in which they came.

    dtypes: of the components of an element. shapes: of each, or none where they may be any. capacity: the most elements
    that it holds, -1 for any number. Threads that add are served in the order in which they came, as are those that
    take. All methods raise what cancels the run; then nothing was taken.
    """

    kind = "FIFOQueue"

    def __init__(self, name: str, dtypes: Sequence[DType], shapes: Sequence[Shape], capacity: int) -> None:
        self.name = name
        self.dtypes = list(dtypes)
        self.shapes = list(shapes)
        self.capacity = capacity
        self.closed = False
        self._changed = threading.Condition()
        self._adding: deque[object] = deque()
        self._taking: deque[object] = deque()
        self._refused: set[object] = set()
        """Those who were waiting to add when the queue was closed with cancel_pending_enqueues."""
        self._clear()

    def __repr__(self) -> str:
        return f"queue '{self.name}'"

    # What other kinds of queues do otherwise

    def _clear(self) -> None:
        self._elements: deque[Element] = deque()

    def __len__(self) -> int:
        return len(self._elements)

    def _add(self, element: Element) -> None:
        self._elements.append(element)

    def _take(self) -> Element:
        return self._elements.popleft()

    def _put_back(self, elements: Sequence[Element]) -> None:
        self._elements.extendleft(reversed(elements))

    def _ready(self) -> int:
        """Returns how many elements may be taken now."""
        return len(self)

    def join(self, elements: Sequence[Element]) -> list[np.ndarray]:
        """Returns elements as the rows of one array for each component."""
        return [_rows([e[i] for e in elements], d, self._row_shape(i)) for i, d in enumerate(self.dtypes)]

    def _row_shape(self, i: int) -> tuple[int, ...]:
        shape = self.shapes[i] if self.shapes else None
        if not is_static(shape):
            raise InvalidArgumentError(
                f"{self} has components of shape {format_shape(shape)}; several elements are taken at once only from a "
                "queue whose shapes are fully known"
            )
        return tuple(d for d in shape or () if d is not None)

    # Adding

    def checked(self, components: Sequence[np.ndarray], rows: bool = False) -> Element:
        """Copies of components that suit the queue; else InvalidArgumentError. rows: of many elements."""
        if len(components) != len(self.dtypes):
            raise InvalidArgumentError(
                f"{len(components)} components are given for {self}; {len(self.dtypes)} are required"
            )
        for i, (x, dtype) in enumerate(zip(components, self.dtypes, strict=True)):
            if x.dtype != dtype.numpy:
                raise InvalidArgumentError(f"component {i} is {x.dtype}; {self} takes {dtype.name}")
            shape = x.shape[1:] if rows else x.shape
            if (rows and x.shape[:1] != components[0].shape[:1]) or (rows and not x.ndim):
                raise InvalidArgumentError(f"component {i} has shape {format_shape(x.shape)}; all need as many rows")
            if self.shapes and not compatible(self.shapes[i], shape):
                raise InvalidArgumentError(
                    f"component {i} has shape {format_shape(shape)}; {self} takes {format_shape(self.shapes[i])}"
                )
        return tuple(np.array(x) for x in components)  # a copy: a feed may be changed by its owner

    def add(self, elements: Sequence[Element], cancel: CancelToken) -> None:
        """Adds elements, waiting while the queue is full; CancelledError where it is closed."""
        with self._changed, self._turn(self._adding) as me:
            for element in elements:
                cancel.wait_for(self._changed, lambda: self._adding[0] is me and (self._ends(me) or not self._full()))
                if self._ends(me):
                    raise CancelledError(f"{self} is closed; nothing more can be added")
                self._add(element)
                self._changed.notify_all()

    def _full(self) -> bool:
        return 0 <= self.capacity <= len(self)

    def _ends(self, me: object) -> bool:
        return self.closed or me in self._refused

    def close_for_adding(self, cancel_pending: bool, cancel: CancelToken) -> None:
        """Closes the queue when those who wait to add have done so, or with cancel_pending at once."""
        with self._changed, self._turn(self._adding) as me:
            if cancel_pending:
                self._refused.update(self._adding)
            else:
                cancel.wait_for(self._changed, lambda: self._adding[0] is me or me in self._refused)
                if self.closed or me in self._refused:
                    raise CancelledError(f"{self} is closed already; a queue is closed once")
            self.closed = True

    # Taking

    def take(self, count: int, fewer: bool, cancel: CancelToken) -> list[Element]:
        """Takes elements, waiting until there are as many; fewer: what is left is enough once the queue is closed."""
        taken: list[Element] = []
        with self._changed, self._turn(self._taking) as me:
            try:
                while len(taken) < count:
                    cancel.wait_for(self._changed, lambda: self._taking[0] is me and (self.closed or self._ready() > 0))
                    if self.closed and len(taken) + len(self) < count and not (fewer and (taken or len(self))):
                        raise OutOfRangeError(
                            f"{self} is closed and has {len(taken) + len(self)} elements; {count} are required"
                        )
                    if self.closed and not len(self):
                        break
                    taken.extend(self._take() for _ in range(min(self._ready(), count - len(taken))))
                    self._changed.notify_all()
            except BaseException:
                self._put_back(taken)
                raise
        return taken

    @contextmanager
    def _turn(self, waiting: deque[object]) -> Iterator[object]:
        """A place in the line of those who wait, which is left when all is done."""
        me = object()
        waiting.append(me)
        try:
            yield me
        finally:
            waiting.remove(me)
            self._refused.discard(me)
            self._changed.notify_all()

    def close(self) -> None:
        """Drops all elements: the session is closed."""
        with self._changed:
            self.closed = True
            self._clear()


class PaddingQueue(Queue):
    """A FIFO queue whose shapes may leave sizes open; elements that are taken together are padded with zeros."""

    kind = "PaddingFIFOQueue"

    def join(self, elements: Sequence[Element]) -> list[np.ndarray]:
        found = []
        for i, dtype in enumerate(self.dtypes):
            parts = [e[i] for e in elements]
            sizes = zip(*(x.shape for x in parts), strict=True) if parts else ()
            known = self.shapes[i] or ()
            widest = tuple(map(max, sizes)) if parts else tuple(d or 0 for d in known)
            rows = np.full((len(parts), *widest), b"" if dtype.numpy.hasobject else 0, dtype.numpy)
            for row, x in zip(rows, parts, strict=True) if widest else ():
                row[tuple(map(slice, x.shape))] = x
            found.append(rows if widest else _rows(parts, dtype, ()))
        return found


class RandomQueue(Queue):
    """A queue that gives its elements in random order; the numbers are those that TensorFlow draws."""

    kind = "RandomShuffleQueue"

    def __init__(self, *given: Any, least: int = 0, seeds: tuple[int, int] = (0, 0)) -> None:
        self.least = least
        seeds = seeds if any(seeds) else (int.from_bytes(os.urandom(8)), int.from_bytes(os.urandom(8)))
        self._numbers = _draws(Philox.seeded(*seeds))
        super().__init__(*given)

    def _clear(self) -> None:
        self._held: list[Element] = []

    def __len__(self) -> int:
        return len(self._held)

    def _add(self, element: Element) -> None:
        self._held.append(element)

    def _take(self) -> Element:
        i = next(self._numbers) % len(self._held)
        self._held[i], self._held[-1] = self._held[-1], self._held[i]
        return self._held.pop()

    def _put_back(self, elements: Sequence[Element]) -> None:
        self._held.extend(elements)

    def _ready(self) -> int:
        return len(self) if self.closed else len(self) - self.least


def _draws(philox: Philox) -> Iterator[int]:
    while True:
        yield from philox.numbers(256).tolist()
        philox = philox.skip(64)


class PriorityQueue(Queue):
    """A queue that gives the element with the least first component, and among equal ones the oldest."""

    kind = "PriorityQueue"

    def _clear(self) -> None:
        self._heap: list[tuple[int, int, Element]] = []
        self._count = itertools.count()

    def __len__(self) -> int:
        return len(self._heap)

    def _add(self, element: Element) -> None:
        heapq.heappush(self._heap, (int(element[0]), next(self._count), element))

    def _take(self) -> Element:
        return heapq.heappop(self._heap)[2]

    def _put_back(self, elements: Sequence[Element]) -> None:
        for i, element in enumerate(elements):
            heapq.heappush(self._heap, (int(element[0]), i - len(elements), element))


def _rows(parts: Sequence[np.ndarray], dtype: DType, shape: tuple[int, ...]) -> np.ndarray:
    rows = np.empty((len(parts), *shape), dtype.numpy)
    for i, x in enumerate(parts):
        rows[i] = x if shape else x[()]
    return rows
