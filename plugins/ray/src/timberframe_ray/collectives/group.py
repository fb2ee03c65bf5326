"""A group of processes that run the same program, and what they compute together.

Sums are made in the order of the ranks, whatever carries the parts, so that bits are equal from run to run.
"""

from __future__ import annotations

import math
import queue
import threading
import time
import zlib
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from timberframe_ray.collectives.devices import DeviceCollectives, OnDevice
from timberframe_ray.collectives.links import Links, LostError, Waiting, meet
from timberframe_ray.collectives.memory import Memory, share
from timberframe_ray.collectives.sockets import Sockets
from timberframe_ray.collectives.transport import WHOLE, DifferentError, Transport, ordered_sum
from timberframe_sdk import Array, Collective, InvalidArgumentError, OpError, Pending, UnavailableError
from timberframe_sdk.remote.errors import FailedPreconditionError

DEADLINE_SECONDS = 60.0


class Work:
    """A collective that is under way, and a scalar of dtype variant. `changed` is notified when it is over."""

    shape = ()

    def __init__(self, do: Callable[[Waiting], np.ndarray | OnDevice]) -> None:
        self._do = do
        self.changed = threading.Condition()
        self.cancelled: BaseException | None = None
        self.over = False
        self.error: BaseException | None = None
        self.result: np.ndarray | OnDevice | None = None

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

    def wait(self) -> Any:
        """Returns what it gives, or its error."""
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
        self._devices = DeviceCollectives(rank, size, links, transport)
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

    # Collectives: of an array of one dimension, or of arrays of a device, of which the results then may be, too

    def all_reduce(self, x: np.ndarray | OnDevice) -> Work:
        """Returns the sum of all processes' arrays, in each of them; an array of the host is overwritten by it."""
        return self._start("all-reduce", x, self._all_reduce, lambda c, arrays: c.all_reduce(arrays))

    def reduce_scatter(self, x: np.ndarray | OnDevice) -> Work:
        """Returns the sum of all processes' arrays, of which each gets its part of equal length."""
        return self._start("reduce-scatter", x, self._reduce_scatter, lambda c, arrays: c.reduce_scatter(arrays[0]))

    def all_gather(self, x: np.ndarray | OnDevice) -> Work:
        """Returns the arrays of all processes, which are equally long, one after the other."""
        return self._start("all-gather", x, self._all_gather, lambda c, arrays: c.all_gather(arrays[0]))

    def broadcast(self, x: np.ndarray | OnDevice, root: int) -> Work:
        """Returns the array of the process of this rank, in each of them; those of the others only say its length."""
        by_host = partial(self._broadcast, root)
        return self._start(f"broadcast of {root}", x, by_host, lambda c, arrays: c.broadcast(arrays[0], root))

    def _start(
        self,
        what: str,
        x: np.ndarray | OnDevice,
        by_host: Callable[[np.ndarray, int, Waiting], np.ndarray],
        by_device: Callable[[Collective, Sequence[Array]], Pending],
    ) -> Work:
        device = x.device if isinstance(x, OnDevice) else None
        arrays = x.arrays if isinstance(x, OnDevice) else [x]
        dtype, size = np.dtype(arrays[0].dtype), sum(math.prod(a.shape) for a in arrays)
        sign = zlib.crc32(f"{what} {dtype.str} {dtype.name} {size}".encode())

        def do(waiting: Waiting) -> np.ndarray | OnDevice:
            marked = self._devices.marked(sign, device)
            found = self._devices.agreed(device, marked, waiting)
            if found is not None and isinstance(x, OnDevice):
                return self._devices.carry_out(by_device, found, x, waiting)
            result = by_host(x.on_host() if isinstance(x, OnDevice) else x, marked, waiting)
            self._devices.look()
            return result

        work = Work(do)
        self._works.put(work)
        return work

    # The same by the host's memory

    def _all_reduce(self, x: np.ndarray, sign: int, waiting: Waiting) -> np.ndarray:
        self._transport.all_reduce(x, sign, waiting)
        return x

    def _reduce_scatter(self, x: np.ndarray, sign: int, waiting: Waiting) -> np.ndarray:
        rows = x.reshape(self.size, -1)
        result = np.empty(rows.shape[1], x.dtype)
        most = self._transport.piece_bytes // (x.itemsize * self.size)
        for start in range(0, result.size, most):
            piece = rows[:, start : start + most]
            width = piece.shape[1]
            wanted = [slice(r * width, (r + 1) * width) for r in range(self.size)]
            parts = self._transport.exchange(piece.ravel(), [piece.size] * self.size, wanted, sign, waiting)
            result[start : start + width] = ordered_sum(parts)
        return result

    def _all_gather(self, x: np.ndarray, sign: int, waiting: Waiting) -> np.ndarray:
        result = np.empty((self.size, x.size), x.dtype)
        most = self._transport.piece_bytes // x.itemsize
        for start in range(0, x.size, most):
            piece = x[start : start + most]
            found = self._transport.exchange(piece, [piece.size] * self.size, [WHOLE] * self.size, sign, waiting)
            for row, part in zip(result, found, strict=True):
                row[start : start + piece.size] = part
        return result.ravel()

    def _broadcast(self, root: int, x: np.ndarray, sign: int, waiting: Waiting) -> np.ndarray:
        result = x.copy()
        most = self._transport.piece_bytes // x.itemsize
        for start in range(0, x.size, most):
            piece = x[start : start + most]
            lengths = [piece.size if r == root else 0 for r in range(self.size)]
            given = piece if self.rank == root else piece[:0]
            found = self._transport.exchange(given, lengths, [WHOLE] * self.size, sign, waiting)
            result[start : start + piece.size] = found[root]
        return result

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
        self._devices.close()
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
        self._devices.close()
        self._links.close()
        self._transport.close()


def connect(rank: int, size: int, address: str, name: str, seconds: float, memory: bool) -> Group:
    """Returns a group, when all its processes are there; see `join`."""
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
    InvalidArgumentError where rank is not in [0, size), or the address is malformed or absent for several;
    UnavailableError where not all are there in time.
    """
    global _joined
    leave()
    with _lock:
        _joined = connect(rank, size, address, name, seconds, memory)
        return _joined


def group() -> Group:
    """Returns the group that this process has joined; UnavailableError where there is none."""
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
