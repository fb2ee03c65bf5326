"""Exchanges and sums of arrays through sockets, between machines."""

from __future__ import annotations

import selectors
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from timberframe_ray.collectives.links import FRAME, Links, Waiting
from timberframe_ray.collectives.transport import SAME, DifferentError, chunks, ordered_sum

_LOOK_SECONDS = 0.05
_BUFFER_BYTES = 64 << 20
"""For what is received and not added up yet, of two pieces: smaller pieces cost more calls than they save in caches."""


def _always() -> bool:
    return True


def _nothing() -> None: ...


@dataclass(slots=True)
class _Part:
    """Memory that is sent or filled. ready: whether it may be; done: called when it is."""

    memory: memoryview
    ready: Callable[[], bool] = _always
    done: Callable[[], None] = _nothing


_Parts = dict[int, deque[_Part]]
"""By rank, in their order."""


class _Sum:
    """A sum that is made piece by piece in place of x. buffers: two for each process, which pieces take in turn."""

    def __init__(self, x: np.ndarray, rank: int, size: int, buffers: np.ndarray) -> None:
        width = buffers.shape[2] * size
        self._pieces = [x[start : start + width] for start in range(0, x.size, max(width, 1))]
        self._chunks = [chunks(piece.size, size) for piece in self._pieces]
        self._missing = [size - 1] * len(self._pieces)
        self._rank, self._size, self._buffers = rank, size, buffers

    @property
    def count(self) -> int:
        """Of the pieces."""
        return len(self._pieces)

    def chunk(self, i: int, rank: int) -> np.ndarray:
        """Returns what the process of this rank adds up of a piece."""
        return self._pieces[i][self._chunks[i][rank]]

    def received(self, i: int, rank: int) -> np.ndarray:
        """Returns where a process's part of this one's chunk goes."""
        found: np.ndarray = self._buffers[i % 2, rank, : self.chunk(i, self._rank).size]
        return found

    def is_free(self, i: int) -> bool:
        """Returns whether the buffers of a piece are not in use by the one before it that has them."""
        return i < 2 or self.is_there(i - 2)

    def is_there(self, i: int) -> bool:
        """Returns whether the sum of this process's chunk is."""
        return not self._missing[i]

    def add(self, i: int) -> None:
        """Notes that a part was received, and adds all up when it was the last."""
        self._missing[i] -= 1
        if self.is_there(i):
            mine = self.chunk(i, self._rank)
            parts = [mine if r == self._rank else self.received(i, r) for r in range(self._size)]
            ordered_sum(parts, out=mine)


