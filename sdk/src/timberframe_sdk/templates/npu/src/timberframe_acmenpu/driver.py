"""Stands for the driver of your hardware: one memory, divided by the host, and a queue that works later, in order.

The rest of the package uses nothing of it but Arena, Memory, Tensor and Queue: replace them by calls of your driver.
"""

from __future__ import annotations

import bisect
import math
import queue
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np


class Event:
    """Something that the queue will do. nanoseconds: when that had been done, by the clock of the device."""

    def __init__(self, work: Callable[[], Any]) -> None:
        self._work, self._value, self._over = work, None, threading.Event()
        self._error: Exception | None = None
        self.nanoseconds = 0

    def happen(self) -> None:
        try:
            with np.errstate(all="ignore"):
                self._value = self._work()
        except Exception as e:
            self._error = e
        self._work = lambda: None  # what it held can be dropped
        self.nanoseconds = time.perf_counter_ns()
        self._over.set()

    def done(self) -> bool:
        """Whether it has been done; never waits."""
        return self._over.is_set()

    def result(self) -> Any:
        """Waits for it and returns its result, or raises its error."""
        self._over.wait()
        if self._error is not None:
            raise self._error
        return self._value


class Arena:
    """The device's memory: the free ranges of it, in order."""

    def __init__(self, nbytes: int, alignment: int) -> None:
        whole = np.empty(nbytes + alignment, np.uint8)
        self.bytes = whole[-whole.ctypes.data % alignment :][:nbytes]
        self._alignment, self._lock = alignment, threading.Lock()
        self._free = [(0, nbytes)]  # where each free range begins and ends

    def take(self, nbytes: int) -> int | None:
        """The offset of a range that is in use from now on; None where no free one is large enough."""
        size = max(-(-nbytes // self._alignment), 1) * self._alignment
        with self._lock:
            for i, (start, end) in enumerate(self._free):
                if end - start >= size:
                    self._free[i : i + 1] = [(start + size, end)] if end - start > size else []
                    return start
        return None

    def give(self, offset: int, nbytes: int) -> None:
        """Makes a range free again, one with the free ranges beside it."""
        start, end = offset, offset + max(-(-nbytes // self._alignment), 1) * self._alignment
        with self._lock:
            i = bisect.bisect(self._free, (start, end))
            if i < len(self._free) and self._free[i][0] == end:
                end = self._free.pop(i)[1]
            if i and self._free[i - 1][1] == start:
                i -= 1
                start = self._free.pop(i)[0]
            self._free.insert(i, (start, end))


class Memory:
    """A range of the arena, which the queue gives back after the work that it has now, once nobody refers to it.

    The last reference may go at any point and in any thread, also while this thread is in `take`: so dropping one
    takes no lock, and only adds to the queue.
    """

    def __init__(self, arena: Arena, queue: Queue, nbytes: int) -> None:
        offset = arena.take(nbytes)
        if offset is None:  # what was dropped is free when the queue has come to it
            queue.wait()
            offset = arena.take(nbytes)
        if offset is None:
            raise MemoryError("no free range of its memory is large enough")
        self.offset, self.nbytes, self._arena, self._queue = offset, nbytes, arena, queue
        self.bytes = arena.bytes[offset : offset + nbytes]

    def __del__(self) -> None:
        if hasattr(self, "offset"):
            arena, offset, nbytes = self._arena, self.offset, self.nbytes
            self._queue.add(lambda: arena.give(offset, nbytes))


class Tensor:
    """A dtype, a shape, and where in the device's memory the elements begin. owner: keeps that memory in use."""

    def __init__(self, memory: Memory, offset: int, dtype: np.dtype[Any], shape: tuple[int, ...], owner: Any) -> None:
        self.memory, self.offset, self.dtype, self.shape, self.owner = memory, offset, dtype, shape, owner
        self.failure: Exception | None = None  # of the launch that should have filled it

    def _elements(self) -> np.ndarray:
        end = self.offset + self.dtype.itemsize * math.prod(self.shape)
        return self.memory.bytes[self.offset : end].view(self.dtype).reshape(self.shape)


class Queue:
    """Does what it is given in order, on a thread of its own.

    The error of a failed launch is raised when its outputs are read, and by the next marker of the thread that
    launched it: runs of other threads go on. check: raises failures that are asked for, see `sdk.Failures`.
    """

    def __init__(self, check: Callable[[str], None]) -> None:
        self._events: queue.SimpleQueue[Event] = queue.SimpleQueue()
        self._failures: dict[int, Exception] = {}
        self._check = check
        threading.Thread(target=self._run, daemon=True).start()

    def _run(self) -> None:
        while True:
            event = self._events.get()
            event.happen()
            del event

    def add(self, work: Callable[[], Any]) -> Event:
        """Has something done after all that was added before."""
        event = Event(work)
        self._events.put(event)
        return event

    def launch(self, kernel: Callable[..., Any], inputs: Sequence[Tensor], outputs: Sequence[Tensor]) -> None:
        """Calls a kernel with the elements of tensors; outputs: those that it fills, with its workspace if it has one.

        Nothing is computed of what a failed launch should have made.
        """
        self._check("queue")
        thread = threading.get_ident()

        def work() -> None:
            failure = next((t.failure for t in inputs if t.failure is not None), None)
            if failure is None:
                try:
                    self._check("launch")
                    kernel(*(t._elements() for t in (*inputs, *outputs)))
                except Exception as e:
                    failure = self._failures[thread] = e
            for tensor in outputs:
                tensor.failure = failure

        self.add(work)

    def write(self, x: np.ndarray, target: Tensor) -> None:
        """Copies a host array to the device; the caller may change it afterwards."""
        self._check("copy")
        sent = np.array(x)
        self.add(lambda: np.copyto(target._elements(), sent))

    def read(self, source: Tensor) -> Event:
        """Copies a tensor to the host: the event's result."""

        self._check("queue")
        thread = threading.get_ident()

        def work() -> np.ndarray:
            self._check("copy")
            self._raise_failure(thread, source.failure)
            return source._elements().copy()

        return self.add(work)

    def marker(self) -> Event:
        """Is done when everything before it is, and raises its error."""
        self._check("queue")
        thread = threading.get_ident()
        return self.add(lambda: self._raise_failure(thread))

    def wait(self) -> None:
        """Waits for everything so far, and leaves errors to whatever comes next."""
        self.add(lambda: None).result()

    def _raise_failure(self, thread: int, of_tensor: Exception | None = None) -> None:
        failure = self._failures.pop(thread, None) or of_tensor
        if failure is not None:
            raise failure
