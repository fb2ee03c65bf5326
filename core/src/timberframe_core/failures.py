"""How messages tell why a plugin cannot be used: what was raised, with the file and line where its code raised it."""

from __future__ import annotations

import traceback

from timberframe_core.errors import UnavailableError

_NOT_THE_PLUGIN = frozenset({"timberframe_core", "timberframe_sdk", "pluggy", "importlib", "_frozen_importlib"})
"""Packages through which a plugin's code is called, or which it calls with wrong arguments."""


def describe_failure(error: BaseException) -> str:
    """What an exception of a plugin says, where it was raised: ``ValueError: no driver  [acme/__init__.py:12]``.

    UnavailableError, which says that hardware is absent, needs neither type nor place.
    """
    if isinstance(error, UnavailableError):
        return str(error)
    where = _location(error)
    return f"{type(error).__name__}: {_message(error)}" + (f"  [{where}]" if where else "")


def _message(error: BaseException) -> str:
    return error.msg if isinstance(error, SyntaxError) else str(error)


def _location(error: BaseException) -> str:
    """File and line of the innermost call that is the plugin's, or a package's that it uses; "" where there is none."""
    if isinstance(error, SyntaxError) and error.filename:
        return f"{error.filename}:{error.lineno}"
    found = ""
    for frame, line in traceback.walk_tb(error.__traceback__):
        if str(frame.f_globals.get("__name__", "")).partition(".")[0] not in _NOT_THE_PLUGIN:
            found = f"{frame.f_code.co_filename}:{line}"
    return found
