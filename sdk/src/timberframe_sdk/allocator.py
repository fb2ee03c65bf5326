"""Allocator and Buffer: limit, statistics and lock are done here; a device writes `raw`."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable
from typing import Any, Protocol

from timberframe_core.errors import InternalError, ResourceExhaustedError
from timberframe_core.plugin.contracts import AllocatorStatistics


class Buffer:
    """Memory from an Allocator. It goes back with its last reference, or at close()."""

    __slots__ = ("__weakref__", "_release", "handle", "nbytes")

    def __init__(self, handle: Any, nbytes: int, release: Callable[[int], None]) -> None:
        self.handle = handle
        self.nbytes = nbytes
        self._release: Callable[[int], None] | None = release

    def close(self) -> None:
        """Gives the memory back; may be repeated."""
        release, self._release = self._release, None
        if release is not None:
            self.handle = None
            release(self.nbytes)

    def __del__(self) -> None:
        self.close()


class Keeper(Protocol):
    """Who keeps memory that it does not use at present."""

    def drop_idle(self) -> bool:
        """Drops this memory; whether there was any. Other threads may use the keeper meanwhile."""


class Allocator:
    """Base of allocators. A subclass writes `raw(nbytes)`, whose result frees itself when it is dropped.

    limit: most bytes in use at once, or None. `fail_at` makes the nth allocation from now fail: so conformance injects
    faults. Where memory runs out, what executables keep for their next runs is given back, and the allocation is tried
    once more.
    """

    alignment = 64

    def __init__(self, limit: int | None = None) -> None:
        self.limit = limit
        self.fail_at: int | None = None
        self._used = self._peak = self._live = self._total = 0
        self._lock = threading.RLock()  # the garbage collector may release a buffer while it is held
        self._keepers: weakref.WeakSet[Keeper] = weakref.WeakSet()

    def raw(self, nbytes: int) -> Any:
        """Memory of the device, aligned to `alignment`; raises MemoryError when there is none."""
        raise InternalError(
            f"allocator {type(self).__name__}: has no raw; an allocator that gives memory must define it"
        )

    def allocate(self, nbytes: int) -> Buffer:
        """Returns a buffer of at least `nbytes` bytes; ResourceExhaustedError when the limit or the device refuses."""
        return Buffer(self.obtain(nbytes), nbytes, self.release)

    def may_drop(self, keeper: Keeper) -> None:
        """Makes a keeper drop what it does not use when memory runs out, for as long as the keeper lives."""
        with self._lock:
            self._keepers.add(keeper)

    def reclaim(self) -> bool:
        """Makes all keepers drop what they do not use; whether there was any."""
        with self._lock:
            keepers = list(self._keepers)
        dropped = [keeper.drop_idle() for keeper in keepers]
        return any(dropped)

    def obtain(self, nbytes: int) -> Any:
        """Returns what `raw` gives, counted as used until `release`."""
        if self.fail_at is not None:  # a test that counts allocations expects each to be tried once
            return self._obtain(nbytes)
        try:
            return self._obtain(nbytes)
        except ResourceExhaustedError:
            if not self.reclaim():
                raise
        return self._obtain(nbytes)

    def _obtain(self, nbytes: int) -> Any:
        self.reserve(nbytes)
        try:
            return self.raw(nbytes)
        except MemoryError as e:
            self.release(nbytes)
            with self._lock:
                raise self._refused(nbytes, str(e)) from e
        except BaseException:
            self.release(nbytes)
            raise

    def reserve(self, nbytes: int) -> None:
        """Counts memory as used; ResourceExhaustedError where the limit forbids it."""
        with self._lock:
            if self.fail_at is not None:
                self.fail_at -= 1
                if self.fail_at < 0:
                    self.fail_at = None
                    raise self._exhausted(nbytes, "an injected fault")
            if self.limit is not None and self._used + nbytes > self.limit:
                raise self._exhausted(nbytes, "the limit")
            self._used += nbytes
            if self._used > self._peak:
                self._peak = self._used
            self._live += 1
            self._total += 1

    def release(self, nbytes: int) -> None:
        """Counts memory as free again."""
        with self._lock:
            self._used -= nbytes
            self._live -= 1

    def release_with(self, array: Any, nbytes: int) -> None:
        """Releases reserved memory when `array` is dropped, for arrays that another library allocated."""
        weakref.finalize(array, self.release, nbytes).atexit = False

    def _exhausted(self, nbytes: int, who: str) -> ResourceExhaustedError:
        if self.limit is None:
            return self._refused(nbytes, "", who)
        return ResourceExhaustedError(
            f"allocation of {nbytes} bytes was refused by {who}: {self._used} bytes used, "
            f"{max(0, self.limit - self._used)} free (limit {self.limit}); "
            "free tensors or raise the device's memory limit"
        )

    def _refused(self, nbytes: int, why: str, who: str = "the device") -> ResourceExhaustedError:
        """Returns the error where memory itself is used up, which no limit can change. why: what the driver said."""
        return ResourceExhaustedError(
            f"allocation of {nbytes} bytes was refused by {who}{f' ({why})' if why else ''}: {self._used} bytes used; "
            "free tensors or use smaller batches"
        )

    def statistics(self) -> AllocatorStatistics:
        """Returns bytes used now, the peak, the limit, live and total allocations."""
        with self._lock:
            return AllocatorStatistics(self._used, self._peak, self.limit, self._live, self._total)
