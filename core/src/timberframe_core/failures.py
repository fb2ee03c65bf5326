"""How messages tell what code of a plugin raised, with the file and line where it raised it."""

from __future__ import annotations

import traceback
from collections.abc import Collection
from pathlib import PurePath
from types import FrameType

from timberframe_core.errors import (
    InvalidArgumentError,
    OpError,
    ResourceExhaustedError,
    UnavailableError,
    UnknownError,
)

_NOT_THE_PLUGIN = frozenset(
    {"timberframe_core", "timberframe_ops", "timberframe_sdk", "numpy", "pluggy", "importlib", "_frozen_importlib"}
)
"""Packages through which a plugin's code is called, or which it calls with wrong arguments."""


def describe_failure(error: BaseException) -> str:
    """Returns what an exception of a plugin says, where it was raised: ``ValueError: no
    driver  [acme/__init__.py:12]``.

    UnavailableError, which says that hardware is absent, needs neither type nor place.
    """
    if isinstance(error, UnavailableError):
        return str(error)
    where = _location(error)
    return f"{type(error).__name__}: {_message(error)}" + (f"  [{where}]" if where else "")


_TOO_BIG = ("array is too big", "Maximum allowed dimension exceeded", "Maximum allowed size exceeded")
"""The words of NumPy's ValueErrors for arrays that no memory can hold."""


def class_for(error: BaseException) -> type[OpError]:
    """Returns the class of the error of an op whose own code on the host raised `error`.

    Libraries such as NumPy and Pillow raise ValueError and the like for values that they do not take: these are the
    input's.
    """
    if isinstance(error, MemoryError) or str(error).startswith(_TOO_BIG):
        return ResourceExhaustedError
    if type(error).__name__ == "DecompressionBombError":  # Pillow's, which need not be there
        return ResourceExhaustedError
    if isinstance(error, ValueError | IndexError | OverflowError):
        return InvalidArgumentError
    return UnknownError


def raised(error: BaseException, skipped: Collection[str] = _NOT_THE_PLUGIN) -> str:
    """Returns what code of a plugin raised, for the message of a node: ``TypeError: no (raised in
    launch, kernels.py:49)``.

    skipped: packages whose own calls are not shown where they are the innermost ones.
    """
    found = _innermost(error, skipped)
    text = f"{type(error).__name__}: {error}"
    if found is None:
        return text
    code = found[0].f_code
    return f"{text} (raised in {code.co_name}, {PurePath(code.co_filename).name}:{found[1]})"


def _message(error: BaseException) -> str:
    return error.msg if isinstance(error, SyntaxError) else str(error)


def _location(error: BaseException) -> str:
    """File and line of the innermost call that is the plugin's, or a package's that it uses; "" where there is none."""
    if isinstance(error, SyntaxError) and error.filename:
        return f"{error.filename}:{error.lineno}"
    found = _innermost(error)
    return "" if found is None else f"{found[0].f_code.co_filename}:{found[1]}"


def _innermost(error: BaseException, skipped: Collection[str] = _NOT_THE_PLUGIN) -> tuple[FrameType, int] | None:
    """Frame and line of the innermost call that is in none of these packages; None where there is none."""
    found = None
    for frame, line in traceback.walk_tb(error.__traceback__):
        if str(frame.f_globals.get("__name__", "")).partition(".")[0] not in skipped:
            found = frame, line
    return found
