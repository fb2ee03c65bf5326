"""What a session keeps between runs and kernels work on: streams of random numbers, and variables."""

from __future__ import annotations

import os
import threading
from collections.abc import Hashable
from typing import TYPE_CHECKING, Any

import numpy as np

from timberframe_core.dtypes import DType

if TYPE_CHECKING:
    from timberframe_core.plugin.contracts import Array, Device


class RandomStream:
    """Where the random numbers of one op stand in a Session: a counter of the Philox blocks that it has reserved.

    A block is four 32-bit numbers. The counter belongs to the Session by `name`, that of the node with the bodies that
    it is in, so that the stream goes on across shapes and fetches. `seeds` are what an op without a seed of its own
    takes; each stream has others.
    """

    __slots__ = ("__weakref__", "_cell", "_lock", "name", "seeds")

    def __init__(self, name: str = "") -> None:
        self.name = name
        self._cell = np.zeros(1, np.uint64)
        self._lock = threading.Lock()
        self.seeds = int.from_bytes(os.urandom(8)), int.from_bytes(os.urandom(8))

    @property
    def address(self) -> int:
        """Address of the 64-bit counter: native code reserves by an atomic addition to it."""
        return int(self._cell.ctypes.data)

    def reserve(self, blocks: int) -> int:
        """Takes so many blocks and returns the number of the first; no other caller gets any of them."""
        with self._lock:
            first = int(self._cell[0])
            self._cell[0] = (first + blocks) % 2**64
        return first


class Variable:
    """A variable's state in one Session: a versioned buffer on a device.

    `array` is the current version (None while it has no value); a writer holds `lock` from reading the old version to
    committing the new one, readers just take a reference.
    """

    __slots__ = ("__weakref__", "array", "derived", "device", "dtype", "lock", "name", "number", "shape")

    def __init__(self, name: str, number: int, device: Device, dtype: DType) -> None:
        self.name = name
        self.number = number  # locks are taken in this order
        self.device = device
        self.dtype = dtype
        self.array: Array | None = None
        self.shape: tuple[int, ...] | None = None
        self.derived: dict[Hashable, Any] = {}
        """What devices keep that kernels derived from the version (see KernelNode.prepared)."""
        self.lock = threading.RLock()

    def commit(self, array: Array | None, shape: tuple[int, ...] | None) -> None:
        """Makes an array the version, which may be the old one with other values; None leaves no value."""
        if self.derived:
            self.derived = {}
        self.array, self.shape = array, shape

    def close(self) -> None:
        """Drops the value, as the session ends."""
        self.commit(None, None)
