"""Memory of CUDA devices: CuPy's default pool, one for the whole process."""

from __future__ import annotations

from typing import Any

import cupy

from timberframe_sdk import Allocator

_pool = cupy.get_default_memory_pool()
"""Where all devices of the process, and CuPy's own arrays, have their memory from: idle blocks of each go back when one
finds none."""


class CudaAllocator(Allocator):
    """Buffers out of the pool, which keeps those that were given back; they are used on one stream alone."""

    alignment = 512  # of everything that the pool allocates

    def __init__(self, device: Any, limit: int | None) -> None:
        super().__init__(limit)
        self._device = device
        device.context.allocators.add(self)

    def raw(self, nbytes: int) -> Any:
        self._device.streams.refuse_in_capture()
        with self._device.calling():
            try:
                return _pool.malloc(max(nbytes, 1))
            except cupy.cuda.memory.OutOfMemoryError as e:
                free, total = cupy.cuda.runtime.memGetInfo()
                raise MemoryError(f"CUDA has {free} of {total} bytes free") from e

    def reclaim(self) -> bool:
        """See `Allocator`: from the executables of all devices on the GPU."""
        reclaimed = [Allocator.reclaim(a) for a in list(self._device.context.allocators)]
        return any(reclaimed)

    def free_idle(self) -> None:
        """Gives the memory that nobody uses back to the driver."""
        with self._device.gpu:
            _pool.free_all_blocks()
