"""`tensorflow.python.util.deprecation` and `tf_export`: decorators that programs for TensorFlow put on their own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any, TypeVar

from timberframe_core import logging

Function = TypeVar("Function", bound=Callable[..., Any])


def deprecated(
    date: str | None, instructions: str, warn_once: bool = True
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Logs a warning with instructions when the function is called; warn_once: only at its first call."""

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        warned: list[bool] = []

        @wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            if _loud and not (warn_once and warned):
                warned.append(True)
                when = f"after {date}" if date else "in a future version"
                logging.warning(f"{function.__qualname__} is deprecated and will be removed {when}. {instructions}")
            return function(*args, **kwargs)

        return call

    return decorate


def deprecated_args(date: str | None, instructions: str, *names: Any, **kwargs: Any) -> Callable[[Function], Function]:
    """Returns the function itself: uses of deprecated arguments are not reported."""
    return lambda function: function


deprecated_arg_values = deprecated_args
_loud = [True]


@contextmanager
def silence() -> Iterator[None]:
    """Inside, `deprecated` logs nothing."""
    before = _loud[:]
    _loud.clear()
    try:
        yield
    finally:
        _loud[:] = before


def tf_export(*names: str, **kwargs: Any) -> Callable[[Function], Function]:
    """Returns the decorated object itself: names are TensorFlow's own."""
    return lambda value: value
