"""A group of processes that run the same program, and what they compute together.

Sums are made in the order of the ranks, whatever carries the parts, so that bits are equal from run to run.
"""

from __future__ import annotations

import itertools
import queue
import threading
import time
import zlib
from collections.abc import Callable, Sequence
from typing import Protocol

import numpy as np

from timberframe_ray.collectives.links import Links, LostError, Waiting, meet
from timberframe_ray.collectives.memory import DifferentError, Memory, share
from timberframe_ray.collectives.sockets import Sockets
from timberframe_sdk import InvalidArgumentError, OpError, UnavailableError
from timberframe_sdk.remote.errors import FailedPreconditionError

DEADLINE_SECONDS = 60.0

_WHOLE = slice(None)


class Transport(Protocol):
    """What carries arrays between the processes of a group. piece_bytes: the most that one exchange takes."""

    piece_bytes: int

    def exchange(
        self, given: np.ndarray, lengths: Sequence[int], parts: Sequence[slice], sign: int, waiting: Waiting
    ) -> list[np.ndarray]:
        """What this process wants of each one's array, by rank; valid until the next exchange.

        given: this one's array, of one dimension; lengths: of all of them; parts: which part of each array each process
        wants. sign: equal in all processes, where they do the same.
        """

    def close(self) -> None: ...


class Work:
    """A collective that is under way, and a scalar of dtype variant. `changed` is notified when it is over."""

    shape = ()

    def __init__(self, do: Callable[[Waiting], np.ndarray]) -> None:
        self._do = do
        self.changed = threading.Condition()
        self.cancelled: BaseException | None = None
        self.over = False
        self.error: BaseException | None = None
        self.result: np.ndarray | None = None

    def run(self, seconds: float) -> None:
        """Does it; its error is kept."""
        try:
            self.result = self._do(Waiting(seconds, self._check))
        except BaseException as e:
            self.error = e

    def end(self) -> None:
        """Wakes who waits for it."""
        with self.changed:
            self.over = True
            self.changed.notify_all()

    def wait(self) -> np.ndarray:
        """What it gives, or its error."""
        with self.changed:
            self.changed.wait_for(lambda: self.over)
        if self.error is not None:
            raise self.error
        assert self.result is not None
        return self.result

    def _check(self) -> None:
        if self.cancelled is not None:
            raise self.cancelled


class Group:
    """The processes of a group, of which this is number `rank` of `size`. Made by `join`.

    Its collectives run one after the other in a thread of its own, in the order in which they were started; all
    processes must start the same ones in the same order. An error ends the group in all of them.
    """

    def __init__(self, name: str, rank: int, size: int, links: Links, transport: Transport, seconds: float) -> None:
        self.name, self.rank, self.size = name, rank, size
        self._links, self._transport, self._seconds = links, transport, seconds
        self._works: queue.SimpleQueue[Work | None] = queue.SimpleQueue()
        self._failure: BaseException | None = None
        self._thread = threading.Thread(target=self._serve, name=f"group {name}", daemon=True)
        self._thread.start()

    @property
    def transport(self) -> str:
        """What carries the arrays: "memory" or "sockets"."""
        return type(self._transport).__name__.lower()

    @property
    def failed(self) -> bool:
        """Whether an error has ended it."""
        return self._failure is not None

    # Collectives: of arrays of one dimension

    def all_reduce(self, x: np.ndarray) -> Work:
        """The sum of all processes' arrays, in each of them; x is overwritten by it."""

        def do(waiting: Waiting) -> np.ndarray:
            most = self._transport.piece_bytes // x.itemsize
            for start in range(0, x.size, most):
                piece = x[start : start + most]
                chunks = _chunks(piece.size, self.size)
                parts = self._transport.exchange(piece, [piece.size] * self.size, chunks, sign, waiting)
                lengths = [c.stop - c.start for c in chunks]
                sums = self._transport.exchange(_sum(parts), lengths, [_WHOLE] * self.size, sign, waiting)
                for chunk, found in zip(chunks, sums, strict=True):
                    piece[chunk] = found
            return x

        sign = self._sign("all-reduce", x)
        return self._start(do)

    def reduce_scatter(self, x: np.ndarray) -> Work:
        """The sum of all processes' arrays, of which each gets its part of equal length."""

        def do(waiting: Waiting) -> np.ndarray:
            rows = x.reshape(self.size, -1)
            result = np.empty(rows.shape[1], x.dtype)
            most = self._transport.piece_bytes // (x.itemsize * self.size)
            for start in range(0, result.size, most):
                piece = rows[:, start : start + most]
                width = piece.shape[1]
                wanted = [slice(r * width, (r + 1) * width) for r in range(self.size)]
                parts = self._transport.exchange(piece.ravel(), [piece.size] * self.size, wanted, sign, waiting)
                result[start : start + width] = _sum(parts)
            return result

        sign = self._sign("reduce-scatter", x)
        return self._start(do)

    def all_gather(self, x: np.ndarray) -> Work:
        """The arrays of all processes, which are equally long, one after the other."""

        def do(waiting: Waiting) -> np.ndarray:
            result = np.empty((self.size, x.size), x.dtype)
            most = self._transport.piece_bytes // x.itemsize
            for start in range(0, x.size, most):
                piece = x[start : start + most]
                found = self._transport.exchange(piece, [piece.size] * self.size, [_WHOLE] * self.size, sign, waiting)
                for row, part in zip(result, found, strict=True):
                    row[start : start + piece.size] = part
            return result.ravel()

        sign = self._sign("all-gather", x)
        return self._start(do)

    def broadcast(self, x: np.ndarray, root: int) -> Work:
        """The array of the process of this rank, in each of them; those of the others only say its length."""

        def do(waiting: Waiting) -> np.ndarray:
            result = x.copy()
            most = self._transport.piece_bytes // x.itemsize
            for start in range(0, x.size, most):
                piece = x[start : start + most]
                lengths = [piece.size if r == root else 0 for r in range(self.size)]
                given = piece if self.rank == root else piece[:0]
                found = self._transport.exchange(given, lengths, [_WHOLE] * self.size, sign, waiting)
                result[start : start + piece.size] = found[root]
            return result

        sign = self._sign(f"broadcast of {root}", x)
        return self._start(do)

    def _sign(self, what: str, x: np.ndarray) -> int:
        return zlib.crc32(f"{what} {x.dtype.str} {x.dtype.name} {x.size}".encode())

    def _start(self, do: Callable[[Waiting], np.ndarray]) -> Work:
        work = Work(do)
        self._works.put(work)
        return work

    def _serve(self) -> None:
        """Does the works; after an error, or when the group is left, only ends them."""
        while (work := self._works.get()) is not None:
            if self._failure is not None:
                work.error = self._ended()
            else:
                work.run(self._seconds)
                if work.error is not None:
                    self._fail(work)
            work.end()

    def _fail(self, work: Work) -> None:
        found = work.error
        if isinstance(found, LostError):
            self._links.report(found.rank)
            work.error = UnavailableError(
                f"{found} (of the {self.size} of group '{self.name}'); all must be there: join another group"
            )
        elif isinstance(found, DifferentError):
            work.error = InvalidArgumentError(
                f"rank {found.rank} of group '{self.name}' is in another collective, or gives another dtype or size; "
                "all must run the same ones in the same order"
            )
        self._failure = work.error
        self._links.close()

    def _ended(self) -> OpError:
        # Not UnavailableError again: a MonitoredSession would try it again and again
        return FailedPreconditionError(f"group '{self.name}' has ended ({self._failure}); join another one")

    def leave(self) -> None:
        """Ends this process's part in the group, after the works that were started."""
        self._works.put(None)
        if threading.current_thread() is not self._thread:
            self._thread.join()
        self._failure = self._failure or UnavailableError("this process has left it")
        self._links.close()
        self._transport.close()


