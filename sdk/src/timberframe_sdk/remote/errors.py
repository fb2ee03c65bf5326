"""Errors on their way from a worker to its client: class, words and node."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from timberframe_core import errors
from timberframe_core.errors import AlreadyExistsError as AlreadyExistsError
from timberframe_core.errors import FailedPreconditionError as FailedPreconditionError
from timberframe_core.failures import raised


def error_header(error: Exception) -> dict[str, Any]:
    """Returns the message that carries an error: its class, words and node."""
    if not isinstance(error, errors.OpError):
        error = errors.UnknownError(raised(error))
    return {"error": [type(error).__name__, str(error), error.node]}


def raise_error(header: Mapping[str, Any]) -> None:
    """Raises the error that a message carries, if it does."""
    if "error" in header:
        kind, message, node = header["error"]
        raise getattr(errors, kind, errors.UnknownError)(message, node)
