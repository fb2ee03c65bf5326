"""Memory of CUDA devices: CuPy's pools, and the driver's errors as tf.errors."""

from __future__ import annotations

import threading
from collections import deque
from typing import Any

import cupy
import numpy as np

from timberframe_sdk import Allocator, InternalError, OpError, ResourceExhaustedError

DRIVER_ERRORS = cupy.cuda.runtime.CUDARuntimeError, cupy.cuda.driver.CUDADriverError
OUT_OF_MEMORY = 2  # cudaErrorMemoryAllocation, CUDA_ERROR_OUT_OF_MEMORY
NOT_READY = 600  # cudaErrorNotReady


def device_error(spec: str, error: Any) -> OpError:
    """The error for a failed call of CUDA. Errors of a kernel are reported by some later call."""
    if error.status == OUT_OF_MEMORY:
        return ResourceExhaustedError(f"{spec}: {error}; less memory in use at a time is required")
    return InternalError(
        f"{spec}: CUDA reports {error}, perhaps of work that was enqueued before; "
        "if the device does nothing any more, restart the process"
    )


class CudaAllocator(Allocator):
    """Buffers out of a pool that keeps those which were given back; they are used on one stream alone."""

    alignment = 512  # of everything that the pool allocates

    def __init__(self, gpu: cupy.cuda.Device, stream: cupy.cuda.Stream, limit: int | None) -> None:
        super().__init__(limit)
        self._gpu, self._stream = gpu, stream
        self._pool = cupy.cuda.MemoryPool()

    def raw(self, nbytes: int) -> Any:
        with self._gpu, self._stream:
            try:
                return self._pool.malloc(max(nbytes, 1))
            except cupy.cuda.memory.OutOfMemoryError as e:
                free, total = cupy.cuda.runtime.memGetInfo()
                raise MemoryError(f"CUDA has {free} of {total} bytes free") from e

    def free_idle(self) -> None:
        """Gives the buffers that nobody uses back to the driver."""
        with self._gpu:
            self._pool.free_all_blocks()


class PinnedMemory:
    """Page-locked memory of the host, which the device reads and writes by itself."""

    def __init__(self) -> None:
        self._pool = cupy.cuda.PinnedMemoryPool()
        self._busy: deque[tuple[cupy.cuda.Event, np.ndarray]] = deque()
        self._lock = threading.RLock()  # a collection of garbage may come back here

    def array(self, dtype: np.dtype[Any], shape: tuple[int, ...]) -> np.ndarray:
        """An array in such memory, which goes back to the pool with the array."""
        size = int(np.prod(shape))
        memory = self._pool.malloc(max(size * dtype.itemsize, 1))
        return np.frombuffer(memory, np.uint8, size * dtype.itemsize).view(dtype).reshape(shape)

    def keep(self, x: np.ndarray, until: cupy.cuda.Event) -> None:
        """Keeps an array that the device may still use until an event."""
        with self._lock:
            while self._busy and finished(self._busy[0][0]):
                self._busy.popleft()
            self._busy.append((until, x))


def finished(event: cupy.cuda.Event) -> bool:
    """Whether the work before an event has ended, even with an error."""
    return bool(cupy.cuda.runtime.eventQuery(event.ptr) != NOT_READY)
