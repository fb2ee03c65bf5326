"""The ASGI application: TensorFlow Serving's REST API, the Open Inference Protocol, metrics, health and the page.

uvicorn hosts it on one machine; any host of ASGI applications can.
"""

from __future__ import annotations

import logging
import re
import uuid
from collections.abc import Mapping
from functools import partial
from typing import Any

from timberframe_core.errors import NotFoundError, OpError
from timberframe_serving.codes import as_op_error, http_status, shown
from timberframe_serving.http import open_inference, tensorflow_serving
from timberframe_serving.http.messages import JSON, Handler, Receive, Request, Response, Send
from timberframe_serving.http.page import page
from timberframe_serving.json_tensors import dumps
from timberframe_serving.service import Service

_log = logging.getLogger(__name__)
_REQUEST_ID = re.compile(rb"[\w.:/+=\-]{1,128}")
_STATES = ("/healthz", "/readyz", "/")
_OPEN = ("/v2/health/live", "/v2/health/ready", *_STATES)
"""Paths that need no key: what watches a server has none, and the page holds nothing that it does not ask for."""
_METRICS = ("/metrics", "/monitoring/prometheus/metrics")


class Application:
    """Answers HTTP requests from a service's models."""

    def __init__(self, service: Service, access_log: bool = False) -> None:
        self._service, self._access_log = service, access_log

    async def __call__(self, scope: Mapping[str, Any], receive: Receive, send: Send) -> None:
        """Serves one connection's request, as ASGI has it."""
        if scope["type"] == "lifespan":
            await _lifespan(receive, send)
            return
        if scope["type"] != "http":
            await send({"type": "websocket.close", "code": 1003})
            return
        response = await self.respond(Request(scope, receive, self._service.limits), scope["path"])
        await response.send(send)

    async def respond(self, request: Request, path: str, handler: Handler | None = None) -> Response:
        """Returns the response to a request, with all its headers but the length; errors are responses, too.

        handler: that of the path, where it is known.
        """
        tracing = self._service.tracing
        if tracing is None:
            return (await self._responded(request, path, handler))[0]
        sent = {name: value for name in ("traceparent", "tracestate") if (value := request.header(name.encode()))}
        facts = {"http.request.method": request.method, "url.path": path[:500]}
        with tracing.request(request.method, sent, **facts) as span:
            response, error = await self._responded(request, path, handler)
            span.set_attribute("http.response.status_code", response.status)
            if error is not None:
                tracing.failed(span, error)
        return response

    async def _responded(self, request: Request, path: str, handler: Handler | None) -> tuple[Response, OpError | None]:
        try:
            if path not in _OPEN:
                self.check_key(request)
            response = await (handler or self.handler(request.method, path))(request)
        except Exception as raised:
            error = as_op_error(raised)
            return self.refusal(request, path, error), error
        identifier = _identifier(request)
        if self._access_log:
            self._log(request.method, path, response.status, identifier, None)
        if identifier:
            headers = [*response.headers, (b"x-request-id", identifier)]
            response = Response(response.body, response.status, headers)
        return response, None

    def refusal(self, request: Request, path: str, error: OpError) -> Response:
        """Returns the response to a request that gets an error, of which the log gets a line."""
        status, identifier = http_status(error), _identifier(request)
        headers = [JSON, (b"x-request-id", identifier)] if identifier else [JSON]
        self._log(request.method, path, status, identifier, error)
        if status in (413, 408):
            headers.append((b"connection", b"close"))
        return Response(dumps({"error": shown(str(error))}), status, headers)

    @property
    def logs_refusals(self) -> bool:
        """Whether the log gets a line of each request that finds no room."""
        return _log.isEnabledFor(logging.DEBUG)

    def check_key(self, request: Request) -> None:
        """Raises UnauthenticatedError where a request has no key that may ask."""
        if self._service.keys.digests:
            self._service.keys.check(request.header(b"authorization"), request.header(b"x-api-key"))

    def _log(self, method: str, path: str, status: int, identifier: bytes, error: OpError | None) -> None:
        # A server that has too much to do has no time to say so of each request.
        level = logging.WARNING if status >= 500 else logging.DEBUG if status == 429 else logging.INFO
        if not _log.isEnabledFor(level):
            return
        facts = {
            "request_id": (identifier or uuid.uuid4().hex.encode()).decode(),
            "method": method,
            "path": path[:500],
            "status": status,
        }
        if error is not None:
            facts["error"] = shown(str(error))
        _log.log(level, "request", extra=facts)

    def handler(self, method: str, path: str) -> Handler:
        """Returns what answers requests of a method and a path; raises NotFoundError where there is nothing."""
        service = self._service
        found = tensorflow_serving.PATH.fullmatch(path)
        if found is not None:
            return tensorflow_serving.handler(service, method, found)
        if path == "/v2" or path.startswith("/v2/"):
            return partial(open_inference.answer, service, path)
        if path in _METRICS:
            return self._metrics
        if path in _STATES:
            return partial(self._state, path)
        raise NotFoundError(f"request: nothing is at '{path[:200]}'")

    async def _metrics(self, _: Request) -> Response:
        text = self._service.metrics.text()
        return Response(text.encode(), headers=[(b"content-type", b"text/plain; version=0.0.4")])

    async def _state(self, path: str, _: Request) -> Response:
        if path == "/healthz":
            return Response(dumps({"live": True}))
        if path == "/readyz":
            ready = self._service.ready
            return Response(dumps({"ready": ready}), 200 if ready else 503)
        return page()


def _identifier(request: Request) -> bytes:
    """Returns the request's own id where it has one that can be repeated in a header and a log."""
    given = request.header(b"x-request-id")
    value = given.encode("latin-1") if given else b""
    return value if value and _REQUEST_ID.fullmatch(value) else b""


async def _lifespan(receive: Receive, send: Send) -> None:
    """Answers the host's signs of start and end; models are managed outside of it."""
    while True:
        message = await receive()
        if message["type"] == "lifespan.startup":
            await send({"type": "lifespan.startup.complete"})
        elif message["type"] == "lifespan.shutdown":
            await send({"type": "lifespan.shutdown.complete"})
            return
