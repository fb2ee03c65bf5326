"""What a session keeps between runs and kernels work on: streams of random numbers, and variables."""

from __future__ import annotations

import os
import threading
from collections.abc import Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import numpy as np

from timberframe_core.dtypes import DType

if TYPE_CHECKING:
    from timberframe_core.plugin.contracts import Array, Device


Position = Mapping[str, "np.ndarray | bytes"]
"""How far a resource has come: parts by name."""


@runtime_checkable
class Positioned(Protocol):
    """A resource that has a position: another one of the same definition goes on from it with the same results.

    Equal histories give equal positions. Both methods may be called while no run uses the resource.
    """

    def position(self) -> Position:
        """Returns how far it has come."""

    def set_position(self, position: Position) -> None:
        """Goes on from a position; InvalidArgumentError where it is of a resource of another definition."""


class RandomStream:
    """Where the random numbers of one op stand in a Session: a counter of the Philox blocks that it has reserved.

    A block is four 32-bit numbers. The counter belongs to the Session by `name`, that of the node with the bodies that
    it is in, so that the stream goes on across shapes and fetches.
    """

    __slots__ = ("__weakref__", "_cell", "_lock", "_seeds", "name")

    def __init__(self, name: str = "") -> None:
        self.name = name
        self._cell = np.zeros(1, np.uint64)
        self._lock = threading.Lock()
        self._seeds: tuple[int, int] | None = None

    @property
    def seeds(self) -> tuple[int, int]:
        """What an op without a seed of its own takes; each stream has others, drawn when they are first asked for."""
        with self._lock:
            if self._seeds is None:
                self._seeds = int.from_bytes(os.urandom(8)), int.from_bytes(os.urandom(8))
            return self._seeds

    def start(self, attrs: Mapping[str, Any]) -> tuple[int, int]:
        """Returns the seeds of an op with these attrs: its own `seed` and `seed2`, or those of
        the stream where both are 0.
        """
        own = attrs["seed"], attrs["seed2"]
        return own if any(own) else self.seeds

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

    def position(self) -> Position:
        """Returns the blocks that are reserved, and the seeds where an op has asked for them."""
        with self._lock:
            found = {"blocks": self._cell[0].copy().reshape(())}
            if self._seeds is not None:
                found["seeds"] = np.array(self._seeds, np.uint64)
            return found

    def set_position(self, position: Position) -> None:
        """Goes on after these blocks, with these seeds; what was compiled with others before keeps those."""
        with self._lock:
            self._cell[0] = np.uint64(position["blocks"])
            if "seeds" in position:
                first, second = np.asarray(position["seeds"]).tolist()
                self._seeds = first, second

    def starts_elsewhere(self, position: Position) -> bool:
        """Returns whether ops were compiled with other seeds than those of a position."""
        return self._seeds is not None and "seeds" in position and self.seeds != tuple(np.asarray(position["seeds"]))

    def restart(self) -> None:
        """Begins again with the first block; the numbers of an op without seeds of its own go on."""
        with self._lock:
            if self._seeds is None:
                self._cell[0] = 0


class VariableVersion:
    """A value that a variable has or had: an array of its device. `readers` has an entry for each who reads it.

    Only a version that nobody reads is written over. `readers` is a list, since its append and pop are atomic with and
    without a global lock of the interpreter. standing: the leases of it that outlast a run.
    """

    __slots__ = ("array", "readers", "shape", "standing")

    def __init__(self, array: Array, shape: tuple[int, ...]) -> None:
        self.array = array
        self.shape = shape
        self.readers: list[None] = []
        self.standing: tuple[StandingLease, ...] = ()

    def release(self) -> None:
        """Ends what one call of `Variable.lease` began."""
        self.readers.pop()

    def keep(self) -> None:
        """Keeps it from ever being written over, as its array is held by somebody whose end nobody tells."""
        self.readers.append(None)

    def end_standing(self) -> bool:
        """Ends the leases that outlast a run; whether no run is using one of them."""
        with _standing_lock:
            ended, self.standing = self.standing, ()
        free = [lease.end() for lease in ended]  # all of them, whatever the first says
        return all(free)


class StandingLease:
    """A lease of several versions that outlasts a run: the runs of a program share it while its variables stay.

    arrays: those of the versions, and what a device derived from them, by the ids of their Values. A run enters, uses
    them and leaves. Who replaces one of the versions, or is to write over it, ends the lease: nobody enters any more,
    and `arrays` is emptied when the last run has left. The two see each other as Variable says of versions.
    """

    __slots__ = ("arrays", "holds", "runs")

    def __init__(self, arrays: dict[int, Array]) -> None:
        self.arrays = arrays
        self.holds = True
        self.runs: list[None] = []

    @classmethod
    def of(
        cls, variables: Sequence[Variable], versions: Sequence[VariableVersion], arrays: dict[int, Array]
    ) -> StandingLease | None:
        """Returns a lease of these versions, which the caller has leased; None where one is
        not its variable's any more.
        """
        made = cls(arrays)
        with _standing_lock:
            for version in versions:
                version.standing = (*version.standing, made)
        if all(variable.version is version for variable, version in zip(variables, versions, strict=True)):
            return made
        made.end()
        return None

    def enter(self) -> bool:
        """Begins a run; False where the lease has ended."""
        self.runs.append(None)
        if self.holds:
            return True
        self.leave()
        return False

    def leave(self) -> None:
        """Ends what one call of `enter` began."""
        self.runs.pop()
        if not self.holds and not self.runs:
            self.arrays.clear()

    def end(self) -> bool:
        """Lets nobody enter any more; whether no run is there."""
        self.holds = False
        self.runs.append(None)
        alone = len(self.runs) == 1
        self.leave()
        return alone


_standing_lock = threading.Lock()


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
        """Returns the current version, which nobody writes over until its `release`; None where there is no value.

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
        before = self.version
        self.shape = None if version is None else version.shape
        self.version = version
        if before is not None and before.standing and before is not version:
            before.end_standing()

    def make_empty(self, shape: tuple[int, ...]) -> None:
        """Gives the variable the only value of a shape without elements, unless it has one."""
        with self.lock:
            if self.shape is None:
                self.commit(self.device.copy_in(np.empty(shape, self.dtype.numpy)), shape)

    def close(self) -> None:
        """Drops the value, as the session ends."""
        self.commit(None, None)
