"""Page-locked memory of the host, through which copies go: a fixed amount for each device that is used."""

from __future__ import annotations

import threading
from collections import deque
from typing import Any

import cupy
import numpy as np

PIECE_BYTES = 16 << 20
"""Bytes of each of the two pieces through which copies to the GPU go."""
RESULT_BYTES = 32 << 20
"""Bytes for results that are on their way to the host."""
_ALIGNMENT = 64


class Uploads:
    """Two pieces of memory for copies to the GPU of any number and size: one is filled while the other is read."""

    def __init__(self, device: Any) -> None:
        self._device = device
        self._lock = threading.Lock()
        self._pieces: list[np.ndarray | None] = [None, None]
        self._addresses = [0, 0]
        self._read: list[cupy.cuda.Event | None] = [None, None]
        self._filling, self._used = 0, PIECE_BYTES  # as if the first were full

    def write(self, x: np.ndarray, target: int) -> None:
        """Enqueues the copy of an array to an address on the GPU; returns when `x` has been read."""
        host = np.ascontiguousarray(x).reshape(-1).view(np.uint8)
        with self._lock:
            for start in range(0, host.size, PIECE_BYTES):
                part = host[start : start + PIECE_BYTES]
                place, address = self._place(part.size)
                place[:] = part
                self._device.move(target + start, address, part.size, cupy.cuda.runtime.memcpyHostToDevice)

    def _place(self, nbytes: int) -> tuple[np.ndarray, int]:
        """Memory that no copy reads any more, and its address."""
        if self._used + nbytes > PIECE_BYTES:
            self._change_pieces()
        piece = self._pieces[self._filling]
        assert piece is not None
        begin, self._used = self._used, _rounded(self._used + nbytes)
        return piece[begin : begin + nbytes], self._addresses[self._filling] + begin

    def _change_pieces(self) -> None:
        """Goes on to the other piece, when the copies that were made from it have been done."""
        other = 1 - self._filling
        if self._pieces[self._filling] is not None:
            self._read[self._filling] = self._device.event()
        event = self._read[other]
        with self._device.calling():
            if self._pieces[other] is None:
                piece = self._pieces[other] = _page_locked(PIECE_BYTES)
                self._addresses[other] = piece.ctypes.data
            elif event is not None:
                event.synchronize()
        self._filling, self._used = other, 0


class Place:
    """A part of the memory for results. free: nobody reads it any more; what the GPU still writes there comes before
    whatever it is given next, as all copies are on one stream."""

    def __init__(self, start: int, end: int, memory: np.ndarray) -> None:
        self.start, self.end, self.memory, self.free = start, end, memory, False


class Results:
    """Memory that the GPU writes results to, so that nobody waits for a copy before its result is asked for.

    Places are given in order, round and round, and may be given back in any order.
    """

    def __init__(self, device: Any) -> None:
        self._device = device
        self._lock = threading.Lock()
        self._memory: np.ndarray | None = None
        self._taken: deque[Place] = deque()

    def take(self, nbytes: int) -> Place | None:
        """Returns a place for a result; None where too many are on their way."""
        nbytes = _rounded(max(nbytes, 1))
        with self._lock:
            while self._taken and self._taken[0].free:
                self._taken.popleft()
            start = self._room(nbytes)
            if start is None:
                return None
            if self._memory is None:
                with self._device.calling():
                    self._memory = _page_locked(RESULT_BYTES)
            place = Place(start, start + nbytes, self._memory[start : start + nbytes])
            self._taken.append(place)
            return place

    def _room(self, nbytes: int) -> int | None:
        """Returns where as many bytes are free."""
        if not self._taken:
            return 0 if nbytes <= RESULT_BYTES else None
        first, last = self._taken[0], self._taken[-1]
        if last.start < first.start:  # they go on at the beginning
            return last.end if last.end + nbytes <= first.start else None
        if last.end + nbytes <= RESULT_BYTES:
            return last.end
        return 0 if nbytes <= first.start else None


def _rounded(nbytes: int) -> int:
    return -(-nbytes // _ALIGNMENT) * _ALIGNMENT


def _page_locked(nbytes: int) -> np.ndarray:
    return np.frombuffer(_pool.malloc(nbytes), np.uint8, nbytes)


_pool = cupy.cuda.PinnedMemoryPool()
