"""Errors of models and of the server as statuses of HTTP and gRPC."""

from __future__ import annotations

import logging
from collections.abc import Mapping

from timberframe_core import errors
from timberframe_core.errors import (
    DeadlineExceededError,
    InternalError,
    InvalidArgumentError,
    OpError,
    ResourceExhaustedError,
)

HTTP_STATUS: Mapping[int, int] = {
    errors.OK: 200,
    errors.CANCELLED: 499,
    errors.UNKNOWN: 500,
    errors.INVALID_ARGUMENT: 400,
    errors.DEADLINE_EXCEEDED: 504,
    errors.NOT_FOUND: 404,
    errors.ALREADY_EXISTS: 409,
    errors.PERMISSION_DENIED: 403,
    errors.RESOURCE_EXHAUSTED: 429,
    errors.FAILED_PRECONDITION: 412,
    errors.ABORTED: 409,
    errors.OUT_OF_RANGE: 400,
    errors.UNIMPLEMENTED: 501,
    errors.INTERNAL: 500,
    errors.UNAVAILABLE: 503,
    errors.DATA_LOSS: 500,
    errors.UNAUTHENTICATED: 401,
}
NAMES: Mapping[int, str] = {
    number: name
    for name, number in vars(errors).items()
    if isinstance(number, int) and name.isupper() and not name.startswith("_")
}
"""The names of the codes, such as INVALID_ARGUMENT."""
LONGEST_MESSAGE = 4096
_log = logging.getLogger(__name__)


class BodyTooLargeError(ResourceExhaustedError):
    """A request's body is larger than the server takes; HTTP has a status of its own for it."""


class BodyTooSlowError(DeadlineExceededError):
    """A request's body did not come in time: the client's fault, which HTTP has a status of its own for."""


def http_status(error: OpError) -> int:
    """Returns the HTTP status of an error."""
    if isinstance(error, BodyTooLargeError | BodyTooSlowError):
        return 413 if isinstance(error, BodyTooLargeError) else 408
    return HTTP_STATUS.get(error.error_code, 500)


def code_name(code: int) -> str:
    """Returns the name of a code, such as NOT_FOUND."""
    return NAMES.get(code, "UNKNOWN")


def as_op_error(error: BaseException) -> OpError:
    """Returns an error as one of ours; what is none of them is logged, and sent without its details."""
    if isinstance(error, OpError):
        return error
    if isinstance(error, RecursionError):
        return InvalidArgumentError("request: is nested too deeply; a flatter one is required")
    if isinstance(error, MemoryError):
        return ResourceExhaustedError("request: memory does not suffice for it; a smaller one is required")
    _log.error("an unexpected error", exc_info=error)
    return InternalError(f"server: {type(error).__name__} while answering; the log has the details")


def shown(message: str) -> str:
    """Returns a message as it is sent and logged: of bounded length."""
    return message if len(message) <= LONGEST_MESSAGE else message[: LONGEST_MESSAGE - 3] + "..."
