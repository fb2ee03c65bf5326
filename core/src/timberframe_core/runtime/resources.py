"""ResourceStore: what ops keep between runs."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from timberframe_core import logging
from timberframe_core.errors import CancelledError
from timberframe_core.plugin.contracts import RandomStream
from timberframe_core.plugin.state import Position, Positioned
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
        self._positions: dict[str, Position] = {}
        """Of resources that are not made yet."""
        self._lock = threading.RLock()
        self._closed = False
        self.variables = VariableStore(self._stream, deterministic)

    def get_or_make(self, key: str, make: Callable[[], T]) -> T:
        """Returns the resource, made by `make` where there is none; of threads that ask at
        the same time, one makes it.
        """
        found: T | None = self._resources.get(key)
        if found is None:
            with self._lock:
                found = self._resources.get(key)
                if self._closed:
                    raise CancelledError(f"{key}: the session is closed; make a new one to run again")
                if found is None:
                    found = make()
                    self._place(key, found)
                    self._resources[key] = found
        return found

    def find(self, key: str) -> Any | None:
        """Returns the resource, None where there is none."""
        return self._resources.get(key)

    def put(self, key: str, value: Any) -> None:
        """Keeps a value in place of the one that there may be."""
        with self._lock:
            self._place(key, value)
            self._resources[key] = value

    def positions(self) -> dict[str, Position]:
        """Returns the positions of all resources that have one, by key, and those that were
        set for some not made yet.
        """
        with self._lock:
            made, found = dict(self._resources), dict(self._positions)
        # Without the lock: a resource may hold its own while it makes others.
        found.update({key: r.position() for key, r in made.items() if isinstance(r, Positioned)})
        return dict(sorted(found.items()))

    def set_positions(self, positions: Mapping[str, Position]) -> bool:
        """Makes these resources go on from these positions, also those that are made later; others stay as they are.

        Returns whether what was compiled draws random numbers of other seeds, and must be compiled again.
        """
        with self._lock:
            made = {key: self._resources[key] for key in positions if key in self._resources}
            self._positions.update({key: p for key, p in positions.items() if key not in made})
        renew = any(isinstance(r, RandomStream) and r.starts_elsewhere(positions[key]) for key, r in made.items())
        for key, resource in made.items():
            _go_on(resource, positions[key])
        return renew

    def _place(self, key: str, resource: Any) -> None:
        """Gives a new resource the position that was set for its key."""
        _go_on(resource, self._positions.pop(key, None))

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
            self._positions.clear()
        for one in reversed(found):
            _close(one)
        self.variables.clear()

    def _stream(self, name: str) -> RandomStream:
        return self.get_or_make(f"random stream {name}", lambda: RandomStream(name))


def _go_on(resource: Any, position: Position | None) -> None:
    if position is not None and isinstance(resource, Positioned):
        resource.set_position(position)


def _close(resource: Any) -> None:
    """Closes a resource. One that fails must not keep the others from being closed, so its error is logged."""
    close = getattr(resource, "close", None)
    if close is None:
        return
    try:
        close()
    except Exception as e:
        logging.warning("closing %s failed: %s: %s", type(resource).__name__, type(e).__name__, e)
