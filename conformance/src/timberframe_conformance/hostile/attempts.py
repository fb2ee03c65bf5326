"""Calls that may end with a result or an OpError, and with nothing else."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from timberframe_core.errors import InternalError, OpError, UnknownError


class WrongUseError(AssertionError):
    """A file led to something that is neither a right answer nor an error that a user could expect."""


def attempt(call: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Returns what the call returns, or the OpError that it raises.

    An UnknownError or InternalError counts as a raw exception: it is raised.
    """
    try:
        return call(*args, **kwargs)
    except (UnknownError, InternalError):
        raise
    except OpError as e:
        return e
