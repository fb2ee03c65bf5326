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
from timberframe_serving.http.messages import Request, Response
from timberframe_serving.servable import Servable, at_once
from timberframe_serving.service import Service, Spec

Headers = Sequence[tuple[bytes, bytes]]
_MODEL = rb"/models/([\w.-]+)(?:/versions/(\d+))?"
_COMPUTED = re.compile(rb"/v1%b:(?:predict|classify|regress)|/v2%b/infer" % (_MODEL, _MODEL))
"""The plain forms of paths that ask a model."""
_MOST_BYTES = 1 << 16
_ELSEWHERE = (b"transfer-encoding", b"content-encoding", b"expect", b"upgrade")
_LINES = {s.value: b"HTTP/1.1 %d %b\r\n" % (s.value, s.phrase.encode()) for s in HTTPStatus}


class Begun(NamedTuple):
    """The fate of a request: its answer, or whether `Direct.answer` may have one when the body is here; and its model.

    Without both, the application answers.
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
    """Answers POSTs to models by an application's coroutine, without a host."""

    def __init__(self, application: Application, service: Service) -> None:
        self._application, self._service = application, service

    def begin(self, url: bytes, headers: Headers) -> Begun:
        """Returns what is to become of a request whose head is here. headers: with names in small letters."""
        found = _COMPUTED.fullmatch(url)
        if found is None:
            return _ELSE
        given = dict(headers)
        length = given.get(b"content-length", b"")
        if not length.isdigit() or int(length) > self._service.limits.body_bytes or any(n in given for n in _ELSEWHERE):
            return _ELSE
        model, version = found[1] or found[3], found[2] or found[4] or b""
        try:
            spec = Spec.parsed(model.decode(), version.decode())
            servable = self._service.manager.servable(spec.name, spec.version)
            servable.check_entrance()
        except ResourceExhaustedError as error:
            return Begun(self._refused(servable.model, url, headers, error) or False)
        except OpError:
            return _ELSE
        return Begun(servable.quick and int(length) <= _MOST_BYTES, servable)

    def _refused(self, name: str, url: bytes, headers: Headers, error: OpError) -> bytes | None:
        """Returns the application's refusal, in a quarter of the time; None where the key is wrong, too."""
        request = Request({"method": "POST", "headers": headers}, _nothing_comes, self._service.limits)
        try:
            self._application.check_key(request)
        except OpError:
            return None
        self._service.metrics.requests.add(name, code_name(error.error_code))
        return _written(self._application.refusal(request, url.decode(), error))

    def answer(self, url: bytes, headers: Headers, body: bytes) -> bytes | None:
        """Returns the answer to a request; None where it would have to wait, and nothing has been done."""
        request = _Whole({"method": "POST", "headers": headers}, _nothing_comes, self._service.limits, body)
        steps = self._application.respond(request, url.decode())
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
