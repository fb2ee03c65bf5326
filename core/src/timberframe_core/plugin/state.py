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


class VariableVersion:
    """A value that a variable has or had: an array of its device. `readers` has an entry for each who reads it.

    Only a version that nobody reads is written over. `readers` is a list, since its append and pop are atomic with and
    without a global lock of the interpreter.
    """

    __slots__ = ("array", "readers", "shape")

    def __init__(self, array: Array, shape: tuple[int, ...]) -> None:
        self.array = array
        self.shape = shape
        self.readers: list[None] = []

    def release(self) -> None:
        """Ends what one call of `Variable.lease` began."""
        self.readers.pop()

    def keep(self) -> None:
        """Has it never be written over, as its array is held by somebody whose end nobody tells."""
        self.readers.append(None)


class Variable:
    """A variable's state in one Session: a versioned buffer on a device.

    `version` is the current one (None while there is no value, or while it is written over); a writer holds `lock` from
    reading the old version to committing the new one. Who reads a version has a lease of it, and does not use its array
    any more when the lease has ended. Who writes over one sets `version` to None, then appends to its `readers` and
    looks whether others are there: readers append before they look at `version`, so one of the two sees the other.
    """

    __slots__ = ("__weakref__", "derived", "device", "dtype", "lock", "name", "number", "shape", "version")

    def __init__(self, name: str, number: int, device: Device, dtype: DType) -> None:
        self.name = name
        self.number = number  # locks are taken in this order
        self.device = device
        self.dtype = dtype
        self.version: VariableVersion | None = None
        self.shape: tuple[int, ...] | None = None
        self.derived: dict[Hashable, Any] = {}
        """What devices keep that kernels derived from the version (see KernelNode.prepared)."""
        self.lock = threading.RLock()

    def lease(self) -> VariableVersion | None:
        """The current version, which nobody writes over until its `release`; None where there is no value.

        Waits while it is written over.
        """
        while (version := self.version) is not None:
            version.readers.append(None)
            if self.version is version:
                return version
            version.readers.pop()
        with self.lock:
            version = self.version
            if version is not None:
                version.readers.append(None)
            return version

    def commit(self, array: Array | None, shape: tuple[int, ...] | None) -> None:
        """Makes an array that nobody else holds the version, maybe the old one with other values; None: no value."""
        self.restore(None if array is None or shape is None else VariableVersion(array, shape))

    def restore(self, version: VariableVersion | None) -> None:
        """Makes a version that the variable had the current one again."""
        if self.derived:
            self.derived = {}
        self.shape = None if version is None else version.shape
        self.version = version

    def close(self) -> None:
        """Drops the value, as the session ends."""
        self.commit(None, None)
