"""Streams whose work is done late, each by a thread of its own.

A stream's work is begun when somebody waits for it, or LATENESS seconds after it was enqueued: later than on most GPUs,
so that a wait that is missing shows at once as memory that is not written yet. A stream that waits for another one goes
on only when that has got as far as it can, so that memory which is given back too early has been overwritten by then.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable

LATENESS = 0.02


class Queue:
    """The work of a stream. It is done in order; after an error nothing more is done, as on a GPU."""

    def __init__(self) -> None:
        self._changed = threading.Condition(threading.RLock())  # a collection of garbage may enqueue, too
        self._waiting: deque[tuple[float, Callable[[], object]]] = deque()
        self._enqueued = self._done = self._wanted = 0
        self._error: Exception | None = None
        self._thread: threading.Thread | None = None
        self._closed = self._blocked = False
        self.busy_until = 0.0
        """When the work ended that was done last."""

    def put(self, work: Callable[[], object]) -> int:
        """Enqueues work; its number."""
        with self._changed:
            if self._thread is None:
                self._thread = threading.Thread(target=self._serve, daemon=True)
                self._thread.start()
            self._waiting.append((time.perf_counter() + LATENESS, work))
            self._enqueued += 1
            self._changed.notify_all()
            return self._enqueued

    def over(self, number: int) -> bool:
        """Returns whether the work up to a number has been done; nothing is begun for the question's sake."""
        return self._done >= number

    def wait(self, number: int | None = None) -> None:
        """Does the work up to a number, by default all, now. Raises the error of the work."""
        with self._changed:
            number = self._enqueued if number is None else number
            self._wanted = max(self._wanted, number)
            self._changed.notify_all()
            self._changed.wait_for(lambda: self._done >= number)
            if self._error is not None:
                raise self._error

    def wait_for(self, other: Queue, number: int) -> None:
        """Holds this queue's thread until another one has done its work up to a number."""
        if other is self:
            return
        self._block(True)
        try:
            with other._changed:
                other._wanted = other._enqueued
                other._changed.notify_all()
                other._changed.wait_for(lambda: other._done >= number and (not other._waiting or other._blocked))
                if other._error is not None:
                    raise other._error
        finally:
            self._block(False)

    def _block(self, blocked: bool) -> None:
        with self._changed:
            self._blocked = blocked
            self._changed.notify_all()

    def close(self) -> None:
        """Lets the thread end after what is enqueued."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def _serve(self) -> None:
        while self._next():
            _, work = self._waiting[0]
            try:
                if self._error is None:
                    work()
            except Exception as e:
                self._error = e
            del work  # and the memory that it holds, which may be given back now
            self.busy_until = time.perf_counter()
            with self._changed:
                self._waiting.popleft()
                self._done += 1
                self._changed.notify_all()

    def _next(self) -> bool:
        """Waits until there is work that is to be begun; False at the end."""
        with self._changed:
            while True:
                if self._waiting:
                    left = self._waiting[0][0] - time.perf_counter()
                    if left <= 0 or self._wanted > self._done:
                        return True
                    self._changed.wait(left)
                elif self._closed:
                    return False
                else:
                    self._changed.wait()
