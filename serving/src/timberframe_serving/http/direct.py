"""Requests that are answered on the connection itself: those of quick models, and those that are refused by their head.

What a host of ASGI applications makes for each request, a scope, a task, an event and messages, costs more than a small
model and all that is around it. The application's own coroutine answers here, too: a quick model never has it wait, so
that one step runs all of it. A request that would wait after all goes the usual way.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, NamedTuple

from timberframe_core.errors import OpError, ResourceExhaustedError
from timberframe_serving.batching import WouldWaitError
from timberframe_serving.codes import code_name
from timberframe_serving.http.application import Application
from timberframe_serving.http.messages import Handler, Request, Response
from timberframe_serving.servable import Servable, at_once
from timberframe_serving.service import Service, Spec

Headers = Sequence[tuple[bytes, bytes]]
_MODEL = rb"/models/([\w.-]+)(?:/versions/(\d+))?"
_COMPUTED = re.compile(rb"/v1%b:(?:predict|classify|regress)|/v2%b/infer" % (_MODEL, _MODEL))
"""The plain forms of paths that ask a model."""
_MOST_BYTES = 1 << 16
_END = b"\r\n\r\n"
"""The end of a head."""
_MOST_HEAD, _MOST_HEADS = 1 << 12, 1000
"""Bytes of the longest head that is kept, and how many are."""
_ELSEWHERE = (b"transfer-encoding", b"content-encoding", b"expect", b"upgrade")
_LINES = {s.value: b"HTTP/1.1 %d %b\r\n" % (s.value, s.phrase.encode()) for s in HTTPStatus}


@dataclass(slots=True, eq=False)
class Head:
    """The head of a request that asks a model. length: the bytes of its body. refusal: the last one, for a second."""

    url: bytes
    headers: Headers
    length: int
    spec: Spec
    handler: Handler
    refusal: bytes = b""
    lines: object = None
    """The server's own lines, of which one is the date, from the moment of the refusal."""


class Begun(NamedTuple):
    """The fate of a request: its answer, or whether `Direct.answer` may have one when the body is here; and its model.

    An answer that is here is a refusal. Without both, the application answers.
    """

    answer: bytes | bool
    servable: Servable | None = None


_ELSE = Begun(False)


@dataclass
class _Whole(Request):
    """A request that has come as a whole."""

    data: bytes = b""

    async def body(self) -> bytes:
        return self.data

    wait = staticmethod(at_once)


class Direct:
    """Answers POSTs to models by an application's coroutine, without a host.

    Clients send the same head again and again: those that have been read are kept, so that they need not be parsed.
    """

    def __init__(self, application: Application, service: Service) -> None:
        self._application, self._service = application, service
        self._heads: dict[bytes, Head] = {}

    def head(self, url: bytes, headers: Headers) -> Head | None:
        """Returns the head of a POST that may be answered here. headers: with names in small letters."""
        found = _COMPUTED.fullmatch(url)
        if found is None:
            return None
        given = dict(headers)
        length = given.get(b"content-length", b"")
        if not length.isdigit() or int(length) > self._service.limits.body_bytes or any(n in given for n in _ELSEWHERE):
            return None
        model, version = found[1] or found[3], found[2] or found[4] or b""
        try:
            spec = Spec.parsed(model.decode(), version.decode())
            handler = self._application.handler("POST", url.decode())
        except OpError:
            return None
        return Head(url, headers, int(length), spec, handler)

    def keep(self, data: bytes, head: Head) -> None:
        """Keeps a head, where the data that brought it held one whole request."""
        end = data.find(_END, 0, _MOST_HEAD) + len(_END)
        if end < len(_END) or len(data) != end + head.length:
            return
        if len(self._heads) >= _MOST_HEADS:
            self._heads.clear()
        self._heads[data[:end]] = head

    def kept(self, data: bytes) -> Head | None:
        """Returns the head that data begins with, where that is known and the data holds one whole request."""
        end = data.find(_END, 0, _MOST_HEAD) + len(_END)
        found = self._heads.get(data[:end])
        return found if found is not None and len(data) == end + found.length else None

    def begin(self, head: Head, lines: object) -> Begun:
        """Returns what is to become of a request. lines: the server's own ones, which change every second."""
        try:
            servable = self._service.manager.servable(head.spec.name, head.spec.version)
            servable.check_entrance()
        except ResourceExhaustedError as error:
            if head.lines is lines:
                self._service.metrics.requests.add(servable.model, code_name(error.error_code))
                return Begun(head.refusal)
            return Begun(self._refused(servable.model, head, lines, error) or False)
        except OpError:
            return _ELSE
        return Begun(servable.quick and head.length <= _MOST_BYTES, servable)

    def _refused(self, name: str, head: Head, lines: object, error: OpError) -> bytes | None:
        """Returns the application's refusal, in a quarter of the time; None where the key is wrong, too."""
        request = Request({"method": "POST", "headers": head.headers}, _nothing_comes, self._service.limits)
        try:
            self._application.check_key(request)
        except OpError:
            return None
        self._service.metrics.requests.add(name, code_name(error.error_code))
        refusal = _written(self._application.refusal(request, head.url.decode(), error))
        if not self._application.logs_refusals:
            head.refusal, head.lines = refusal, lines
        return refusal

    def answer(self, head: Head, body: bytes) -> bytes | None:
        """Returns the answer to a request; None where it would have to wait, and nothing has been done."""
        request = _Whole({"method": "POST", "headers": head.headers}, _nothing_comes, self._service.limits, body)
        steps = self._application.respond(request, head.url.decode(), head.handler)
        try:
            steps.send(None)
        except StopIteration as end:
            return _written(end.value)
        except WouldWaitError:
            return None
        steps.close()
        return None


async def _nothing_comes() -> dict[str, Any]:
    return {"type": "http.disconnect"}


def _written(response: Response) -> bytes:
    line = _LINES.get(response.status) or b"HTTP/1.1 %d \r\n" % response.status
    lines = b"".join([b"%b: %b\r\n" % header for header in response.headers])
    return b"%bcontent-length: %d\r\n%b\r\n%b" % (line, len(response.body), lines, response.body)
