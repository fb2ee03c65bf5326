"""Stands for the driver of your hardware: memory that the host cannot see, and a queue that works later, in order.

device.py and kernels.py use nothing of it but Memory, Tensor and Queue: replace them by calls of your driver.
"""

from __future__ import annotations

import math
import queue
import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np


class Memory:
    """Bytes of the device, which go back when the last reference to them is dropped."""

    def __init__(self, nbytes: int) -> None:
        self._bytes = np.empty(nbytes, np.uint8)


class Tensor:
    """A dtype, a shape, and where in the device's memory the elements begin. owner: keeps that memory in use."""

    def __init__(self, memory: Memory, offset: int, dtype: np.dtype[Any], shape: tuple[int, ...], owner: Any) -> None:
        self.memory, self.offset, self.dtype, self.shape, self.owner = memory, offset, dtype, shape, owner
        self.failure: Exception | None = None  # of the launch that should have filled it

    def _elements(self) -> np.ndarray:
        end = self.offset + self.dtype.itemsize * math.prod(self.shape)
        return self.memory._bytes[self.offset : end].view(self.dtype).reshape(self.shape)


class Event:
    """Something that the queue will do."""

    def __init__(self, work: Callable[[], Any]) -> None:
        self._work, self._value, self._over = work, None, threading.Event()
        self._error: Exception | None = None

    def happen(self) -> None:
        try:
            with np.errstate(all="ignore"):
                self._value = self._work()
        except Exception as e:
            self._error = e
        self._work = lambda: None  # what it held can be dropped
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

    def _add(self, work: Callable[[], Any]) -> Event:
        self._check("queue")
        event = Event(work)
        self._events.put(event)
        return event

    def launch(self, kernel: Callable[..., Any], tensors: Sequence[Tensor], outputs: int = 1) -> None:
        """Calls a kernel with the elements of tensors. outputs: so many of them, the last, are what it fills."""
        thread = threading.get_ident()

        def work() -> None:
            failure = next((t.failure for t in tensors[:-outputs] if t.failure is not None), None)
            if failure is None:
                try:
                    self._check("launch")
                    kernel(*(t._elements() for t in tensors))
                except Exception as e:
                    failure = self._failures[thread] = e
            for tensor in tensors[-outputs:]:
                tensor.failure = failure

        self._add(work)

    def write(self, x: np.ndarray, target: Tensor) -> None:
        """Copies a host array to the device; the caller may change it afterwards."""
        self._check("copy")
        sent = np.array(x)
        self._add(lambda: np.copyto(target._elements(), sent))

    def read(self, source: Tensor) -> Event:
        """Copies a tensor to the host: the event's result."""

        thread = threading.get_ident()

        def work() -> np.ndarray:
            self._check("copy")
            self._raise_failure(thread, source.failure)
            return source._elements().copy()

        return self._add(work)

    def marker(self) -> Event:
        """Is done when everything before it is."""
        thread = threading.get_ident()
        return self._add(lambda: self._raise_failure(thread))

    def _raise_failure(self, thread: int, of_tensor: Exception | None = None) -> None:
        failure = self._failures.pop(thread, None) or of_tensor
        if failure is not None:
            raise failure
