"""Connections between all processes of a group: how they find each other, and how one is known to have ended."""

from __future__ import annotations

import contextlib
import hmac
import json
import select
import socket
import struct
import time
from collections.abc import Callable, Iterator
from typing import Any

from timberframe_sdk import InvalidArgumentError, UnavailableError

FRAME = struct.Struct("<QQQ")
"""In front of what a process sends: the number of the exchange, what is done in it, and bytes that follow."""
_LOST = (1 << 64) - 1
"""In place of an exchange's number: the sender gives up, since the process whose rank follows was lost."""
_RETRY_SECONDS = 0.02
_DEAD_MILLISECONDS = 2000
"""What was sent to a machine that does not confirm it for so long is taken as lost."""


class LostError(Exception):
    """A process of the group has ended, has left, or does not take part in time. rank: of which one."""

    def __init__(self, rank: int, why: str) -> None:
        super().__init__(f"rank {rank} {why}")
        self.rank = rank


_SHORTEST_PAUSE_SECONDS, _LONGEST_PAUSE_SECONDS = 20e-6, 500e-6


def pause(waited: float) -> None:
    """Sleeps before one looks again for what has been waited for so many seconds: a quarter of these.

    Each look takes a core from processes that have work to do on it, so there are fewer of them the longer it takes.
    """
    time.sleep(min(max(waited / 4, _SHORTEST_PAUSE_SECONDS), _LONGEST_PAUSE_SECONDS))


class Waiting:
    """How long one exchange may take. seconds: from now; check: raises what ends it earlier."""

    def __init__(self, seconds: float, check: Callable[[], None]) -> None:
        self._seconds, self._end, self.check = seconds, time.monotonic() + seconds, check

    def on(self, rank: int | None) -> None:
        """Called again and again while a process is waited for; None: while a device is."""
        self.check()
        if time.monotonic() > self._end:
            if rank is None:
                raise UnavailableError(f"the device has not carried it out in {self._seconds:g} s; all must take part")
            raise LostError(rank, f"has not taken part for {self._seconds:g} s")


class Links:
    """A connection to each other process of a group, by its rank."""

    def __init__(self, sockets: dict[int, socket.socket]) -> None:
        self.sockets = sockets
        for one in sockets.values():
            one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            one.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            for name, value in (("TCP_KEEPIDLE", 1), ("TCP_KEEPINTVL", 1), ("TCP_KEEPCNT", 2)):
                if hasattr(socket, name):  # a machine that is gone closes nothing
                    one.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
            if hasattr(socket, "TCP_USER_TIMEOUT"):
                one.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, _DEAD_MILLISECONDS)

    def check(self, rank: int) -> None:
        """Raises LostError where a process has ended, or has said that another one has; takes nothing off the link."""
        one = self.sockets[rank]
        readable, _, _ = select.select([one], [], [], 0)
        if readable:
            try:
                found = one.recv(FRAME.size, socket.MSG_PEEK)
            except ConnectionError:
                found = b""
            if not found:
                self.refuse(rank, found)
            if len(found) == FRAME.size:
                self.refuse_report(rank, found)

    def refuse(self, rank: int, received: bytes) -> None:
        """Raises LostError by what came where no frame of an exchange did."""
        if len(received) == FRAME.size:
            number, lost, _ = FRAME.unpack(received)
            if number == _LOST:
                raise LostError(lost, f"was lost, as rank {rank} reports")
        raise LostError(rank, "has ended or left the group")

    def refuse_report(self, rank: int, frame: bytes) -> None:
        """Raises LostError where a frame is the report of a lost process."""
        if FRAME.unpack(frame)[0] == _LOST:
            self.refuse(rank, frame)

    def report(self, lost: int) -> None:
        """Tells all others which process was lost."""
        for rank, one in self.sockets.items():
            if rank != lost:
                with contextlib.suppress(OSError):
                    one.settimeout(0)
                    one.send(FRAME.pack(_LOST, lost, 0))

    def close(self) -> None:
        for one in self.sockets.values():
            one.close()

    # While a group is made

    def tell(self, rank: int, message: Any, end: float) -> None:
        _send(self.sockets[rank], message, end)

    def hear(self, rank: int, end: float) -> Any:
        return _receive(self.sockets[rank], end)


