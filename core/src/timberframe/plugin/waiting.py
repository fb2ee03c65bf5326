"""Waiting for devices: work that is under way, runs that are cancelled meanwhile, errors that show late."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np


class Pending(Protocol):
    """Work that a device has been given. done() tells without waiting whether it is over; result() waits for it."""

    def done(self) -> bool: ...

    def result(self) -> Any:
        """What the work gives; raises the errors of the device that show only now."""


class Deferred:
    """A Pending of a device that can only wait: the work is done when its result is asked for."""

    __slots__ = ("_work",)

    def __init__(self, work: Callable[[], Any]) -> None:
        self._work = work

    def done(self) -> bool:
        return True

    def result(self) -> Any:
        return self._work()


_SPIN_SECONDS = 50e-6  # a launch on a device takes about as long; sleeping would take longer
_LONGEST_PAUSE_SECONDS = 1e-3


class CancelToken:
    """Tells a run to stop. `word` is what native code polls: one int32, zero while the run may go on."""

    __slots__ = ("reason", "word")

    def __init__(self) -> None:
        self.word = np.zeros(1, np.int32)
        self.reason: BaseException | None = None

    def cancel(self, reason: BaseException) -> None:
        """Stops the run with this error; the first reason stays."""
        if self.reason is None:
            self.reason = reason
        self.word[0] = 1

    def check(self) -> None:
        """Raises the reason if the run was cancelled."""
        if self.reason is not None:
            raise self.reason

    def wait(self, pending: Pending) -> Any:
        """The result of a device's work; raises the reason as soon as the run is cancelled, however long that works."""
        return self.wait_all([pending])[0]

    def wait_all(self, pending: Sequence[Pending]) -> list[Any]:
        """The results of several works; the first error that shows is raised, whatever the others still do."""
        found: dict[int, Any] = {}
        start = time.perf_counter()
        while True:
            for i, one in enumerate(pending):
                if i not in found and one.done():
                    found[i] = one.result()
            if len(found) == len(pending):
                return [found[i] for i in range(len(pending))]
            self.check()
            time.sleep(pause(time.perf_counter() - start))


def pause(waited: float, longest: float = _LONGEST_PAUSE_SECONDS) -> float:
    """Seconds to sleep before looking again whether something is done that has taken `waited` seconds by now."""
    return 0 if waited < _SPIN_SECONDS else min(waited / 8, longest)


class LateErrors:
    """Errors of one run that asynchronous devices will tell later: before anything is written or given out."""

    def __init__(self) -> None:
        self._checks: deque[tuple[Pending, Callable[[Any], None]]] = deque()
        self._lock = threading.Lock()

    def add(self, pending: Pending, check: Callable[[Any], None]) -> None:
        """Has `check` called with the result of what is under way; it raises the error."""
        self._checks.append((pending, check))

    def settle(self, cancel: CancelToken) -> None:
        """Waits for what is under way, and raises its errors."""
        with self._lock:
            while self._checks:
                self._first(cancel)

    def look(self, cancel: CancelToken) -> None:
        """Raises those errors that are known by now, unless another thread waits for them."""
        if self._lock.acquire(blocking=False):
            try:
                while self._checks and self._checks[0][0].done():
                    self._first(cancel)
            finally:
                self._lock.release()

    def _first(self, cancel: CancelToken) -> None:
        pending, check = self._checks[0]
        check(cancel.wait(pending))
        self._checks.popleft()
