"""ResourceStore: what ops keep between runs."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, TypeVar

from timberframe_core import logging
from timberframe_core.errors import CancelledError
from timberframe_core.plugin.contracts import RandomStream
from timberframe_core.runtime.variables import VariableStore

T = TypeVar("T")


class ResourceStore:
    """Variables, random streams, queues, tables, readers: whatever ops keep from one run to the next.

    A resource has a key: its kind and a name, such as "queue input". It lives as long as the store, which is that of a
    session, or until it is destroyed; then its `close()` is called if it has one, which must end the threads that it
    started.
    deterministic: random ops need a seed.
    """

    def __init__(self, deterministic: bool = False) -> None:
        self._resources: dict[str, Any] = {}
        self._lock = threading.RLock()
        self._closed = False
        self.variables = VariableStore(self._stream, deterministic)

    def get_or_make(self, key: str, make: Callable[[], T]) -> T:
        """The resource, made by `make` where there is none; of threads that ask at the same time, one makes it."""
        found: T | None = self._resources.get(key)
        if found is None:
            with self._lock:
                found = self._resources.get(key)
                if self._closed:
                    raise CancelledError(f"{key}: the session is closed; make a new one to run again")
                if found is None:
                    found = self._resources[key] = make()
        return found

    def find(self, key: str) -> Any | None:
        """The resource, None where there is none."""
        return self._resources.get(key)

    def put(self, key: str, value: Any) -> None:
        """Keeps a value in the place of the one that there may be."""
        with self._lock:
            self._resources[key] = value

    def destroy(self, key: str) -> bool:
        """Drops and closes the resource; False where there is none."""
        with self._lock:
            found = self._resources.pop(key, None)
        if found is not None:
            _close(found)
        return found is not None

    def close(self) -> None:
        """Drops and closes everything, what was made last first."""
        with self._lock:
            self._closed = True
            found = list(self._resources.values())
            self._resources.clear()
        for one in reversed(found):
            _close(one)
        self.variables.clear()

    def _stream(self, name: str) -> RandomStream:
        return self.get_or_make(f"random stream {name}", lambda: RandomStream(name))


def _close(resource: Any) -> None:
    """Closes a resource. One that fails must not keep the others from being closed, so its error is logged."""
    close = getattr(resource, "close", None)
    if close is None:
        return
    try:
        close()
    except Exception as e:
        logging.warning("closing %s failed: %s: %s", type(resource).__name__, type(e).__name__, e)