def meet(rank: int, size: int, address: str, name: str, seconds: float) -> Links:
    """Connects the processes of a group. address: ``host:port`` where rank 0 listens, and the others look for it.

    name: of the group; who names another is refused. UnavailableError where not all are there in time.
    """
    host, _, port = address.rpartition(":")
    if not host or not port.isdigit():
        raise InvalidArgumentError(f"group '{name}': address {address!r} given; <host>:<port> is required")
    end, sockets = time.monotonic() + seconds, dict[int, socket.socket]()
    try:
        if rank == 0:
            _gather(sockets, size, (host, int(port)), name, end)
        else:
            _find(sockets, rank, size, (host, int(port)), name, end)
    except (OSError, LostError) as e:
        for one in sockets.values():
            one.close()
        missing = sorted(set(range(size)) - set(sockets) - {rank})
        raise UnavailableError(
            f"group '{name}': rank {rank} has not met ranks {missing} at {address} in {seconds:g} s ({e}); "
            f"all {size} processes must join at the same time"
        ) from None
    return Links(sockets)


def _gather(sockets: dict[int, socket.socket], size: int, address: tuple[str, int], name: str, end: float) -> None:
    """Rank 0: takes the others in, and tells each where all listen."""
    places: dict[int, tuple[str, int]] = {}
    try:
        listening = socket.create_server(address, backlog=size, reuse_port=False)
    except OSError as e:
        raise UnavailableError(
            f"group '{name}': rank 0 cannot listen at {address[0]}:{address[1]} ({e}); an address of its machine is "
            "required at which nothing listens, no other rank 0 either"
        ) from None
    with listening:
        for rank, hello, found in _arrivals(listening, sockets, size - 1, name, end):
            places[rank] = found.getpeername()[0], hello["port"]
    for found in sockets.values():
        _send(found, places, end)


def _find(
    sockets: dict[int, socket.socket], rank: int, size: int, address: tuple[str, int], name: str, end: float
) -> None:
    """Finds the others: connects to all lower ranks, then takes the higher ones in."""
    with socket.create_server(("", 0), backlog=size) as listening:
        hello = {"group": name, "rank": rank, "port": listening.getsockname()[1]}
        sockets[0] = _connected(address, hello, end)
        places = {int(k): tuple(v) for k, v in _receive(sockets[0], end).items()}
        for lower in range(1, rank):
            sockets[lower] = _connected(places[lower], hello, end)
        for _ in _arrivals(listening, sockets, size - 1 - rank, name, end):
            pass


def _arrivals(
    listening: socket.socket, sockets: dict[int, socket.socket], count: int, name: str, end: float
) -> Iterator[tuple[int, Any, socket.socket]]:
    """Takes so many processes of the group in; others are turned away."""
    while count:
        listening.settimeout(_left(end))
        found, _ = listening.accept()
        try:
            hello = _receive(found, min(end, time.monotonic() + 2))
            ours = hmac.compare_digest(str(hello["group"]), name) and hello["rank"] not in sockets
        except (OSError, LostError, ValueError, KeyError, TypeError):
            ours = False
        if not ours:
            found.close()
            continue
        sockets[hello["rank"]] = found
        count -= 1
        yield hello["rank"], hello, found


def _connected(address: tuple[str, int], hello: Any, end: float) -> socket.socket:
    while True:
        try:
            found = socket.create_connection(address, timeout=_left(end))
            _send(found, hello, end)
            return found
        except ConnectionError:
            if time.monotonic() > end:
                raise
            time.sleep(_RETRY_SECONDS)


def _left(end: float) -> float:
    left = end - time.monotonic()
    if left <= 0:
        raise TimeoutError("the time is over")
    return left


def _send(to: socket.socket, message: Any, end: float) -> None:
    data = json.dumps(message).encode()
    to.settimeout(_left(end))
    to.sendall(len(data).to_bytes(4, "little") + data)


def _receive(source: socket.socket, end: float) -> Any:
    return json.loads(_exactly(source, int.from_bytes(_exactly(source, 4, end), "little"), end))


def _exactly(source: socket.socket, count: int, end: float) -> bytes:
    data = b""
    while len(data) < count:
        source.settimeout(_left(end))
        more = source.recv(min(count - len(data), 1 << 16))
        if not more:
            raise ConnectionResetError("the connection was closed")
        data += more
    return data
