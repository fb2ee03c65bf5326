"""The common part of all gRPC services: messages are parsed, keys checked, errors sent with their codes."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import grpc

from timberframe_core.errors import RESOURCE_EXHAUSTED, OpError
from timberframe_serving.codes import as_op_error, shown
from timberframe_serving.messages import parse
from timberframe_serving.service import Service

_log = logging.getLogger(__name__)
Method = Callable[[Any], Awaitable[Any]]
_CODES = {code.value[0]: code for code in grpc.StatusCode}


def handlers(service: Service, name: str, methods: Mapping[str, tuple[Any, Method]], needs_key: bool = True) -> Any:
    """Returns the handlers of a gRPC service.

    methods: by name the class of the request and what answers it. Bytes are parsed here, so that a damaged message is
    the client's error with words, and not the server's.
    """
    made = {
        method: grpc.unary_unary_rpc_method_handler(_handler(service, f"/{name}/{method}", kind, answer, needs_key))
        for method, (kind, answer) in methods.items()
    }
    return grpc.method_handlers_generic_handler(name, made)


def _handler(service: Service, path: str, kind: Any, answer: Method, needs_key: bool) -> Any:
    async def handle(data: bytes, context: Any) -> bytes:
        if service.tracing is None:
            return (await answered(data, context))[0]
        sent = {k: str(_text(v)) for k, v in context.invocation_metadata() or ()}
        with service.tracing.request(path[1:], sent, **{"rpc.system.name": "grpc", "rpc.method": path[1:]}) as span:
            response, error = await answered(data, context)
            if error is not None:
                service.tracing.failed(span, error)
            return response

    async def answered(data: bytes, context: Any) -> tuple[bytes, OpError | None]:
        try:
            if needs_key and service.keys.digests:
                sent = dict(context.invocation_metadata() or ())
                service.keys.check(_text(sent.get("authorization")), _text(sent.get("x-api-key")))
            response = await answer(parse(kind, data))
            serialized: bytes = response.SerializeToString()
            return serialized, None
        except Exception as raised:
            error = as_op_error(raised)
        _log_error(path, context, error)
        context.set_code(_CODES[error.error_code])  # `abort` would raise once more, which takes as long as an answer
        context.set_details(shown(str(error)))
        return b"", error

    return handle


def _text(value: Any) -> str | None:
    return value.decode("latin-1") if isinstance(value, bytes) else value


def _log_error(path: str, context: Any, error: OpError) -> None:
    # A server that has too much to do has no time to say so of each request.
    level = logging.DEBUG if error.error_code == RESOURCE_EXHAUSTED else logging.INFO
    if not _log.isEnabledFor(level):
        return
    sent = dict(context.invocation_metadata() or ())
    identifier = (_text(sent.get("x-request-id")) or "")[:128]
    _log.log(
        level,
        "request",
        extra={
            "request_id": identifier,
            "method": path,
            "status": _CODES[error.error_code].name,
            "error": shown(str(error)),
        },
    )
