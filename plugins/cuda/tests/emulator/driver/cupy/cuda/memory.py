"""Memory of GPUs. Each allocation ends where a page begins that traps."""

from __future__ import annotations

import ctypes
import mmap
from typing import Any

import numpy as np

from cupy.cuda import runtime

_UNIT = 512
_C = ctypes.CDLL(None)


class OutOfMemoryError(MemoryError):
    def __init__(self, size: int, total: int, limit: int = 0) -> None:
        super().__init__(f"Out of memory allocating {size:,} bytes (allocated so far: {total:,} bytes).")


class Memory:
    def __init__(self, size: int) -> None:
        self.size, self.device_id = -(-size // _UNIT) * _UNIT, runtime.getDevice()
        if runtime.used[self.device_id] + self.size > runtime.TOTAL:
            raise OutOfMemoryError(self.size, runtime.used[self.device_id])
        pages = -(-self.size // mmap.PAGESIZE) * mmap.PAGESIZE
        whole = np.frombuffer(mmap.mmap(-1, pages + mmap.PAGESIZE), np.uint8)
        self.ptr = whole.ctypes.data + pages - self.size
        _C.mprotect(ctypes.c_void_p(whole.ctypes.data + pages), ctypes.c_size_t(mmap.PAGESIZE), 0)
        whole[:pages] = 0xDB
        self._whole = whole
        runtime.used[self.device_id] += self.size

    def __del__(self) -> None:
        if hasattr(self, "_whole"):
            runtime.used[self.device_id] -= self.size


class UnownedMemory:
    def __init__(self, ptr: int, size: int, owner: Any, device_id: int = -1) -> None:
        self.ptr, self.size, self.device_id, self._owner = ptr, size, device_id, owner


class MemoryPointer:
    def __init__(self, mem: Any, offset: int) -> None:
        self.mem, self.ptr, self.device_id = mem, mem.ptr + offset, mem.device_id

    def __add__(self, offset: int) -> MemoryPointer:
        return MemoryPointer(self.mem, self.ptr - self.mem.ptr + offset)


class MemoryPool:
    def malloc(self, size: int) -> MemoryPointer:
        runtime.check_stream(runtime.current_streams()[-1].ptr)
        return MemoryPointer(Memory(size), 0)

    def free_all_blocks(self) -> None: ...


class PinnedMemoryPool:
    def malloc(self, size: int) -> Any:
        return memoryview(bytearray(size))
