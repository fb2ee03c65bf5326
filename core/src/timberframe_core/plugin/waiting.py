"""Waiting for devices: work that is under way, runs that are cancelled meanwhile, errors that show late."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np


class Pending(Protocol):
    """Work that a device has been given. done() returns at once whether it is over; result() waits for it.

    Work of another process may have `wait(seconds)` besides: whether it is over, as soon as it is, or after that time.
    """

    def done(self) -> bool: ...

    def result(self) -> Any:
        """Returns what the work gives; raises the errors of the device that show only now."""


class Deferred:
    """A Pending of a device that can only wait: the work is done when its result is asked for."""

    __slots__ = ("_work",)

    def __init__(self, work: Callable[[], Any]) -> None:
        self._work = work

    def done(self) -> bool:
        """Returns whether it has been computed."""
        return True

    def result(self) -> Any:
        return self._work()


_SPIN_SECONDS = 50e-6  # a launch on a device takes about as long; sleeping would take longer
_LONGEST_PAUSE_SECONDS = 1e-3
_LONGEST_WAIT_SECONDS = 10e-3  # by a Pending's own `wait`: so long at most nobody notices that the run is cancelled
_LONGEST_SLEEP_SECONDS = 0.2  # Python notices a signal that comes just before the thread sleeps when it wakes


class CancelToken:
    """Stops a run. `word` is what native code polls: one int32, zero while the run may go on."""

    __slots__ = ("__weakref__", "_conditions", "_polls", "limited", "reason", "word")
    _conditions_lock = threading.Lock()

    def __init__(self) -> None:
        self._polls = False
        self.limited = False
        """Whether a clock may end the run, which then waits for no work on the host longer than that."""
        self._conditions: tuple[threading.Condition, ...] = ()
        self.word = np.zeros(1, np.int32)
        self.reason: BaseException | None = None

    def cancel(self, reason: BaseException) -> None:
        """Stops the run with this error; the first reason stays."""
        if self.reason is None:
            self.reason = reason
        self.word[0] = 1
        for condition in self._conditions:
            with condition:
                condition.notify_all()

    def check(self) -> None:
        """Raises the reason if the run was cancelled."""
        if self.reason is not None:
            raise self.reason

    def poll(self) -> None:
        """Makes `wait` give up as soon as the run is cancelled, for runs that another device or a clock may end.

        It then looks again and again; without that it is the device's own wait, which is quicker.
        """
        self._polls = True

    def wait_for(self, condition: threading.Condition, ready: Callable[[], bool]) -> None:
        """Waits until `ready()` is true; raises the reason as soon as the run is cancelled.

        The caller holds the condition; who changes what `ready` looks at holds it too, and notifies it.
        """
        if ready():
            return
        with self._conditions_lock:
            self._conditions = (*self._conditions, condition)
        try:
            while not ready():
                self.check()  # after the condition is known to `cancel`, which takes it to wake this thread
                condition.wait(_LONGEST_SLEEP_SECONDS)
        finally:
            with self._conditions_lock:
                left = list(self._conditions)
                left.remove(condition)
                self._conditions = tuple(left)

    def wait(self, pending: Pending) -> Any:
        """Returns the result of a device's work; raises its errors and, after `poll`, the
        reason if the run is cancelled.
        """
        return self.wait_all([pending])[0]

    def wait_all(self, pending: Sequence[Pending]) -> list[Any]:
        """Returns the results of several works; the first error that shows is raised, whatever the others still do."""
        if not self._polls:
            return [one.result() for one in pending]
        found: dict[int, Any] = {}
        start = time.perf_counter()
        while True:
            waited = False
            for i, one in enumerate(pending):
                if i in found:
                    continue
                wait = getattr(one, "wait", None)
                if one.done() if wait is None else wait(_LONGEST_WAIT_SECONDS):
                    found[i] = one.result()
                waited = waited or wait is not None
            if len(found) == len(pending):
                return [found[i] for i in range(len(pending))]
            self.check()
            if not waited:
                time.sleep(pause(time.perf_counter() - start))


def pause(waited: float, longest: float = _LONGEST_PAUSE_SECONDS) -> float:
    """Returns seconds to sleep before looking again whether something is done that has
    taken `waited` seconds by now.
    """
    return 0 if waited < _SPIN_SECONDS else min(waited / 8, longest)


class LateError:
    """An error that a device may report when work of one of its clusters is done."""

    __slots__ = ("_checked", "_lock", "_raise_error", "device", "failed", "pending")

    def __init__(self, device: Any, pending: Pending, check: Callable[[Any], None]) -> None:
        self.device = device
        self.pending = pending
        self.failed = False
        self._raise_error = check
        self._checked = False
        self._lock = threading.Lock()

    def over(self, seconds: float) -> bool:
        """Returns whether the work is over, after so long at most; True where only its result can be waited for."""
        wait = getattr(self.pending, "wait", None)
        return self._checked or wait is None or bool(wait(seconds))

    def check(self, cancel: CancelToken, wait: bool = True) -> None:
        """Waits for the work and raises its error; without `wait` only if it is known and no other thread waits."""
        if self._checked or not (wait or self.pending.done()) or not self._lock.acquire(blocking=wait):
            return
        try:
            if not self._checked:
                self._raise_error(cancel.wait(self.pending))
                self._checked = True
        except Exception:
            self.failed = True
            raise
        finally:
            self._lock.release()


def check_all(errors: Sequence[LateError], cancel: CancelToken) -> None:
    """Waits for the work of them all and raises the first error that shows.

    Where the run may be cancelled by others, the last work is waited for before the rest, which is over by then as a
    rule: each wait wakes this thread, which takes the processor from those who work.
    """
    while cancel._polls and errors and not errors[-1].over(_LONGEST_WAIT_SECONDS):
        cancel.check()
        for error in errors:
            error.check(cancel, wait=False)
    for error in errors:
        error.check(cancel)


class LateErrors:
    """Errors of one run that asynchronous devices report later: raised before what depends on it is written."""

    def __init__(self) -> None:
        self._errors: list[LateError] = []

    def add(self, device: Any, pending: Pending, check: Callable[[Any], None]) -> None:
        """Calls `check` later with the result of what is under way on the device; it raises the error."""
        self._errors.append(LateError(device, pending, check))

    def of(self, device: Any = None) -> list[LateError]:
        """Returns those of the work that a device has been given until now; of all devices if it is None."""
        return [e for e in self._errors if device is None or e.device is device]
