"""`tensorflow.python.util.tf_decorator`: functions that stand for others."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any


def make_decorator(
    target: Callable[..., Any],
    decorator_func: Callable[..., Any],
    decorator_name: str | None = None,
    decorator_doc: str = "",
    decorator_argspec: Any = None,
) -> Callable[..., Any]:
    """decorator_func with the name, documentation and signature of target; the other arguments change nothing."""
    return functools.update_wrapper(decorator_func, target)


def unwrap(maybe_tf_decorator: Callable[..., Any]) -> tuple[list[Callable[..., Any]], Callable[..., Any]]:
    """The functions around a function, the outermost first, and the function itself."""
    around: list[Callable[..., Any]] = []
    inner = maybe_tf_decorator
    while hasattr(inner, "__wrapped__"):
        around.append(inner)
        inner = inner.__wrapped__
    return around, inner
