"""CUDA's runtime: the current GPU of each thread, and copies."""

from __future__ import annotations

import ctypes
import itertools
import os
import threading
import time
from collections.abc import Callable
from typing import Any

from cuda_on_cpu.queues import Queue

memcpyHostToDevice, memcpyDeviceToHost, memcpyDeviceToDevice = 1, 2, 3
TOTAL = 1 << 30
"""Bytes of a GPU."""
used = [0] * 16
"""Bytes in use, by GPU."""
streams: dict[int, int] = {}
"""The GPU of each stream."""
captured: dict[int, list[Callable[[], object]]] = {}
"""What was enqueued on streams that are being captured."""
graphs_launched = 0
numbers = itertools.count(1)
lost: dict[int, int] = {}
"""The error that every call on a GPU reports, for those that a kernel has lost."""
ASYNCHRONOUS = os.environ.get("EMULATED_STREAMS", "") == "late"
queues: dict[int, Queue] = {}
"""The work of each stream, where streams work by themselves."""
marks: dict[int, Mark | None] = {}
"""Where each event was recorded last."""
_thread = threading.local()


_WORDS = {
    100: "cudaErrorNoDevice: no CUDA-capable device is detected",
    700: "cudaErrorIllegalAddress: an illegal memory access was encountered",
    716: "cudaErrorMisalignedAddress: misaligned address",
}


class CUDARuntimeError(RuntimeError):
    def __init__(self, status: int) -> None:
        super().__init__(_WORDS.get(status, str(status)))
        self.status = status


def getDeviceCount() -> int:
    count = int(os.environ.get("EMULATED_GPUS", "2"))
    if not count:
        raise CUDARuntimeError(100)
    return count


def getDevice() -> int:
    return getattr(_thread, "device", 0)


def setDevice(device: int) -> None:
    _thread.device = device


def _stack(name: str) -> list[Any]:
    found: list[Any] = _thread.__dict__.setdefault(name, [])
    return found


def current_streams() -> list[Any]:
    """Returns the streams that this thread made current, the latest last."""
    return _stack("streams")


def left_devices() -> list[int]:
    """Returns the GPUs that this thread goes back to, the next last."""
    return _stack("left")


def check_alive() -> None:
    """Raises the error to which the current GPU is lost."""
    if getDevice() in lost:
        raise CUDARuntimeError(lost[getDevice()])


def check_fault(kernel: str, device: int) -> None:
    """Loses a GPU where EMULATED_FAULT, ``<part of a name>:<error>``, is about the kernel that ran on it."""
    part, _, error = os.environ.get("EMULATED_FAULT", "").partition(":")
    if error and part in kernel:
        lost[device] = int(error)


def check_stream(stream: int) -> None:
    """Raises unless the stream is one of the current GPU, which must not be lost."""
    check_alive()
    if streams[stream] != getDevice():
        raise CUDARuntimeError(400)  # cudaErrorInvalidResourceHandle


def getDeviceProperties(device: int) -> dict[str, Any]:
    return {
        "name": b"fibers", "totalGlobalMem": TOTAL, "major": 8, "minor": 0, "maxThreadsPerBlock": 1024,
        "sharedMemPerBlock": 48 * 1024, "multiProcessorCount": 1,
    }  # fmt: skip


def driverGetVersion() -> int:
    return 12040


def runtimeGetVersion() -> int:
    return 12040


def memGetInfo() -> tuple[int, int]:
    return TOTAL - used[getDevice()], TOTAL


def do(stream: int, work: Callable[[], object]) -> None:
    """Does work at once or when its turn comes, or keeps it for the graph that is being captured on the stream."""
    check_stream(stream)
    if stream in captured:
        captured[stream].append(work)
    elif ASYNCHRONOUS:
        queues[stream].put(work)
    else:
        work()


class EventNumber(int):
    """The number of an event, which is known as long as this. As no garbage collector tracks it, finalizers find it."""

    __slots__ = ()

    def __del__(self) -> None:
        if marks is not None:  # else the interpreter ends
            marks.pop(self, None)


class Mark:
    """The place of an event among the work of a stream."""

    def __init__(self, stream: int) -> None:
        self.recorded = time.perf_counter()
        self._queue = queues[stream] if ASYNCHRONOUS else None
        self._number = self._queue.put(self._reached) if self._queue is not None else 0

    def _reached(self) -> None:
        assert self._queue is not None
        self.recorded = max(self.recorded, self._queue.busy_until)

    def over(self) -> bool:
        return self._queue is None or self._queue.over(self._number)

    def wait(self) -> None:
        if self._queue is not None:
            self._queue.wait(self._number)

    def hold(self, stream: int) -> None:
        """Makes the work of a stream that is enqueued from now on wait until this is reached."""
        queue, number = self._queue, self._number
        if queue is not None:
            do(stream, lambda: queues[stream].wait_for(queue, number))


def synchronize(stream: int | None = None) -> None:
    """Waits for the work of a stream, by default of all."""
    for queue in list(queues.values()) if stream is None else [queues[stream]] if ASYNCHRONOUS else []:
        queue.wait()


def memcpyAsync(dst: int, src: int, size: int, kind: int, stream: int) -> None:
    do(stream, lambda: ctypes.memmove(dst, src, size))


def memcpyPeerAsync(dst: int, dstDevice: int, src: int, srcDevice: int, size: int, stream: int) -> None:
    do(stream, lambda: ctypes.memmove(dst, src, size))


def deviceCanAccessPeer(device: int, peerDevice: int) -> int:
    return 1


def deviceEnablePeerAccess(peerDevice: int) -> None:
    if peerDevice == getDevice():
        raise CUDARuntimeError(101)  # cudaErrorInvalidDevice


def eventQuery(event: int) -> int:
    if getDevice() in lost:
        return lost[getDevice()]
    mark = marks[event]
    return 0 if mark is None or mark.over() else 600  # cudaErrorNotReady