def _chunks(count: int, size: int) -> list[slice]:
    """An array of so many elements in one part for each process."""
    ends = [count * i // size for i in range(size + 1)]
    return [slice(a, b) for a, b in itertools.pairwise(ends)]


def _sum(parts: Sequence[np.ndarray]) -> np.ndarray:
    """The sum, from the first to the last; of two-byte floats in single precision, rounded once."""
    dtype = parts[0].dtype
    narrow = dtype.itemsize == 2 and dtype.kind not in "iu"
    total = parts[0].astype(np.float32 if narrow else dtype)
    for part in parts[1:]:
        total += part.astype(total.dtype, copy=False)
    return total.astype(dtype, copy=False)


def connect(rank: int, size: int, address: str, name: str, seconds: float, memory: bool) -> Group:
    """A group, when all its processes are there; see `join`."""
    if not 0 <= rank < size:
        raise InvalidArgumentError(f"group '{name}': rank {rank} of {size} given; it must lie in [0, {size})")
    end = time.monotonic() + seconds
    links = meet(rank, size, address, name, seconds) if size > 1 else Links({})
    try:
        shared = share(links, rank, size, end, memory)
    except OSError as e:
        links.close()
        raise UnavailableError(f"group '{name}': a process was lost while it was made ({e}); join again") from None
    transport: Transport = Sockets(links, rank, size) if shared is None else Memory(links, rank, size, shared)
    return Group(name, rank, size, links, transport, seconds)


_joined: Group | None = None
_lock = threading.Lock()


def join(
    rank: int, size: int, address: str = "", name: str = "group", seconds: float = DEADLINE_SECONDS, memory: bool = True
) -> Group:
    """Makes this process number `rank` of a group of `size`; returns when all are there.

    address: ``host:port`` where rank 0 listens; a group of one needs none. name: who joins another one there is
    refused. seconds: how long to wait for the others, here and in each collective. memory: arrays go through shared
    memory where all are on one machine. A process is in one group at a time: it leaves the one before.
    """
    global _joined
    leave()
    with _lock:
        _joined = connect(rank, size, address, name, seconds, memory)
        return _joined


def group() -> Group:
    """The group that this process has joined; UnavailableError where there is none."""
    if _joined is None:
        raise UnavailableError("this process is in no group; timberframe_ray.join makes it part of one")
    return _joined


def leave() -> None:
    """Ends this process's part in its group, if it is in one."""
    global _joined
    with _lock:
        if _joined is not None:
            _joined.leave()
            _joined = None
