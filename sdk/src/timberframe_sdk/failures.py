"""Failures of a driver that conformance asks for, so that it sees what becomes of them."""

from __future__ import annotations

import threading
from collections.abc import Collection

from timberframe_core.errors import UnknownError


class Failures:
    """What a driver is to fail at next. `inject` asks for one failure of a kind, which `check` raises once.

    kinds: those that the driver checks for, of "launch", "copy", "compile" and "queue".
    """

    def __init__(self, *kinds: str) -> None:
        self.kinds: Collection[str] = frozenset(kinds)
        self._next: list[str] = []
        self._lock = threading.Lock()

    def inject(self, kind: str) -> bool:
        """Asks for a failure; False where the driver checks for none of this kind."""
        if kind in self.kinds:
            with self._lock:
                self._next.append(kind)
        return kind in self.kinds

    def withdraw(self) -> Collection[str]:
        """Takes back what was asked for and has not been raised, and gives the kinds."""
        with self._lock:
            pending, self._next = self._next, []
        return pending

    def check(self, kind: str) -> None:
        """Raises the failure of this kind that was asked for, if any: UnknownError."""
        if not self._next:
            return
        with self._lock:
            if kind not in self._next:
                return
            self._next.remove(kind)
        raise UnknownError(f"the driver reports a failed {kind}, which conformance asked for")
