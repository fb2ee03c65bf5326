"""Random numbers one after the other, those that TensorFlow draws from equal seeds."""

from __future__ import annotations

from typing import Any

import numpy as np

from timberframe_ops.random.philox import Philox

_MOST_AT_ONCE = 4096


class Numbers:
    """32-bit numbers of the Philox stream of two seeds."""

    def __init__(self, seed: int, seed2: int) -> None:
        self._seeds = seed, seed2
        self._drawn = 0
        self._ahead: np.ndarray = np.empty(0, np.uint32)
        self._at = 0
        self._block = 4

    def restarted(self) -> Numbers:
        """Returns numbers of the same seeds, from the first on."""
        return Numbers(*self._seeds)

    def next(self) -> int:
        """Returns the next number."""
        if self._at >= len(self._ahead):
            self._fill(1)
        self._at += 1
        return int(self._ahead[self._at - 1])

    def take(self, count: int) -> np.ndarray:
        """Returns the next numbers, as uint32."""
        while len(self._ahead) - self._at < count:
            self._fill(count)
        found = self._ahead[self._at : self._at + count]
        self._at += count
        return found

    def _fill(self, count: int) -> None:
        self._block = min(4 * self._block, _MOST_AT_ONCE)
        wanted = max(self._block, -(-count // 4) * 4)
        made = Philox.seeded(*self._seeds).skip(self._drawn // 4).numbers(wanted)
        self._ahead = np.concatenate([self._ahead[self._at :], made])
        self._at = 0
        self._drawn += wanted

    def position(self) -> dict[str, Any]:
        """Returns the seeds, and how many numbers were given."""
        return {"seeds": list(self._seeds), "given": self._drawn - len(self._ahead) + self._at}

    def set_position(self, state: dict[str, Any]) -> None:
        """Goes on after as many numbers of these seeds."""
        first, second = state["seeds"]
        self._seeds = first, second
        given = state["given"]
        self._drawn, self._ahead, self._at, self._block = given // 4 * 4, self._ahead[:0], 0, 4
        self.take(given % 4)
