"""What devices keep for constants, such as the copies that they upload."""

from __future__ import annotations

import weakref
from typing import Generic, TypeVar

import numpy as np

T = TypeVar("T")


class PerConstant(Generic[T]):
    """One thing for each host array, for as long as the array lives; arrays are distinguished by identity."""

    def __init__(self) -> None:
        self._kept: dict[int, tuple[weakref.ref[np.ndarray], T]] = {}

    def get(self, x: np.ndarray) -> T | None:
        """What is kept for this very array."""
        found = self._kept.get(id(x))
        return None if found is None or found[0]() is not x else found[1]

    def keep(self, x: np.ndarray, thing: T) -> T:
        """Keeps the thing, which must not refer to the array, and returns it."""
        key = id(x)
        self._kept[key] = weakref.ref(x, lambda _: self._kept.pop(key, None)), thing
        return thing

    def clear(self) -> None:
        """Drops all of them."""
        self._kept.clear()
