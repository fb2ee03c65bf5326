"""Connections: closed when a request's head does not come, and answered at once where that can be.

uvicorn itself would keep the first for ever, and make a task, an event and messages for each of the second.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from timberframe_serving.http.direct import Begun, Direct, Head
from timberframe_serving.servable import Servable

_PATIENCE = 1.0
"""Seconds after which a request whose body has not come is left to the application, and takes no room of its model."""
_LOOK_SECONDS = 0.01
"""The time between the end of a connection's patience and its closing, in which the event loop reads what has come: a
process that was not let run for seconds may find both at once."""


def protocol(seconds: float, direct: Direct) -> type[asyncio.Protocol]:
    """Returns uvicorn's protocol with a limit of the seconds until a connection has brought the head of a request.

    direct: answers what needs no host.
    """

    class Limited(Connection):
        """A connection of one server."""

    Limited.seconds, Limited.direct = seconds, direct
    return Limited


class Connection(HttpToolsProtocol):
    """uvicorn's protocol with a limit of time, and direct answers."""

    seconds: float
    direct: Direct
    _timer: asyncio.TimerHandle | None = None
    _between = True
    """Whether the next byte begins a request."""
    _piece = b""
    """The data that is being parsed, where it begins with a request."""
    _head: Head | None = None
    _answer: bytes | bool = False
    """The answer that waits for the end of its request, or whether it is to be made then; False: the application's."""
    _tried = False
    """Whether the data that is being parsed has got a direct answer: one that brings hundreds of requests must not keep
    the event loop from all other connections."""
    _answered_at = 0.0
    """The event loop's time of the last answer."""
    _body = b""
    _known: Begun | None = None
    """The fate of the request that the data begins with, by its known head, where the application is to answer it."""
    _servable: Servable | None = None
    _inside: Servable | None = None
    """The model that counts the request which the application answers."""

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._begin(self.seconds, self.transport.close)

    def data_received(self, data: bytes) -> None:
        self._tried = False
        if not self._between:
            super().data_received(data)
            return
        head = self.direct.kept(data)
        if head is None or not self._answered_unread(head, data):
            self._piece = data
            super().data_received(data)
            self._piece = b""

    def _answered_unread(self, head: Head, data: bytes) -> bool:
        """Answers a request by its known head without the parser; returns whether it did."""
        if self._waits() or self.transport.is_closing():
            return False
        begun = self.direct.begin(head, self.server_state.default_headers)
        answer = begun.answer
        if answer is True:
            answer = self.direct.answer(head, data[len(data) - head.length :]) or False
        if isinstance(answer, bytes):
            self._end()
            self._write(answer, False)
            return True
        self._known = Begun(False, begun.servable)
        return False

    def on_message_begin(self) -> None:
        self._between = False
        super().on_message_begin()
        self._unset_keepalive_if_required()  # of a direct answer to a request in the same data
        self._begin(self.seconds, self.transport.close)

    def on_headers_complete(self) -> None:
        self._end()
        self._answer, self._servable = self._fate()
        self._body = b""
        if self._answer is False:
            super().on_headers_complete()
            self._enter()
        if self._answer is not False or self._inside is not None:
            self._begin(min(self.seconds, _PATIENCE), self._late)

    def _waits(self) -> bool:
        """Returns whether an answer would have to wait: they come in order, and no faster than they are read."""
        return (self.cycle is not None and not self.cycle.response_complete) or self.flow.write_paused

    def _fate(self) -> Begun:
        known, self._known, self._head = self._known, None, None
        if known is not None:
            return known
        if self.parser.get_method() == b"POST" and not self._waits():
            self._head = self.direct.head(self.url, self.headers)
        if self._tried or self._head is None:
            return Begun(False)
        return self.direct.begin(self._head, self.server_state.default_headers)

    def on_body(self, body: bytes) -> None:
        if self._answer is False:
            super().on_body(body)
        elif self._answer is True:
            self._body += body

    def on_message_complete(self) -> None:
        self._between = True
        self._end()
        last = self.parser.get_http_version() == "1.0" or not self.parser.should_keep_alive()
        if self._head is not None:
            if not last:
                self.direct.keep(self._piece, self._head)
            if self._answer is True:
                # A refusal, too, goes only now: many clients read when they have written all.
                self._answer = self.direct.answer(self._head, self._body) or False
                if self._answer is False:
                    self._hand_over()
        if isinstance(self._answer, bytes):
            self._write(self._answer, last)
            self._answer = False
            return
        self._enter()
        super().on_message_complete()

    def shutdown(self) -> None:
        if self._answer is not False:
            self._end()
            self._late()
        super().shutdown()

    def _hand_over(self) -> None:
        """Makes the application answer, as if the head and what there is of the body had only just come."""
        self._answer = False
        super().on_headers_complete()
        if self._body:
            super().on_body(self._body)

    def _late(self) -> None:
        self._timer = None
        if self._answer is False:
            self._leave()
        elif self._answer is True:
            self._hand_over()
        else:
            self._write(self._answer, True)

    def _write(self, answer: bytes, last: bool) -> None:
        """Sends a direct answer. last: closes the connection."""
        if self.transport.is_closing():
            return
        line, _, rest = answer.partition(b"\r\n")
        headers = [*self.server_state.default_headers, *([(b"connection", b"close")] if last else [])]
        further = b"".join([b"%b: %b\r\n" % header for header in headers])
        self.transport.write(b"%b\r\n%b%b" % (line, further, rest))
        self._tried = True
        self.server_state.total_requests += 1
        self._answered_at = self.loop.time()
        if last:
            self.transport.close()
        elif self.timeout_keep_alive_task is None:
            self.timeout_keep_alive_task = self.loop.call_later(
                self.timeout_keep_alive, self.timeout_keep_alive_handler
            )

    def _enter(self) -> None:
        """Counts a request of the application's for its model, until it is answered or its client is gone."""
        if self._servable is not None and self._inside is None and not self.cycle.response_complete:
            self._servable.coming += 1
            self._inside = self._servable

    def _leave(self) -> None:
        if self._inside is not None:
            self._inside.coming -= 1
            self._inside = None

    def on_response_complete(self) -> None:
        self._leave()
        self._answered_at = self.loop.time()
        super().on_response_complete()

    def timeout_keep_alive_handler(self) -> None:
        # A timer of its own for each direct answer would take a tenth of the time of it.
        left = self._patience_left()
        then = self.timeout_keep_alive_handler if left > 0 else self._close_idle
        self.timeout_keep_alive_task = self.loop.call_later(max(left, _LOOK_SECONDS), then)

    def _close_idle(self) -> None:
        """Closes the connection, unless a request has been read meanwhile."""
        if self._patience_left() > 0:
            self.timeout_keep_alive_handler()
        else:
            super().timeout_keep_alive_handler()

    def _patience_left(self) -> float:
        """Returns for how many seconds the connection may be idle."""
        return self._answered_at + self.timeout_keep_alive - self.loop.time()

    def connection_lost(self, exc: Exception | None) -> None:
        self._end()
        self._leave()
        super().connection_lost(exc)

    def _begin(self, seconds: float, then: Callable[[], None]) -> None:
        self._end()
        self._timer = self.loop.call_later(seconds, then)

    def _end(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
