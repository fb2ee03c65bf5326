"""Memory of the CPU: aligned host memory under a limit, and the arenas that are waiting for their next run."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from typing import Any

import numpy as np

from timberframe.errors import ResourceExhaustedError
from timberframe_sdk.allocator import Allocator, Buffer

COUNTED_BYTES = 1 << 16
"""Tensors that leave a run are counted against the limit from this size on; smaller ones are not worth it."""

_IDLE_BYTES = 1 << 28


class CpuAllocator(Allocator):
    """Host memory in 64-byte alignment. The handle of a buffer is a uint8 array.

    reclaim: gives back memory that is only kept for later, and tells whether there was any.
    """

    reclaim: Callable[[], bool] | None = None

    def allocate(self, nbytes: int) -> Buffer:
        """A buffer; where there is no memory for it, idle memory is given back first."""
        try:
            return super().allocate(nbytes)
        except ResourceExhaustedError:
            if self.reclaim is None or not self.reclaim():
                raise
            return super().allocate(nbytes)

    def raw(self, nbytes: int) -> np.ndarray:
        try:
            block = np.empty(nbytes + self.alignment, np.uint8)
        except (ValueError, OverflowError) as e:  # NumPy's words for sizes that no address space holds
            raise MemoryError(str(e)) from e
        start = -block.__array_interface__["data"][0] % self.alignment
        return block[start : start + nbytes]

    def empty(self, dtype: np.dtype[Any], shape: tuple[int, ...]) -> np.ndarray:
        """An array that owns its memory; ResourceExhaustedError when that is refused."""
        nbytes = dtype.itemsize * math.prod(shape)
        if nbytes < COUNTED_BYTES or dtype.hasobject:
            return np.empty(shape, dtype)
        return np.asarray(_Owner(self.allocate(nbytes))).view(dtype).reshape(shape)


class _Owner:
    """Lets an array keep a Buffer alive: NumPy holds on to the object whose interface it took."""

    __slots__ = ("__array_interface__", "buffer")

    def __init__(self, buffer: Buffer) -> None:
        self.buffer = buffer
        self.__array_interface__ = buffer.handle.__array_interface__


class ArenaPool:
    """Arenas between runs, so that a plan's next run need not ask the system for memory."""

    def __init__(self, allocator: CpuAllocator) -> None:
        self._allocator = allocator
        self._idle: list[Buffer] = []
        self._lock = threading.Lock()
        allocator.reclaim = self.clear

    def take(self, nbytes: int) -> Buffer:
        """An arena of at least `nbytes`: the smallest idle one that is not over twice as large, else a new one."""
        with self._lock:
            fits = [b for b in self._idle if nbytes <= b.nbytes <= 2 * nbytes]
            if fits:
                best = min(fits, key=lambda b: b.nbytes)
                self._idle.remove(best)
                return best
        return self._allocator.allocate(nbytes)

    def give(self, arena: Buffer) -> None:
        """Keeps an arena for the next run, or lets it go when much is idle already."""
        with self._lock:
            if sum(b.nbytes for b in self._idle) + arena.nbytes <= _IDLE_BYTES:
                self._idle.append(arena)
                return
        arena.close()

    def clear(self) -> bool:
        """Gives all idle arenas back; tells whether there were any."""
        with self._lock:
            idle, self._idle = self._idle, []
        for arena in idle:
            arena.close()
        return bool(idle)
