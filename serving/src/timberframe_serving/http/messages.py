"""Requests and responses of HTTP, between an ASGI server and the protocols."""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import Awaitable, Callable, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from timberframe_core.errors import CancelledError, DeadlineExceededError, InvalidArgumentError
from timberframe_serving.codes import BodyTooLargeError, BodyTooSlowError
from timberframe_serving.service import Limits
from timberframe_serving.signatures import Arrays

Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
JSON = (b"content-type", b"application/json")


@dataclass(frozen=True)
class Response:
    """A status, a body, and further headers."""

    body: bytes
    status: int = 200
    headers: Sequence[tuple[bytes, bytes]] = (JSON,)

    async def send(self, send: Send) -> None:
        """Sends it."""
        length = (b"content-length", str(len(self.body)).encode())
        await send({"type": "http.response.start", "status": self.status, "headers": [*self.headers, length]})
        await send({"type": "http.response.body", "body": self.body})


Handler = Callable[["Request"], Awaitable[Response]]
"""Answers requests of one method and path."""


@dataclass
class Request:
    """A request of an ASGI server."""

    scope: Mapping[str, Any]
    receive: Receive
    limits: Limits
    _headers: dict[bytes, bytes] = field(init=False)

    def __post_init__(self) -> None:
        self._headers = dict(self.scope["headers"])

    @property
    def method(self) -> str:
        """The method, such as GET."""
        return str(self.scope["method"])

    def header(self, name: bytes) -> str | None:
        """Returns a header by its name in small letters."""
        value = self._headers.get(name)
        return None if value is None else value.decode("latin-1")

    async def body(self) -> bytes:
        """Returns the body, uncompressed.

        Raises BodyTooLargeError beyond the limit, BodyTooSlowError where it comes too slowly, CancelledError where
        the client goes away.
        """
        length = self.header(b"content-length")
        if length is not None and (not length.isdecimal() or int(length) > self.limits.body_bytes):
            raise self._too_large(length)
        task = asyncio.current_task()
        assert task is not None
        late: list[bool] = []

        def give_up() -> None:
            late.append(True)
            task.cancel()

        # asyncio.timeout does as much, and takes several times as long.
        timer = asyncio.get_running_loop().call_later(self.limits.body_seconds, give_up)
        try:
            data = await self._received()
        except asyncio.CancelledError:
            if not late:
                raise
            task.uncancel()
            raise BodyTooSlowError(
                f"request: its body did not come within {self.limits.body_seconds} s; it is required by then"
            ) from None
        finally:
            timer.cancel()
        encoding = self._headers.get(b"content-encoding")
        return data if encoding is None else self._unpacked(data, encoding.decode("latin-1"))

    def _too_large(self, size: object) -> BodyTooLargeError:
        return BodyTooLargeError(f"request: its body has {size} bytes; at most {self.limits.body_bytes} are taken")

    async def _received(self) -> bytes:
        parts: list[bytes] = []
        size = 0
        while True:
            message = await self.receive()
            if message["type"] == "http.disconnect":
                raise CancelledError("request: the client is gone")
            part = message.get("body", b"")
            size += len(part)
            if size > self.limits.body_bytes:
                raise self._too_large(f"over {size - 1}")
            if not message.get("more_body", False):
                return part if not parts else b"".join((*parts, part))
            parts.append(part)

    def _unpacked(self, data: bytes, encoding: str) -> bytes:
        if encoding == "identity":
            return data
        if encoding not in ("gzip", "deflate"):
            raise InvalidArgumentError(f"request: content-encoding is '{encoding[:50]}'; gzip or deflate is required")
        unpack = zlib.decompressobj(wbits=zlib.MAX_WBITS | 32)
        try:
            found = unpack.decompress(data, self.limits.body_bytes + 1)
        except zlib.error as error:
            raise InvalidArgumentError(f"request: its body is no {encoding} ({error})") from None
        if len(found) > self.limits.body_bytes:
            raise self._too_large(f"over {self.limits.body_bytes}")
        if not unpack.eof:
            raise InvalidArgumentError(f"request: its {encoding} body ends early; a whole one is required")
        return found

    async def wait(self, future: asyncio.Future[Arrays]) -> Arrays:
        """Waits for outputs; cancels them where the client goes away or it takes too long."""
        gone = asyncio.ensure_future(self.receive())
        try:
            await asyncio.wait((future, gone), timeout=self.limits.answer_seconds, return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            future.cancel()
            raise
        finally:
            left = gone.done()
            gone.cancel()
        if future.done():
            return future.result()
        future.cancel()
        if left:
            raise CancelledError("request: the client is gone")
        raise DeadlineExceededError(f"request: took over {self.limits.answer_seconds} s; it was given up")
