"""`tensorflow.python.util.tf_inspect`: Python's `inspect`, which looks at functions behind their decorators.

Python itself has no `getargspec` any more.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

from timberframe.compat.decorators import is_of_the_library, unwrap


class ArgSpec(NamedTuple):
    """The parameters of a function that takes no keyword-only ones: names, and the values of the last of them."""

    args: list[str]
    varargs: str | None
    keywords: str | None
    defaults: tuple[Any, ...] | None


FullArgSpec = inspect.FullArgSpec


def getfullargspec(obj: Callable[..., Any]) -> inspect.FullArgSpec:
    """Returns the parameters of a function as it was defined; of an object that can be called those of its `__call__`.

    Functions of the library have no annotations here, as those of TensorFlow 1.
    """
    inner = unwrap(obj)[1]
    plain = inspect.isroutine(inner) or inspect.isclass(inner) or isinstance(inner, partial)
    spec = inspect.getfullargspec(inner if plain else unwrap(type(inner).__call__)[1])
    return spec._replace(annotations={}) if is_of_the_library(inner) else spec


def getargspec(obj: Callable[..., Any]) -> ArgSpec:
    """Returns the parameters of a function as it was defined; ValueError where it has keyword-only ones."""
    spec = getfullargspec(obj)
    if spec.kwonlyargs:
        raise ValueError(f"getargspec: {obj!r} has keyword-only parameters {spec.kwonlyargs}; use getfullargspec")
    return ArgSpec(spec.args, spec.varargs, spec.varkw, spec.defaults)


def getcallargs(*func_and_positional: Any, **named: Any) -> dict[str, Any]:
    """Returns the value of each parameter in a call of a function with these arguments."""
    function, *positional = func_and_positional
    return inspect.getcallargs(unwrap(function)[1], *positional, **named)


def __getattr__(name: str) -> Any:
    return getattr(inspect, name)


def __dir__() -> list[str]:
    return sorted({*globals(), *dir(inspect)})
