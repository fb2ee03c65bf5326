"""Coordinator: threads that stop together."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from timberframe_core import logging
from timberframe_core.errors import FailedPreconditionError, OutOfRangeError


class Coordinator:
    """Lets several threads ask each other to stop, and raises in the one that joins them what ended them.

    clean_stop_exception_types: exceptions that end the work without being errors, OutOfRangeError if None.
    """

    def __init__(self, clean_stop_exception_types: tuple[type[BaseException], ...] | None = None) -> None:
        self._clean = (OutOfRangeError,) if clean_stop_exception_types is None else tuple(clean_stop_exception_types)
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._error: BaseException | None = None
        self._threads: set[threading.Thread] = set()
        self._joined = False

    @property
    def joined(self) -> bool:
        """Whether `join` has returned."""
        return self._joined

    def should_stop(self) -> bool:
        """Returns whether somebody asked to stop."""
        return self._stop.is_set()

    def request_stop(self, ex: Any = None) -> None:
        """Asks all threads to stop.

        ex: the exception that is the reason, or what sys.exc_info() gives. Only the first counts; `join` raises it,
        unless it is one of clean_stop_exception_types.
        """
        error = ex[1] if isinstance(ex, tuple) else ex
        with self._lock:
            if self._stop.is_set():
                return
            if error is not None and not isinstance(error, self._clean):
                self._error = error
                logging.info("Error reported to Coordinator: %s: %s", type(error).__name__, error)
            self._stop.set()

    def clear_stop(self) -> None:
        """Forgets the request, so that threads can be started again."""
        with self._lock:
            self._joined, self._error = False, None
            self._stop.clear()

    @contextmanager
    def stop_on_exception(self) -> Iterator[None]:
        """A context in which an exception becomes the reason to stop, instead of being raised."""
        try:
            yield
        except Exception as e:
            self.request_stop(e)

    def wait_for_stop(self, timeout: float | None = None) -> bool:
        """Waits until somebody asks to stop, at most `timeout` seconds; whether somebody did."""
        return self._stop.wait(timeout)

    def register_thread(self, thread: threading.Thread) -> None:
        """Makes `join` wait for this thread."""
        with self._lock:
            self._threads.add(thread)

    def join(
        self,
        threads: Iterable[threading.Thread] | None = None,
        stop_grace_period_secs: float = 120,
        ignore_live_threads: bool = False,
    ) -> None:
        """Waits until all threads have ended, and raises the exception that was the reason to stop, if there was one.

        threads: further ones than those registered. From the request to stop on, threads have stop_grace_period_secs
        seconds; FailedPreconditionError names those that go on, unless ignore_live_threads is set.
        """
        with self._lock:
            waiting = self._threads.union(threads or ())
        while any(t.is_alive() for t in waiting) and not self._stop.wait(0.05):
            pass
        end = time.monotonic() + stop_grace_period_secs
        for thread in waiting:
            thread.join(max(0.0, end - time.monotonic()))
        alive = sorted(t.name for t in waiting if t.is_alive())
        with self._lock:
            self._joined = True
            self._threads.clear()
            error, self._error = self._error, None
        if error is not None:
            raise error
        if alive and not ignore_live_threads:
            raise FailedPreconditionError(
                f"Coordinator: threads {', '.join(alive)} go on {stop_grace_period_secs} seconds after the request to "
                "stop; they must end"
            )

    def raise_requested_exception(self) -> None:
        """Raises the exception that was the reason to stop, if there was one."""
        with self._lock:
            error = self._error
        if error is not None:
            raise error
