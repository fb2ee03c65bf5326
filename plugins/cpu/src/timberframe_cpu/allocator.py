"""Memory of the CPU: aligned host memory under a limit, and the arenas that are waiting for their next run."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from typing import Any

import numpy as np

from timberframe.errors import ResourceExhaustedError
from timberframe_cpu.library import ffi
from timberframe_sdk.allocator import Allocator, Buffer

COUNTED_BYTES = 1 << 16
"""Tensors that leave a run are counted against the limit from this size on; smaller ones are not worth it."""

_PAGE_BYTES = 4096
_SPARE_BYTES = 1 << 26
"""Most memory of results that the caller dropped and that the next results of the same size may take."""

_IDLE_BYTES = 1 << 28


class CpuAllocator(Allocator):
    """Host memory in 64-byte alignment. The handle of a buffer is a uint8 array.

    reclaim: gives back memory that is only kept for later, and tells whether there was any.
    """

    reclaim: Callable[[], bool] | None = None

    def __init__(self, limit: int | None = None) -> None:
        super().__init__(limit)
        self._spare: dict[int, list[_Block]] = {}
        self._spare_bytes = 0

    def obtain(self, nbytes: int) -> np.ndarray:
        """Counted memory; where there is none, idle memory is given back first."""
        try:
            memory: np.ndarray = super().obtain(nbytes)
        except ResourceExhaustedError:
            if not self._make_room():
                raise
            memory = super().obtain(nbytes)
        return memory

    def _make_room(self) -> bool:
        """Gives idle memory back; tells whether there was any."""
        self._drop_spare()
        return self.reclaim is not None and self.reclaim()

    def spare(self, block: _Block) -> None:
        """Keeps the memory of a dropped result: the system would give it back page by page, cleared, at each run."""
        self.release(block.nbytes)
        if self._spare_bytes + block.nbytes > _SPARE_BYTES:
            self._drop_spare()
        if block.nbytes <= _SPARE_BYTES:
            self._spare_bytes += block.nbytes
            self._spare.setdefault(block.nbytes, []).append(block)

    def _drop_spare(self) -> None:
        self._spare.clear()
        self._spare_bytes = 0

    def raw(self, nbytes: int) -> np.ndarray:
        # Where a store's address and that of a later load agree in their low 12 bits, processors take the load to
        # depend on the store. Page-aligned outputs keep behind the loads of every operand that begins a page or little
        # after it, as large NumPy arrays do.
        alignment = self.alignment if nbytes < COUNTED_BYTES else _PAGE_BYTES
        try:
            block = np.empty(nbytes + alignment, np.uint8)
        except (ValueError, OverflowError) as e:  # NumPy's words for sizes that no address space holds
            raise MemoryError(str(e)) from e
        start = -block.__array_interface__["data"][0] % alignment
        return block[start : start + nbytes]

    def empty(self, dtype: np.dtype[Any], shape: tuple[int, ...]) -> np.ndarray:
        """An array that owns its memory; ResourceExhaustedError when that is refused."""
        nbytes = dtype.itemsize * math.prod(shape)
        if nbytes < COUNTED_BYTES or dtype.hasobject:
            return np.empty(shape, dtype)
        block = self._take_spare(nbytes) or _Block(self, self.obtain(nbytes))
        # NumPy keeps the buffer alive, and it the pointer, whose end gives the block back
        return np.ndarray(shape, dtype, ffi.buffer(ffi.gc(block.pointer, block.dropped), nbytes))

    def _take_spare(self, nbytes: int) -> _Block | None:
        try:
            block = self._spare[nbytes].pop()
        except (KeyError, IndexError):
            return None
        self._spare_bytes -= nbytes
        try:
            self.reserve(nbytes)
        except ResourceExhaustedError:
            if not self._make_room():
                raise
            self.reserve(nbytes)
        return block


class _Block:
    """Memory of results: counted while an array lies on it, kept for the next one when it was dropped."""

    __slots__ = ("allocator", "memory", "nbytes", "pointer")

    def __init__(self, allocator: CpuAllocator, memory: np.ndarray) -> None:
        self.allocator = allocator
        self.nbytes = memory.nbytes
        self.memory = memory
        self.pointer = ffi.cast("char *", ffi.from_buffer(self.memory))

    def dropped(self, _: object) -> None:
        """The last array on it is gone."""
        self.allocator.spare(self)


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
