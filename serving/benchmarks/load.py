"""Load on a server, from one event loop: closed (each client asks again when it has its answer) or open (at a rate)."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

import grpc
import numpy as np

Ask = Callable[[], Awaitable[str]]
"""Asks once, and returns the status of the answer: "200" or "OK" of a good one."""
GOOD = ("200", "OK")


@dataclass
class Result:
    """The answers to a load: seconds of each answer by status, and of the whole."""

    seconds: float = 0.0
    times: dict[str, list[float]] = field(default_factory=dict)

    def add(self, status: str, seconds: float) -> None:
        """Adds an answer."""
        self.times.setdefault(status, []).append(seconds)

    @property
    def good(self) -> list[float]:
        """The times of good answers."""
        return [t for status in GOOD for t in self.times.get(status, [])]

    @property
    def refused(self) -> list[float]:
        """The times of the others."""
        return [t for status, times in self.times.items() if status not in GOOD for t in times]

    @property
    def rate(self) -> float:
        """Good answers a second."""
        return len(self.good) / self.seconds

    def __str__(self) -> str:
        counts = dict(Counter({status: len(times) for status, times in self.times.items()}))
        return f"{self.rate:.0f}/s, p50 {milliseconds(self.good, 50)}, p99 {milliseconds(self.good, 99)}, {counts}"


def milliseconds(times: list[float], percentile: float) -> str:
    """Returns a percentile of times for print."""
    return f"{np.percentile(times, percentile) * 1e3:.2f} ms" if times else "-"


class HttpConnection(asyncio.Protocol):
    """A connection that sends one request again and again; one that was closed while it was idle is made again."""

    def __init__(self, port: int, request: bytes) -> None:
        self._port, self._request, self._data = port, request, b""
        self._waiting: asyncio.Future[str] | None = None

    @classmethod
    async def open(cls, port: int, path: str, body: bytes) -> HttpConnection:
        """Returns one that is connected."""
        head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}\r\n\r\n".encode()
        made = cls(port, head + body)
        await made._connect()
        return made

    async def _connect(self) -> None:
        await asyncio.get_running_loop().create_connection(lambda: self, "127.0.0.1", self._port)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport: Any = transport

    def data_received(self, data: bytes) -> None:
        self._data += data
        head, found, body = self._data.partition(b"\r\n\r\n")
        if not found:
            return
        at = head.lower().index(b"content-length:") + 15
        length = int(head[at:].split(b"\r\n")[0])
        if len(body) >= length and self._waiting is not None:
            self._data = b""
            waiting, self._waiting = self._waiting, None
            waiting.set_result(head[9:12].decode())

    def connection_lost(self, error: Exception | None) -> None:
        if self._waiting is not None:
            waiting, self._waiting = self._waiting, None
            waiting.set_result("lost")

    def close(self) -> None:
        """Closes the connection."""
        self._transport.close()

    def ask(self) -> Awaitable[str]:
        """Sends the request; what it returns is the status."""
        if self._transport.is_closing():
            return self._ask_again()
        self._waiting = asyncio.get_running_loop().create_future()
        self._transport.write(self._request)
        return self._waiting

    async def _ask_again(self) -> str:
        try:
            await self._connect()
        except OSError:
            return "lost"
        return await self.ask()


def grpc_ask(channel: grpc.aio.Channel, method: str, request: bytes) -> Ask:
    """Returns what asks a method of gRPC."""
    call = channel.unary_unary(method)

    async def ask() -> str:
        try:
            await call(request)
        except grpc.RpcError as error:
            return str(error.code().name)
        return "OK"

    return ask


async def closed(asks: list[Ask], seconds: float) -> Result:
    """Makes each client ask again as soon as it has its answer."""
    result = Result()
    begin = time.perf_counter()

    async def client(ask: Ask) -> None:
        while (at := time.perf_counter()) - begin < seconds:
            result.add(await ask(), time.perf_counter() - at)

    await asyncio.gather(*map(client, asks))
    result.seconds = time.perf_counter() - begin
    return result


async def opened(asks: list[Ask], rate: float, seconds: float) -> Result:
    """Asks at a rate, whatever is answered; times begin when a request was due. No free connection counts as "none"."""
    result = Result()
    free = list(asks)
    running: set[asyncio.Task[None]] = set()
    begin = time.perf_counter()

    async def one(ask: Ask, due: float) -> None:
        status = await ask()
        result.add(status, time.perf_counter() - due)
        free.append(ask)

    for number in range(int(rate * seconds)):
        due = begin + number / rate
        if (wait := due - time.perf_counter()) > 0:
            await asyncio.sleep(wait)
        if free:
            task = asyncio.ensure_future(one(free.pop(), due))
            running.add(task)
            task.add_done_callback(running.discard)
        else:
            result.add("none", 0.0)
    if running:
        await asyncio.wait(running, timeout=30)
    result.seconds = time.perf_counter() - begin
    return result
