"""Memory of OpenCL devices: the pool that buffers come from, and copies from and to the host."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from timberframe_sdk import Allocator, InternalError, OpError, ResourceExhaustedError, UnavailableError

if TYPE_CHECKING:
    import pyopencl as cl
else:
    from timberframe_opencl import lazy as cl

STAGE_BYTES = 1 << 22
"""Bytes of each of the two halves of a staging buffer."""


@cache
def _exhausted() -> frozenset[int]:
    """Returns the codes of errors for want of memory."""
    code = cl.status_code
    return frozenset({
        code.MEM_OBJECT_ALLOCATION_FAILURE, code.OUT_OF_RESOURCES, code.OUT_OF_HOST_MEMORY, code.INVALID_BUFFER_SIZE,
    })  # fmt: skip


@cache
def _lost() -> frozenset[int]:
    """Returns the codes of errors of devices that are gone."""
    code = cl.status_code
    return frozenset({code.DEVICE_NOT_AVAILABLE, code.INVALID_COMMAND_QUEUE, code.INVALID_CONTEXT})


def device_error(spec: str, error: cl.Error, kernel: str = "") -> OpError:
    """Returns the error for a failed call of the driver, UnavailableError where the device is lost.

    kernel: the name of the one to be launched.
    """
    if error.code in _exhausted():
        return ResourceExhaustedError(f"{spec}: {error}; less memory in use at a time is required")
    where = f"{spec}: {kernel and f'kernel {kernel}: '}"
    if error.code in _lost():
        return UnavailableError(where + loss(error))
    return InternalError(f"{where}the driver reports {error}")


def loss(error: cl.Error) -> str:
    """Returns why a device is lost, as the end of a sentence."""
    return f"the device is lost until the process ends, as the driver reports {error}"


class OpenCLAllocator(Allocator):
    """Buffers of a context, out of a pool that keeps those which were given back. alignment: bytes, of sub-buffers.

    find_queue: gives a queue of the context, and is called for the first buffer.
    """

    def __init__(self, find_queue: Callable[[], cl.CommandQueue], limit: int | None, alignment: int) -> None:
        super().__init__(limit)
        self.alignment = alignment
        self._find_queue = find_queue
        self._opening = threading.Lock()
        self._source: Callable[[int], Any] | None = None
        self._pool: cl.tools.MemoryPool | None = None

    def raw(self, nbytes: int) -> Any:
        source = self._source or self._open()
        try:
            return source(max(nbytes, 1))
        except cl.Error as e:
            if e.code in _exhausted():
                raise MemoryError(str(e)) from e
            raise

    def _open(self) -> Callable[[int], Any]:
        queue = self._find_queue()
        with self._opening:
            if self._source is None:
                exact = cl.tools.ImmediateAllocator(queue)
                self._pool = cl.tools.MemoryPool(exact)
                # A pool rounds sizes up, which would hide from a simulator what lies outside a tensor.
                self._source = exact if "Oclgrind" in queue.device.platform.name else self._pool.allocate
            return self._source

    def free_idle(self) -> None:
        """Gives the buffers that nobody uses back to the driver."""
        if self._pool is not None:
            self._pool.free_held()


class Staging:
    """Two pieces of page-locked host memory for long copies: one is filled while the other is transferred."""

    def __init__(self, queue: cl.CommandQueue, nbytes: int = STAGE_BYTES) -> None:
        self._queue = queue
        self._nbytes = nbytes
        self._lock = threading.Lock()
        self._halves: list[np.ndarray] = []

    def write(self, host: np.ndarray, target: Any) -> None:
        """Copies bytes of the host into a buffer; returns when they have left `host`, if not yet arrived."""
        with self._lock:
            halves = self._memory()
            busy: list[Any] = [None, None]
            for i, start in enumerate(range(0, host.size, self._nbytes)):
                half, part = halves[i % 2], host[start : start + self._nbytes]
                self._wait(busy[i % 2])
                half[: part.size] = part
                busy[i % 2] = cl.enqueue_copy(
                    self._queue, target, half[: part.size], dst_offset=start, is_blocking=False
                )
            for event in busy:  # the next copy reuses the memory
                self._wait(event)

    def read(self, source: Any, host: np.ndarray) -> None:
        """Copies a buffer into bytes of the host, and waits for them."""
        with self._lock:
            halves, starts = self._memory(), range(0, host.size, self._nbytes)
            events = []
            for i in range(len(starts) + 1):
                if i < len(starts):
                    half = halves[i % 2][: min(self._nbytes, host.size - starts[i])]
                    events.append(cl.enqueue_copy(self._queue, half, source, src_offset=starts[i], is_blocking=False))
                if i:
                    events[i - 1].wait()
                    part = host[starts[i - 1] : starts[i - 1] + self._nbytes]
                    part[:] = halves[(i - 1) % 2][: part.size]

    def _memory(self) -> list[np.ndarray]:
        if not self._halves:
            flags = cl.mem_flags.READ_WRITE | cl.mem_flags.ALLOC_HOST_PTR
            access: Any = cl.map_flags.READ | cl.map_flags.WRITE  # typed as an int, which the call's types refuse
            for _ in range(2):
                buffer = cl.Buffer(self._queue.context, flags, self._nbytes)
                half, _ = cl.enqueue_map_buffer(self._queue, buffer, access, 0, (self._nbytes,), np.dtype(np.uint8))
                self._halves.append(half)
        return self._halves

    @staticmethod
    def _wait(event: Any) -> None:
        if event is not None:
            event.wait()
