"""`tensorflow.python.util.tf_decorator`: functions that stand for others."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from timberframe_core.library import library_folders

_MARK = "_tf_decorator"
"""The attribute of what `make_decorator` made, as TensorFlow's programs look for it."""


def make_decorator(
    target: Callable[..., Any],
    decorator_func: Callable[..., Any],
    decorator_name: str | None = None,
    decorator_doc: str = "",
    decorator_argspec: Any = None,
) -> Callable[..., Any]:
    """decorator_func with the name, documentation and signature of target; the other arguments change nothing."""
    made = functools.update_wrapper(decorator_func, target)
    setattr(made, _MARK, True)
    return made


def unwrap(maybe_tf_decorator: Callable[..., Any]) -> tuple[list[Callable[..., Any]], Callable[..., Any]]:
    """Returns what `make_decorator` and the library put around a function, the outermost
    first, and the function itself.
    """
    around: list[Callable[..., Any]] = []
    inner = maybe_tf_decorator
    while hasattr(inner, "__wrapped__") and (hasattr(inner, _MARK) or is_of_the_library(inner)):
        around.append(inner)
        inner = inner.__wrapped__
    return around, inner


def is_of_the_library(function: Callable[..., Any]) -> bool:
    """Returns whether a function is defined in Timberframe, or in a package that adds to it."""
    code = getattr(function, "__code__", None)
    return code is not None and code.co_filename.startswith(library_folders())
