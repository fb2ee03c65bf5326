"""Exchanges of arrays through memory that all processes of a group share, on one machine."""

from __future__ import annotations

import contextlib
import mmap
import os
import secrets
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from timberframe_ray.collectives.links import Links, LostError, Waiting, pause
from timberframe_ray.collectives.transport import SAME, WHOLE, DifferentError, chunks, ordered_sum

_PIECE_BYTES = 2 << 20
"""As much as a bucket of gradients often has: all processes wait for each other twice for each piece."""
_MOST_BYTES = 48 << 20
"""Of the slots of all processes, so that pieces of many are smaller: containers often have 64 MB for shared memory."""
_LINE = 64
"""Bytes of a line of a cache: counters of different processes share none."""
_SPINS = 200
"""Looks without a pause between them, where each process has a core of its own."""
_LOOK_SECONDS = 0.005


class Memory:
    """Exchanges by copies to slots, one for each process, in two areas that take turns.

    Who has come to an exchange has read all that it wanted of the one before, so that its area may be written again in
    the next one. A process says by its counter that its slot is written.
    """

    def __init__(self, links: Links, rank: int, size: int, shared: mmap.mmap) -> None:
        self._links, self._rank, self._size, self._shared = links, rank, size, shared
        self.piece_bytes = piece_bytes(size)
        self._spins = _SPINS if size <= (os.cpu_count() or 1) else 0
        self._words = memoryview(shared)[: size * _LINE].cast("Q")
        self._number = 0
        self.signs = [0] * size

    def exchange(
        self, given: np.ndarray, lengths: Sequence[int], parts: Sequence[slice], sign: int, waiting: Waiting
    ) -> list[np.ndarray]:
        """See `Transport`."""
        mine, number = self._rank, self._number + 1
        area = self._size * (_LINE + (number % 2) * self.piece_bytes)
        if given.size:
            self._slot(area, mine, given.dtype, given.size)[...] = given
        first = mine * _LINE // 8
        self._words[first + 1 + number % 2] = sign
        self._words[first] = self._number = number
        for rank in range(self._size):
            if self._words[rank * _LINE // 8] < number:
                self._wait(rank, number, waiting)
        for rank in range(self._size):
            self.signs[rank] = self._words[rank * _LINE // 8 + 1 + number % 2]
            if (self.signs[rank] ^ sign) & SAME:
                raise DifferentError(rank)
        return [self._slot(area, r, given.dtype, n)[parts[mine]] for r, n in enumerate(lengths)]

    def all_reduce(self, x: np.ndarray, sign: int, waiting: Waiting) -> None:
        """See `Transport`: each process adds one chunk of each piece up, and copies those of the others."""
        most = self.piece_bytes // x.itemsize
        for start in range(0, x.size, most):
            piece = x[start : start + most]
            mine = chunks(piece.size, self._size)
            parts = self.exchange(piece, [piece.size] * self._size, mine, sign, waiting)
            lengths = [c.stop - c.start for c in mine]
            sums = self.exchange(ordered_sum(parts), lengths, [WHOLE] * self._size, sign, waiting)
            for chunk, found in zip(mine, sums, strict=True):
                piece[chunk] = found

    def _slot(self, area: int, rank: int, dtype: np.dtype, count: int) -> np.ndarray:
        return np.frombuffer(self._shared, dtype, count, area + rank * self.piece_bytes)

    def _wait(self, rank: int, number: int, waiting: Waiting) -> None:
        """Returns when a process has come to an exchange."""
        words, word = self._words, rank * _LINE // 8
        for _ in range(self._spins):
            if words[word] >= number:
                return
            time.sleep(0)
        start = looked = time.monotonic()
        while words[word] < number:
            now = time.monotonic()
            pause(now - start)
            if now - looked < _LOOK_SECONDS:
                continue
            looked = now
            waiting.on(rank)
            try:
                self._links.check(rank)
            except LostError:
                if words[word] < number:  # it may have come, and then ended
                    raise

    def close(self) -> None:
        self._words.release()
        with contextlib.suppress(BufferError):  # a result is still in use: it goes with that
            self._shared.close()


def piece_bytes(size: int) -> int:
    """Returns bytes of a slot."""
    return max(1 << 12, min(_PIECE_BYTES, (_MOST_BYTES // (2 * size)) & -(1 << 12)))


def segment_bytes(size: int) -> int:
    """Returns bytes of the whole segment: counters, and two slots of each process."""
    return size * (_LINE + 2 * piece_bytes(size))


def share(links: Links, rank: int, size: int, end: float, wanted: bool) -> mmap.mmap | None:
    """Returns a segment that all processes of the group have, None where they are on several machines.

    end: the latest time; wanted: whether this process takes one.

    It has no name any more when this returns, so that it goes with the processes, however these end.
    """
    count = segment_bytes(size)
    if rank:
        name = links.hear(0, end)
        found = _opened(name, count) if wanted else None
        links.tell(0, found is not None, end)
        return found if links.hear(0, end) else None
    folder = "/dev/shm" if Path("/dev/shm").is_dir() else tempfile.gettempdir()
    path = Path(folder, f"timberframe-{secrets.token_hex(8)}")
    made = _made(path, count) if wanted else None
    try:
        for other in range(1, size):
            links.tell(other, str(path) if made is not None else "", end)
        answers = [links.hear(other, end) for other in range(1, size)]
        everywhere = all(answers) and made is not None
    finally:
        path.unlink(missing_ok=True)
    for other in range(1, size):
        links.tell(other, everywhere, end)
    return made if everywhere else None


def _made(path: Path, count: int) -> mmap.mmap | None:
    try:
        file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            if hasattr(os, "posix_fallocate"):
                os.posix_fallocate(file, 0, count)  # else a page that there is no room for ends the process
            else:
                os.ftruncate(file, count)
            return mmap.mmap(file, count)
        finally:
            os.close(file)
    except OSError:
        return None


def _opened(name: str, count: int) -> mmap.mmap | None:
    try:
        file = os.open(name, os.O_RDWR)
    except OSError:
        return None
    try:
        return mmap.mmap(file, count)
    except (OSError, ValueError):
        return None
    finally:
        os.close(file)
