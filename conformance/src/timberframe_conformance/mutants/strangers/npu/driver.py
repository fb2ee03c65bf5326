"""The driver of NPU: an arena, whose parts are free for others when the queue is past their last use, and the queue."""

from __future__ import annotations

import math
import queue
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np

LATENCY = 50e-6
"""Seconds until an idle queue begins with what it is given."""
ALIGNMENT = 64


class Event:
    """Something that the queue will do."""

    def __init__(self, work: Callable[[], Any]) -> None:
        self._work, self._value, self._over = work, None, threading.Event()
        self._error: Exception | None = None

    def happen(self) -> None:
        """Does it, on the queue's thread."""
        try:
            with np.errstate(all="ignore"):
                self._value = self._work()
        except Exception as e:
            self._error = e
        self._work = lambda: None  # what it held can be dropped
        self._over.set()

    def done(self) -> bool:
        """Returns whether it has been done; never waits."""
        return self._over.is_set()

    def result(self) -> Any:
        """Waits for it and returns its result, or raises its error."""
        self._over.wait()
        if self._error is not None:
            raise self._error
        return self._value


class Queue:
    """Does what it is given in order, on a thread of its own.

    The error of a failed launch is raised by what the thread that launched it asks for next. check: raises failures
    that are asked for, see `sdk.Failures`.
    """

    def __init__(self, check: Callable[[str], None]) -> None:
        self._events: queue.SimpleQueue[Event] = queue.SimpleQueue()
        self._failures: dict[int, Exception] = {}
        self._check = check
        threading.Thread(target=self._run, daemon=True).start()

    def _run(self) -> None:
        while True:
            event = self._events.get()
            if self._events.empty():
                time.sleep(LATENCY)
            event.happen()
            del event

    def add(self, work: Callable[[], Any]) -> Event:
        """Appends something to do."""
        event = Event(work)
        self._events.put(event)
        return event

    def launch(self, kernel: Callable[..., Any], *tensors: Tensor) -> None:
        """Calls a kernel with the elements of tensors."""
        self._check("queue")
        thread = threading.get_ident()
        self.add(lambda: self._call(thread, kernel, tensors))

    def call(self, kernel: Callable[..., Any], *tensors: Tensor) -> Any:
        """Calls a kernel, and waits for what it returns."""
        return self.add(lambda: kernel(*(t.elements() for t in tensors))).result()

    def _call(self, thread: int, kernel: Callable[..., Any], tensors: tuple[Tensor, ...]) -> None:
        try:
            self._check("launch")
            kernel(*(t.elements() for t in tensors))
        except Exception as e:
            self._failures[thread] = e

    def read(self, source: Tensor) -> Event:
        """Copies a tensor to the host: the event's result."""

        self._check("queue")
        thread = threading.get_ident()

        def work() -> np.ndarray:
            self._check("copy")
            self.raise_failure(thread)
            return source.elements().copy()

        return self.add(work)

    def marker(self) -> Event:
        """Is done when everything before it is."""
        self._check("queue")
        thread = threading.get_ident()
        return self.add(lambda: self.raise_failure(thread))

    def raise_failure(self, thread: int) -> None:
        """Raises the error of a launch of a thread, once."""
        failure = self._failures.pop(thread, None)
        if failure is not None:
            raise failure


class Arena:
    """The device's memory. What is given back may be used again when the queue is past all that it was given before."""

    def __init__(self, nbytes: int, queue: Queue) -> None:
        self.bytes = np.empty(nbytes, np.uint8)
        self._queue = queue
        self._lock = threading.Lock()
        self._free = [(0, nbytes)]

    def take(self, nbytes: int) -> Block:
        """Returns the first part that is large enough; MemoryError where there is none."""
        size = -(-max(nbytes, 1) // ALIGNMENT) * ALIGNMENT
        found = self._first(size)
        if found is None:
            self._queue.add(lambda: None).result()  # what was given back before is free now
            found = self._first(size)
        if found is None:
            raise MemoryError(f"NPU: {nbytes} bytes requested, {sum(n for _, n in self._free)} free")
        return Block(self, found, size)

    def _first(self, size: int) -> int | None:
        with self._lock:
            for i, (start, free) in enumerate(self._free):
                if free >= size:
                    self._free[i : i + 1] = [(start + size, free - size)] if free > size else []
                    return start
        return None

    def give(self, start: int, size: int) -> None:
        """Takes a part back: it is free when the queue comes to this."""
        self._queue.add(lambda: self.free(start, size))

    def free(self, start: int, size: int) -> None:
        """Makes a part free at once, joined with free parts around it."""
        with self._lock:
            parts = sorted([*self._free, (start, size)])
            joined = [parts[0]]
            for begin, length in parts[1:]:
                last, before = joined[-1]
                if last + before == begin:
                    joined[-1] = last, before + length
                else:
                    joined.append((begin, length))
            self._free = joined


class Block:
    """A part of the arena, which goes back when its last reference is dropped."""

    def __init__(self, arena: Arena, start: int, size: int) -> None:
        self.arena, self.start, self._size = arena, start, size

    def __del__(self) -> None:
        self.arena.give(self.start, self._size)


class Tensor:
    """A dtype, a shape, and where in the arena the elements begin. owner: keeps that part."""

    def __init__(self, block: Block, offset: int, dtype: np.dtype[Any], shape: tuple[int, ...], owner: Any) -> None:
        self.block, self.offset, self.dtype, self.shape, self.owner = block, offset, dtype, shape, owner

    @property
    def start(self) -> int:
        """Where in the arena it begins."""
        return self.block.start + self.offset

    def elements(self) -> np.ndarray:
        """Returns a view of the device's memory."""
        end = self.start + self.dtype.itemsize * math.prod(self.shape)
        return self.block.arena.bytes[self.start : end].view(self.dtype).reshape(self.shape)
