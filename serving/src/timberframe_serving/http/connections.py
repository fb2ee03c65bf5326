"""Connections that are closed when a request's head does not come: uvicorn itself would keep them for ever."""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol


def protocol(seconds: float) -> type[asyncio.Protocol]:
    """Returns uvicorn's protocol with a limit of the seconds until a connection has brought the head of a request."""

    class Limited(HttpToolsProtocol):
        """uvicorn's protocol with a limit of time."""

        _timer: asyncio.TimerHandle | None = None

        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            self._begin()

        def on_message_begin(self) -> None:
            super().on_message_begin()
            self._begin()

        def on_headers_complete(self) -> None:
            self._end()
            super().on_headers_complete()

        def connection_lost(self, exc: Exception | None) -> None:
            self._end()
            super().connection_lost(exc)

        def _begin(self) -> None:
            self._end()
            self._timer = self.loop.call_later(seconds, self.transport.close)

        def _end(self) -> None:
            if self._timer is not None:
                self._timer.cancel()
                self._timer = None

    return Limited
