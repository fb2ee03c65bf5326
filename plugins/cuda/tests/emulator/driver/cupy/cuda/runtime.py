"""CUDA's runtime: the current GPU of each thread, and copies."""

from __future__ import annotations

import ctypes
import itertools
import os
import threading
from collections.abc import Callable
from typing import Any

memcpyHostToDevice, memcpyDeviceToHost, memcpyDeviceToDevice = 1, 2, 3
TOTAL = 4 << 30
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
    """The streams that this thread made current, the latest last."""
    return _stack("streams")


def left_devices() -> list[int]:
    """The GPUs that this thread goes back to, the next last."""
    return _stack("left")


def check_alive() -> None:
    """Raises the error to which the current GPU is lost."""
    if getDevice() in lost:
        raise CUDARuntimeError(lost[getDevice()])


def launched(kernel: str) -> None:
    """Loses the current GPU where EMULATED_FAULT, ``<part of a name>:<error>``, is about the kernel."""
    part, _, error = os.environ.get("EMULATED_FAULT", "").partition(":")
    if error and part in kernel:
        lost[getDevice()] = int(error)


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
    """Does work at once, or keeps it for the graph that is being captured on the stream."""
    check_stream(stream)
    if stream in captured:
        captured[stream].append(work)
    else:
        work()


def memcpyAsync(dst: int, src: int, size: int, kind: int, stream: int) -> None:
    do(stream, lambda: ctypes.memmove(dst, src, size))


def memcpyPeerAsync(dst: int, dst_device: int, src: int, src_device: int, size: int, stream: int) -> None:
    check_stream(stream)
    ctypes.memmove(dst, src, size)


def memsetAsync(ptr: int, value: int, size: int, stream: int) -> None:
    do(stream, lambda: ctypes.memset(ptr, value, size))


def deviceCanAccessPeer(device: int, peer: int) -> int:
    return 1


def deviceEnablePeerAccess(peer: int) -> None:
    if peer == getDevice():
        raise CUDARuntimeError(101)  # cudaErrorInvalidDevice


def eventQuery(event: int) -> int:
    return lost.get(getDevice(), 0)
