"""Connections: closed when a request's head does not come, and answered at once where that can be.

uvicorn itself would keep the first for ever, and make a task, an event and messages for each of the second.
"""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from timberframe_serving.http.direct import Direct
from timberframe_serving.servable import Servable

_PATIENCE = 1.0
"""Seconds after which a request whose body has not come is left to the application, which says so."""


def protocol(seconds: float, direct: Direct) -> type[asyncio.Protocol]:
    """Returns uvicorn's protocol with a limit of the seconds until a connection has brought the head of a request.

    direct: answers what needs no host.
    """

    class Limited(HttpToolsProtocol):
        """uvicorn's protocol with a limit of time, and direct answers."""

        _timer: asyncio.TimerHandle | None = None
        _answer: bytes | bool = False
        """The answer that waits for the end of its request, or whether it is to be made then."""
        _body = b""
        _servable: Servable | None = None
        _inside: Servable | None = None
        """The model that counts the request which the application answers."""

        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            self._begin()

        def on_message_begin(self) -> None:
            super().on_message_begin()
            self._begin()

        def on_headers_complete(self) -> None:
            self._end()
            waits = self.cycle is not None and not self.cycle.response_complete  # answers come in order
            if waits or self.flow.write_paused or self.parser.get_method() != b"POST":
                self._answer = False
                super().on_headers_complete()
                return
            self._answer, self._servable = direct.begin(self.url, self.headers)
            if self._answer is False:
                self._enter()
                super().on_headers_complete()
            else:
                self._body = b""
                self._timer = self.loop.call_later(min(seconds, _PATIENCE), self._late)

        def on_body(self, body: bytes) -> None:
            if self._answer is False:
                super().on_body(body)
            elif self._answer is True:
                self._body += body

        def on_message_complete(self) -> None:
            if self._answer is False:
                super().on_message_complete()
                return
            self._end()
            # A refusal, too, goes only now: many clients read when they have written all.
            answer = direct.answer(self.url, self.headers, self._body) if self._answer is True else self._answer
            self._answer = False
            if isinstance(answer, bytes):
                self._write(answer)
                return
            self._hand_over()
            super().on_message_complete()

        def _hand_over(self) -> None:
            """Has the application answer, as if the head and what there is of the body had only just come."""
            self._answer = False
            self._enter()
            super().on_headers_complete()
            if self._body:
                super().on_body(self._body)

        def _late(self) -> None:
            self._timer = None
            if isinstance(self._answer, bytes):
                self._write(self._answer)
                self.transport.close()
            else:
                self._hand_over()

        def _write(self, answer: bytes) -> None:
            line, _, rest = answer.partition(b"\r\n")
            further = b"".join([b"%b: %b\r\n" % header for header in self.server_state.default_headers])
            self.transport.write(b"%b\r\n%b%b" % (line, further, rest))
            if self.parser.get_http_version() != "1.0" and self.parser.should_keep_alive():
                self.on_response_complete()
            else:
                self.transport.close()

        def _enter(self) -> None:
            """Counts a request of the application's for its model, until it is answered or its client is gone."""
            if self._servable is not None:
                self._servable.coming += 1
                self._inside = self._servable

        def _leave(self) -> None:
            if self._inside is not None:
                self._inside.coming -= 1
                self._inside = None

        def on_response_complete(self) -> None:
            self._leave()
            super().on_response_complete()

        def connection_lost(self, exc: Exception | None) -> None:
            self._end()
            self._leave()
            super().connection_lost(exc)

        def _begin(self) -> None:
            self._end()
            self._timer = self.loop.call_later(seconds, self.transport.close)

        def _end(self) -> None:
            if self._timer is not None:
                self._timer.cancel()
                self._timer = None

    return Limited
