"""Connections: closed when a request's head does not come, and refused by their heads while a model has too much to do.

uvicorn itself would keep the first for ever, and make a task and a scope for each of the second.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

Refuse = Callable[[bytes, Sequence[tuple[bytes, bytes]]], bytes | None]


def protocol(seconds: float, refuse: Refuse) -> type[asyncio.Protocol]:
    """Returns uvicorn's protocol with a limit of the seconds until a connection has brought the head of a request.

    refuse: returns the answer to a POST's target and headers that nothing more is to be done for, or None.
    """

    class Limited(HttpToolsProtocol):
        """uvicorn's protocol with a limit of time, and early refusals."""

        _timer: asyncio.TimerHandle | None = None
        _refusal: bytes | None = None
        _keeps = True

        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            self._begin()

        def on_message_begin(self) -> None:
            super().on_message_begin()
            self._begin()

        def on_headers_complete(self) -> None:
            self._end()
            self._refusal = self._refused()
            if self._refusal is None:
                super().on_headers_complete()
            else:
                self._begin()  # its body must come in time all the same

        def on_body(self, body: bytes) -> None:
            if self._refusal is None:
                super().on_body(body)

        def on_message_complete(self) -> None:
            if self._refusal is None:
                super().on_message_complete()
                return
            # Not sooner: many clients read only when they have written all.
            self._end()
            self.transport.write(self._refusal)
            self._refusal = None
            if self._keeps:
                self.on_response_complete()
            else:
                self.transport.close()

        def connection_lost(self, exc: Exception | None) -> None:
            self._end()
            super().connection_lost(exc)

        def _refused(self) -> bytes | None:
            """Returns the refusal of the request whose head is here, if it is to be refused."""
            waits = self.cycle is not None and not self.cycle.response_complete  # answers come in order
            if waits or self.expect_100_continue or self.parser.get_method() != b"POST":
                return None
            self._keeps = self.parser.get_http_version() != "1.0" and bool(self.parser.should_keep_alive())
            return refuse(self.url, self.headers)

        def _begin(self) -> None:
            self._end()
            self._timer = self.loop.call_later(seconds, self.transport.close)

        def _end(self) -> None:
            if self._timer is not None:
                self._timer.cancel()
                self._timer = None

    return Limited
