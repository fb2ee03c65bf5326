"""Checks of arguments whose kind Python itself would complain about only later, and without naming them."""

from __future__ import annotations

import reprlib
from collections.abc import Iterable
from typing import Any

from timberframe_core.errors import InvalidTypeError


def listed(value: Any, what: str, of: str) -> list[Any]:
    """Returns the items of an iterable; raises InvalidTypeError, which names `what`, for
    anything else and for a string.
    """
    if isinstance(value, str | bytes) or not isinstance(value, Iterable):
        raise InvalidTypeError(f"{what} is {brief(value)}; a list of {of} is required")
    return list(value)


def instance(value: Any, kinds: type | tuple[type, ...], what: str, wanted: str) -> Any:
    """Returns the value; raises InvalidTypeError, which names `what` and what is `wanted`, unless
    it is one of these kinds.
    """
    if not isinstance(value, kinds):
        raise InvalidTypeError(f"{what} is {brief(value)}; {wanted} is required")
    return value


def brief(value: Any) -> str:
    """Returns the value as messages show it: at most 60 characters, then its type."""
    return f"{shown(value)} of type {type(value).__name__}"


def shown(value: Any) -> str:
    """Returns the value as Python would write it, cut to 60 characters, however long or deeply nested it is."""
    text = repr(value) if not isinstance(value, list | tuple | dict | set) else _SHORT.repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


_SHORT = reprlib.Repr()
_SHORT.maxlist = _SHORT.maxtuple = _SHORT.maxdict = _SHORT.maxset = 30
_SHORT.maxlevel = 30
_SHORT.maxstring = _SHORT.maxother = _SHORT.maxlong = 60
