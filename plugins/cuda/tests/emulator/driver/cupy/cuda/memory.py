"""Memory of GPUs. Each allocation ends where a page begins that traps."""

from __future__ import annotations

import ctypes
import mmap
import weakref
from typing import Any

import numpy as np

from cupy.cuda import runtime

_UNIT = 512
_PATTERN = 0xDB
_pinned: dict[int, list[np.ndarray]] = {}
"""Idle page-locked blocks by size. They stay, as streams may still use what was given back too early."""
_C = ctypes.CDLL(None)


class OutOfMemoryError(MemoryError):
    def __init__(self, size: int, total: int, limit: int = 0) -> None:
        super().__init__(f"Out of memory allocating {size:,} bytes (allocated so far: {total:,} bytes).")


class Memory:
    """Memory of the current GPU. Its end is that of a page, and the next page traps."""

    def __init__(self, size: int) -> None:
        self.size, self.device_id = -(-size // _UNIT) * _UNIT, runtime.getDevice()
        if runtime.used[self.device_id] + self.size > runtime.TOTAL:
            raise OutOfMemoryError(self.size, runtime.used[self.device_id])
        pages = -(-self.size // mmap.PAGESIZE) * mmap.PAGESIZE
        whole = np.frombuffer(mmap.mmap(-1, pages + mmap.PAGESIZE), np.uint8)
        self.ptr = whole.ctypes.data + pages - self.size
        _C.mprotect(ctypes.c_void_p(whole.ctypes.data + pages), ctypes.c_size_t(mmap.PAGESIZE), 0)
        whole[:pages] = _PATTERN
        self._whole = whole
        runtime.used[self.device_id] += self.size

    def __del__(self) -> None:
        if hasattr(self, "_whole"):
            runtime.used[self.device_id] -= self.size


class PooledMemory:
    """A block of a pool. Given back it is overwritten when the stream that it was made for comes to that."""

    def __init__(self, idle: list[Memory], stream: int, size: int) -> None:
        self._idle, self._stream, self._memory = idle, stream, idle.pop() if idle else Memory(size)
        self.ptr, self.size, self.device_id = self._memory.ptr, self._memory.size, self._memory.device_id

    def __del__(self) -> None:
        if (memory := getattr(self, "_memory", None)) is not None:
            if (queue := runtime.queues.get(self._stream)) is not None:
                queue.put(lambda: ctypes.memset(memory.ptr, _PATTERN, memory.size))
            self._idle.append(memory)


class UnownedMemory:
    def __init__(self, ptr: int, size: int, owner: Any, device_id: int = -1) -> None:
        self.ptr, self.size, self.device_id, self._owner = ptr, size, device_id, owner


class MemoryPointer:
    def __init__(self, mem: Any, offset: int) -> None:
        self.mem, self.ptr, self.device_id = mem, mem.ptr + offset, mem.device_id

    def __add__(self, offset: int) -> MemoryPointer:
        return MemoryPointer(self.mem, self.ptr - self.mem.ptr + offset)


class MemoryPool:
    """Blocks by stream and size. Where work is done at once each is new, so that one given back traps."""

    def __init__(self) -> None:
        self._idle: dict[tuple[int, int], list[Memory]] = {}

    def malloc(self, size: int) -> MemoryPointer:
        stream = runtime.current_streams()[-1].ptr
        runtime.check_stream(stream)
        if not runtime.ASYNCHRONOUS:
            return MemoryPointer(Memory(size), 0)
        idle = self._idle.setdefault((stream, -(-size // _UNIT)), [])
        try:
            return MemoryPointer(PooledMemory(idle, stream, size), 0)
        except OutOfMemoryError:
            self.free_all_blocks()
            return MemoryPointer(PooledMemory(idle, stream, size), 0)

    def free_all_blocks(self, stream: Any = None) -> None:
        runtime.synchronize()  # as cudaFree does
        for idle in self._idle.values():
            idle.clear()


class PinnedMemoryPool:
    """Blocks of powers of two bytes. One given back is overwritten and used again at once, whatever streams do."""

    def malloc(self, size: int) -> Any:
        whole = max(_UNIT, 1 << (size - 1).bit_length())
        idle = _pinned.setdefault(whole, [])
        block = idle.pop() if idle else np.zeros(whole, np.uint8)
        given = block[:]
        if runtime.ASYNCHRONOUS:
            weakref.finalize(given, _recycle, block, idle).atexit = False
        return memoryview(given)


def _recycle(block: np.ndarray, idle: list[np.ndarray]) -> None:
    block[:] = _PATTERN
    idle.append(block)
