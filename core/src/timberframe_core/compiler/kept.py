"""Kept: a bounded store of what can be made again, without a number of keys at which all of it is made again."""

from __future__ import annotations

from random import Random
from threading import Lock
from typing import Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")


class Kept(Generic[K, V]):
    """Values by their keys: `least` of them at any cost, and more while their costs come to at most `most`.

    Which one is dropped is drawn. A program that goes through one key more than there is room for, again and again,
    then finds nearly all of them; were the least recently used dropped, it would find none. Threads may use it at once.
    """

    def __init__(self, least: int, most: float) -> None:
        self._least, self._most = least, most
        self._entries: dict[K, tuple[V, float]] = {}
        self._keys: list[K] = []  # in no order
        self._cost = 0.0
        self._random = Random(0)
        self._lock = Lock()

    def __len__(self) -> int:
        return len(self._entries)

    def get(self, key: K) -> V | None:
        """Returns the value of a key, None where it has none."""
        found = self._entries.get(key)
        return None if found is None else found[0]

    def add(self, key: K, value: V, cost: float) -> None:
        """Keeps a value for a key that has none, and drops others until there is room for it.

        Where another thread has added the key meanwhile, that value stays.
        """
        with self._lock:
            if key in self._entries:
                return
            while len(self._keys) >= self._least and self._cost + cost > self._most:
                self._drop(self._random.randrange(len(self._keys)))
            self._entries[key] = value, cost
            self._keys.append(key)
            self._cost += cost

    def clear(self) -> None:
        """Drops all values."""
        with self._lock:
            self._entries.clear()
            self._keys.clear()
            self._cost = 0.0

    def _drop(self, place: int) -> None:
        self._keys[place], self._keys[-1] = self._keys[-1], self._keys[place]
        _, cost = self._entries.pop(self._keys.pop())
        self._cost -= cost
