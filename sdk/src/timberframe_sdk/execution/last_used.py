"""What devices keep of what was dear to make, such as compiled programs."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import Generic, TypeVar

K = TypeVar("K")
T = TypeVar("T")


class LastUsed(Generic[K, T]):
    """The things that were used last, `most` of them; each is made when it is not there. Thread-safe.

    What is dropped lives on for as long as somebody else has it.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._kept: OrderedDict[K, T] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: K, make: Callable[[], T]) -> T:
        """Returns what is kept for a key, or else what `make` gives.

        Several threads may make the same at once; one is kept.
        """
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
                return self._kept[key]
        made = make()
        with self._lock:
            found = self._kept.setdefault(key, made)
            while len(self._kept) > self._most:
                self._kept.popitem(last=False)
        return found

    def clear(self) -> None:
        """Drops all of them."""
        with self._lock:
            self._kept.clear()
