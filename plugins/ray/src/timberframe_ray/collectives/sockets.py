"""Exchanges of arrays through sockets, between machines."""

from __future__ import annotations

import selectors
from collections.abc import Sequence

import numpy as np

from timberframe_ray.collectives.links import FRAME, Links, Waiting
from timberframe_ray.collectives.memory import DifferentError

_LOOK_SECONDS = 0.05


class Sockets:
    """Exchanges in which each process sends to each other one what that wants of its array, and no more."""

    piece_bytes = 4 << 20

    def __init__(self, links: Links, rank: int, size: int) -> None:
        self._links, self._rank, self._size = links, rank, size
        self._number = 0
        for one in links.sockets.values():
            one.setblocking(False)

    def exchange(
        self, given: np.ndarray, lengths: Sequence[int], parts: Sequence[slice], sign: int, waiting: Waiting
    ) -> list[np.ndarray]:
        """See `Transport`."""
        self._number += 1
        found = [given[parts[self._rank]]] * self._size
        out: dict[int, list[memoryview]] = {}
        into: dict[int, list[memoryview]] = {}
        frames: dict[int, bytearray] = {}
        for rank in self._links.sockets:
            part = np.ascontiguousarray(given[parts[rank]])
            frame = FRAME.pack(self._number, sign, part.nbytes)
            out[rank] = [memoryview(frame), *_bytes(part)]
            count = len(range(*parts[self._rank].indices(lengths[rank])))
            found[rank] = np.empty(count, given.dtype)
            frames[rank] = bytearray(FRAME.size)
            into[rank] = [memoryview(frames[rank]), *_bytes(found[rank])]
        self._transfer(out, into, frames, (self._number, sign), waiting)
        return found

    def _transfer(
        self,
        out: dict[int, list[memoryview]],
        into: dict[int, list[memoryview]],
        frames: dict[int, bytearray],
        expected: tuple[int, int],
        waiting: Waiting,
    ) -> None:
        with selectors.DefaultSelector() as selector:
            for rank, one in self._links.sockets.items():
                selector.register(one, selectors.EVENT_READ | selectors.EVENT_WRITE, rank)
            while into or out:
                ready = selector.select(_LOOK_SECONDS)
                waiting.on(next(iter(into or out)))
                for key, events in ready:
                    rank = key.data
                    if events & selectors.EVENT_READ and rank in into:
                        self._read(rank, into, frames[rank], expected)
                    if events & selectors.EVENT_WRITE and rank in out:
                        self._write(rank, out)
                    left = (rank in into) * selectors.EVENT_READ | (rank in out) * selectors.EVENT_WRITE
                    if not left:
                        selector.unregister(key.fileobj)
                    elif left != key.events:
                        selector.modify(key.fileobj, left, rank)

    def _read(self, rank: int, into: dict[int, list[memoryview]], frame: bytearray, expected: tuple[int, int]) -> None:
        parts = into[rank]
        try:
            count = self._links.sockets[rank].recv_into(parts[0])
        except BlockingIOError:
            return
        except ConnectionError:
            count = 0
        if not count:
            self._links.refuse(rank, b"")
        parts[0] = parts[0][count:]
        if parts[0]:
            return
        if parts.pop(0).obj is frame:
            self._links.refuse_report(rank, bytes(frame))
            number, sign, nbytes = FRAME.unpack(frame)
            if (number, sign) != expected or nbytes != sum(len(p) for p in parts):
                raise DifferentError(rank)
        if not parts:
            del into[rank]

    def _write(self, rank: int, out: dict[int, list[memoryview]]) -> None:
        parts = out[rank]
        try:
            count = self._links.sockets[rank].send(parts[0])
        except BlockingIOError:
            return
        except ConnectionError:
            self._links.refuse(rank, b"")
        parts[0] = parts[0][count:]
        if not parts[0]:
            parts.pop(0)
        if not parts:
            del out[rank]

    def close(self) -> None:
        pass


def _bytes(array: np.ndarray) -> list[memoryview]:
    """The array's memory, where it has any."""
    return [array.view(np.uint8).data] if array.size else []