class Sockets:
    """Each process sends to each other one what that wants of its array, and no more."""

    piece_bytes = 4 << 20

    def __init__(self, links: Links, rank: int, size: int) -> None:
        self._links, self._rank, self._size = links, rank, size
        self._number = 0
        self._buffers = np.empty(0, np.uint8)
        self.signs = [0] * size
        for one in links.sockets.values():
            one.setblocking(False)

    def exchange(
        self, given: np.ndarray, lengths: Sequence[int], parts: Sequence[slice], sign: int, waiting: Waiting
    ) -> list[np.ndarray]:
        """See `Transport`."""
        found = [given[parts[self._rank]]] * self._size
        sent, filled = {}, {}
        for rank in self._links.sockets:
            sent[rank] = np.ascontiguousarray(given[parts[rank]])
            found[rank] = filled[rank] = np.empty(len(range(*parts[self._rank].indices(lengths[rank]))), given.dtype)
        out, into = self._begin(sign, sent, filled)
        for rank in self._links.sockets:
            out[rank].append(_Part(_bytes(sent[rank])))
            into[rank].append(_Part(_bytes(filled[rank])))
        self._transfer(out, into, waiting)
        return found

    def all_reduce(self, x: np.ndarray, sign: int, waiting: Waiting) -> None:
        """See `Transport`.

        Of each piece of x every process gets one chunk of all others, adds them up, and sends the sum to all. The
        chunks of the next piece are sent before the sums of a piece, so that nobody waits while others add.
        """
        most = min(_BUFFER_BYTES // (2 * self._size * x.itemsize), -(-x.size // self._size))
        total = _Sum(x, self._rank, self._size, self._buffers_of(most, x.dtype))
        out, into = self._begin(sign, *[dict.fromkeys(self._links.sockets, x)] * 2)
        for rank in self._links.sockets:
            for i in range(total.count + 1):
                if i < total.count:
                    out[rank].append(_Part(_bytes(total.chunk(i, rank))))
                    received = _bytes(total.received(i, rank))
                    into[rank].append(_Part(received, partial(total.is_free, i), partial(total.add, i)))
                if i:
                    out[rank].append(_Part(_bytes(total.chunk(i - 1, self._rank)), partial(total.is_there, i - 1)))
                    into[rank].append(_Part(_bytes(total.chunk(i - 1, rank))))
        self._transfer(out, into, waiting)

    def _buffers_of(self, count: int, dtype: np.dtype) -> np.ndarray:
        """Returns two arrays of so many elements for each process."""
        nbytes = 2 * self._size * count * dtype.itemsize
        if self._buffers.nbytes < nbytes:
            self._buffers = np.empty(nbytes, np.uint8)
        return self._buffers[:nbytes].view(dtype).reshape(2, self._size, count)

    def _begin(self, sign: int, sent: dict[int, np.ndarray], filled: dict[int, np.ndarray]) -> tuple[_Parts, _Parts]:
        """Returns the frames with which a call begins."""
        self._number += 1
        self.signs[self._rank] = sign
        out: _Parts = {}
        into: _Parts = {}
        for rank in self._links.sockets:
            frame = bytearray(FRAME.size)
            given = FRAME.pack(self._number, sign, sent[rank].nbytes)
            out[rank] = deque([_Part(memoryview(given))])
            check = partial(self._check, rank, frame, sign, filled[rank].nbytes)
            into[rank] = deque([_Part(memoryview(frame), done=check)])
        return out, into

    def _check(self, rank: int, frame: bytearray, sign: int, expected: int) -> None:
        self._links.refuse_report(rank, bytes(frame))
        number, self.signs[rank], nbytes = FRAME.unpack(frame)
        if (number, self.signs[rank] & SAME, nbytes) != (self._number, sign & SAME, expected):
            raise DifferentError(rank)

    def _transfer(self, out: _Parts, into: _Parts, waiting: Waiting) -> None:
        """Sends and fills all parts."""
        with selectors.DefaultSelector() as selector:
            wanted = dict.fromkeys(self._links.sockets, 0)
            while missing := [r for r in wanted if into[r] or out[r]]:
                for rank, one in self._links.sockets.items():
                    events = _is_ready(into[rank]) * selectors.EVENT_READ | _is_ready(out[rank]) * selectors.EVENT_WRITE
                    if events != wanted[rank]:
                        if wanted[rank]:
                            selector.unregister(one)
                        if events:
                            selector.register(one, events, rank)
                        wanted[rank] = events
                ready = selector.select(_LOOK_SECONDS)
                waiting.on(next((r for r in missing if into[r]), missing[0]))
                for key, events in ready:
                    if events & selectors.EVENT_READ:
                        self._read(key.data, into[key.data])
                    if events & selectors.EVENT_WRITE:
                        self._write(key.data, out[key.data])

    def _read(self, rank: int, parts: deque[_Part]) -> None:
        while _is_ready(parts):
            part = parts[0]
            count = 0
            if part.memory:
                try:
                    count = self._links.sockets[rank].recv_into(part.memory)
                except BlockingIOError:
                    return
                except ConnectionError:
                    count = 0
                if not count:
                    self._links.refuse(rank, b"")
                part.memory = part.memory[count:]
            if part.memory:
                return
            parts.popleft()
            part.done()

    def _write(self, rank: int, parts: deque[_Part]) -> None:
        while _is_ready(parts):
            part = parts[0]
            if part.memory:
                try:
                    count = self._links.sockets[rank].send(part.memory)
                except BlockingIOError:
                    return
                except ConnectionError:
                    self._links.refuse(rank, b"")
                part.memory = part.memory[count:]
            if part.memory:
                return
            parts.popleft()
            part.done()

    def close(self) -> None:
        pass


def _is_ready(parts: deque[_Part]) -> bool:
    return bool(parts) and parts[0].ready()


def _bytes(array: np.ndarray) -> memoryview:
    """Returns the array's memory."""
    return array.view(np.uint8).data if array.size else memoryview(b"")
