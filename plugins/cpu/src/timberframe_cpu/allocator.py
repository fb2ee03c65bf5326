"""Memory of the CPU: aligned host memory under a limit, and the arenas that are waiting for their next run."""

from __future__ import annotations

import math
import threading
from collections import deque
from dataclasses import replace
from functools import partial
from typing import Any
from weakref import WeakValueDictionary

import numpy as np

from timberframe_cpu.library import ffi
from timberframe_sdk import AllocatorStatistics
from timberframe_sdk.allocator import Allocator, Buffer

ALIGNMENT = Allocator.alignment
COUNTED_BYTES = 1 << 16
"""Tensors that leave a run are counted against the limit from this size on; smaller ones are not worth it."""

_PAGE_BYTES = 4096
_LEAST_ALIGNED = 4096
"""Bytes of the smallest versions of variables that are worth the 1 us that it takes to align them."""
SPARE_BYTES = 1 << 26
"""Most memory that a pool of dropped results holds; all pools together hold it after as many bytes of new blocks."""

_IDLE_BYTES = 1 << 28


def is_counted(dtype: np.dtype[Any], nbytes: int) -> bool:
    """Returns whether a result of this dtype and size is counted, and its memory kept when it was dropped."""
    return nbytes >= COUNTED_BYTES and not dtype.hasobject


def aligned_array(dtype: np.dtype[Any], shape: tuple[int, ...]) -> np.ndarray:
    """Returns an array whose elements begin where a cache line does; NumPy's own begin at a multiple of 16 bytes.

    Of others, most vectors of 64 bytes that a kernel reads lie in two cache lines. Arrays of less than a line, and of
    strings, are NumPy's own.
    """
    nbytes = dtype.itemsize * math.prod(shape)
    if nbytes < ALIGNMENT or dtype.hasobject:
        return np.empty(shape, dtype)
    block = np.empty(nbytes + ALIGNMENT, np.uint8)
    return np.ndarray(shape, dtype, block, -int(ffi.cast("intptr_t", ffi.from_buffer(block))) % ALIGNMENT)


class CpuAllocator(Allocator):
    """Host memory in 64-byte alignment. The handle of a buffer is a uint8 array.

    Memory of results that the caller drops goes to a pool for the next result of the same size, since the system would
    give it back page by page, cleared, at each run. What lies in pools counts as free; only the peak has it, too.
    """

    def __init__(self, limit: int | None = None) -> None:
        super().__init__(limit)
        self._pools: WeakValueDictionary[int, deque[Any]] = WeakValueDictionary()
        self._recent: dict[int, deque[Any]] = {}
        self._pools_lock = threading.Lock()
        self._until_sweep = SPARE_BYTES

    def reclaim(self) -> bool:
        """See `Allocator`: idle arenas, and what lies in pools."""
        dropped = self._drop_spare()
        return super().reclaim() or dropped

    def statistics(self) -> AllocatorStatistics:
        """Returns bytes used now, the peak, the limit, live and total allocations."""
        counted = super().statistics()
        spare = [(len(pool), size) for size, pool in list(self._pools.items())]
        return replace(
            counted,
            used=counted.used - sum(count * size for count, size in spare),
            live=counted.live - sum(count for count, _ in spare),
        )

    def _drop_spare(self) -> bool:
        """Frees what lies in pools; returns whether there was any."""
        pools = [pool for pool in list(self._pools.values()) if pool]
        self._recent.clear()
        for pool in pools:
            pool.clear()
        return bool(pools)

    def raw(self, nbytes: int) -> np.ndarray:
        # Where a store's address and that of a later load agree in their low 12 bits, processors take the load to
        # depend on the store. The stores of page-aligned outputs come after the loads of operands that begin a page
        # or little after it, as large NumPy arrays do.
        alignment = self.alignment if nbytes < COUNTED_BYTES else _PAGE_BYTES
        try:
            block = np.empty(nbytes + alignment, np.uint8)
        except (ValueError, OverflowError) as e:  # what NumPy raises for sizes that no address space holds
            raise MemoryError(str(e)) from e
        start = -block.__array_interface__["data"][0] % alignment
        return block[start : start + nbytes]

    def empty(self, dtype: np.dtype[Any], shape: tuple[int, ...]) -> np.ndarray:
        """Returns an array that owns its memory; ResourceExhaustedError when that is refused."""
        nbytes = dtype.itemsize * math.prod(shape)
        if not is_counted(dtype, nbytes):
            return np.empty(shape, dtype)
        pool = self.pool(nbytes)
        try:
            block = pool.pop()
        except IndexError:
            block = self.block(nbytes)
        # NumPy keeps the buffer alive, and it the pointer, whose end puts the block into the pool
        return np.ndarray(shape, dtype, ffi.buffer(ffi.gc(block, pool.append), nbytes))

    def aligned(self, dtype: np.dtype[Any], shape: tuple[int, ...]) -> np.ndarray:
        """As `empty`, and aligned where it is small, too, which takes 1 us: for what many runs read."""
        if is_counted(dtype, dtype.itemsize * math.prod(shape)):
            return self.empty(dtype, shape)
        return aligned_array(dtype, shape)

    def new_version(self, dtype: np.dtype[Any], shape: tuple[int, ...]) -> np.ndarray:
        """Returns an array for a version of a variable: aligned where that pays."""
        if dtype.itemsize * math.prod(shape) < _LEAST_ALIGNED:
            return np.empty(shape, dtype)
        return self.aligned(dtype, shape)

    def pool(self, nbytes: int) -> deque[Any]:
        """Blocks for results of this size that wait for their next use, the last one to be taken first.

        The block of a result is `ffi.gc(block, pool.append)`: where no Python code runs between two results, a large
        one costs little more than a small one.
        """
        try:
            return self._recent[nbytes]
        except KeyError:
            with self._pools_lock:
                pool = self._pools.get(nbytes)
                if pool is None:
                    pool = self._pools[nbytes] = deque(maxlen=SPARE_BYTES // nbytes)
                self._recent[nbytes] = pool
            return pool

    def block(self, nbytes: int) -> Any:
        """New counted memory for a result, as a char array of cffi; ResourceExhaustedError when it is refused."""
        self._until_sweep -= nbytes
        if self._until_sweep < 0:
            self._until_sweep = SPARE_BYTES
            if sum(len(pool) * size for size, pool in list(self._pools.items())) > SPARE_BYTES:
                self._drop_spare()
            self._recent.clear()
        return ffi.gc(ffi.from_buffer(self.obtain(nbytes)), partial(self._freed, nbytes))

    def _freed(self, nbytes: int, _: object) -> None:
        self.release(nbytes)


class ArenaPool:
    """Arenas between runs, so that a plan's next run need not ask the system for memory."""

    def __init__(self, allocator: CpuAllocator) -> None:
        self._allocator = allocator
        self._idle: list[Buffer] = []
        self._lock = threading.Lock()
        allocator.may_drop(self)

    def take(self, nbytes: int) -> Buffer:
        """Returns an arena of at least `nbytes`: the smallest idle one that is not over twice
        as large, else a new one.
        """
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

    def drop_idle(self) -> bool:
        """Gives all idle arenas back; returns whether there were any."""
        with self._lock:
            idle, self._idle = self._idle, []
        for arena in idle:
            arena.close()
        return bool(idle)
