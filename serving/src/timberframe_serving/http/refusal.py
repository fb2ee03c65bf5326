"""Requests that are refused by their head alone, before anything is read, parsed or scheduled for them.

A server that gets more than it can answer spends on each refusal what its answers then lack: through the application a
refusal costs more than half of what an answer of a small model does.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Sequence

from timberframe_core.errors import OpError, ResourceExhaustedError
from timberframe_serving.codes import code_name, http_status, shown
from timberframe_serving.json_tensors import dumps
from timberframe_serving.service import Service, Spec

_log = logging.getLogger(__name__)
_MODEL = rb"/models/([\w.-]+)(?:/versions/(\d{1,18}))?"
_COMPUTED = re.compile(rb"/v1%b:(?:predict|classify|regress)|/v2%b/infer" % (_MODEL, _MODEL))
"""The plain forms of paths that ask a model; others take the way through the application."""
REQUEST_ID = re.compile(rb"[\w.:/+=\-]{1,128}")


class Refusals:
    """Refuses requests to models whose queues are full, with the bytes that the application would answer."""

    def __init__(self, service: Service) -> None:
        self._service = service

    def answer(self, url: bytes, headers: Sequence[tuple[bytes, bytes]]) -> bytes | None:
        """Returns the head and body of a refusal of a POST, without its date; None where the application is to answer.

        headers: with names in small letters.
        """
        found = _COMPUTED.fullmatch(url)
        if found is None:
            return None
        model, version = found[1] or found[3], found[2] or found[4]
        name = model.decode()
        try:
            self._service.check_room(Spec(name, int(version) if version else None))
        except ResourceExhaustedError as error:
            return self._refused(name, dict(headers), error)
        except OpError:
            pass
        return None

    def _refused(self, name: str, headers: dict[bytes, bytes], error: OpError) -> bytes | None:
        length = headers.get(b"content-length", b"")
        if not length.isdigit() or int(length) > self._service.limits.body_bytes:
            return None
        try:
            self._service.keys.check(_text(headers, b"authorization"), _text(headers, b"x-api-key"))
        except OpError:
            return None
        self._service.metrics.requests.add(name, code_name(error.error_code))
        identifier = headers.get(b"x-request-id", b"")
        repeated = b"x-request-id: %s\r\n" % identifier if REQUEST_ID.fullmatch(identifier) else b""
        if _log.isEnabledFor(logging.DEBUG):
            facts = {"request_id": identifier.decode("latin-1")[:128], "model": name, "error": str(error)}
            _log.debug("request is refused", extra=facts)
        body = dumps({"error": shown(str(error))})
        return b"HTTP/1.1 %d Too Many Requests\r\ncontent-type: application/json\r\ncontent-length: %d\r\n%s\r\n%s" % (
            http_status(error), len(body), repeated, body,
        )  # fmt: skip


def _text(headers: dict[bytes, bytes], name: bytes) -> str | None:
    value = headers.get(name)
    return None if value is None else value.decode("latin-1")
