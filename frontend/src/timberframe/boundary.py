"""The boundary of the public API: what a function of `tf.*` raises is one of `tf.errors`, whatever it was given.

Functions check what users often get wrong, with messages of their own. For all other arguments of a wrong kind, this
turns the exception that Python or NumPy raised deep inside into an error that names the function; the first exception
stays its cause. Exceptions of the user's own functions, which `tf.cond` and others call, pass as they are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from enum import Enum
from functools import cache, wraps
from pathlib import Path
from types import FunctionType, ModuleType, TracebackType
from typing import Any

import ml_dtypes
import numpy as np

from timberframe_core.errors import InvalidArgumentError, InvalidTypeError, OpError
from timberframe_core.library import library_folders

_RAW: Mapping[type[Exception], type[OpError]] = {
    TypeError: InvalidTypeError,
    AttributeError: InvalidTypeError,
    ValueError: InvalidArgumentError,
    LookupError: InvalidArgumentError,
    ArithmeticError: InvalidArgumentError,
    AssertionError: InvalidArgumentError,
}

_WITH_SETTINGS = (
    "timberframe.api.", "timberframe_core.config", "timberframe_core.graph.device_spec", "timberframe.saved_model.",
    "timberframe.train.",
)  # fmt: skip

_OURS = ("timberframe.", "timberframe_contrib.", "timberframe_core.")
"""Prefixes of the modules whose functions and classes are offered with the boundary around them."""

_wrapped: dict[Callable[..., Any], Callable[..., Any]] = {}
"""By function, what modules offer for it: that of another module may come as it is offered there."""


def guard(modules: Iterable[ModuleType], space: str = "") -> None:
    """Puts the boundary around what modules offer: functions, and the constructors of classes that take settings.

    A function that several modules offer is wrapped once, so that all of them offer the same one. space: what users
    know the modules by, `tf` and the module's name by default.
    """
    for module in modules:
        known_as = space or ".".join(["tf", *module.__name__.split(".")[1:]])
        for name in _public(module):
            value = getattr(module, name)
            setattr(module, name, guarded(value, f"{known_as}.{name}", at_home=value.__module__ == module.__name__))


def guarded(value: Any, name: str, at_home: bool = False) -> Any:
    """Returns what a module offers for a function or class (another value is offered as it is),
    which users know by this name.

    A function that has a name already keeps it. at_home: it is offered by the module that defines it.
    """
    if isinstance(value, FunctionType):
        if value not in _wrapped:
            call = _guarded(value, name)
            if not at_home:  # pickles name a function by where it is offered
                space, _, call.__qualname__ = name.rpartition(".")
                call.__module__ = f"timberframe{space.removeprefix('tf')}"
            _wrapped[value] = _wrapped[call] = call
        return _wrapped[value]
    if isinstance(value, type) and f"{value.__module__}".startswith(_WITH_SETTINGS) and not issubclass(value, Enum):
        made = vars(value).get("__init__")
        if isinstance(made, FunctionType) and not hasattr(made, "__wrapped__"):
            setattr(value, "__init__", _guarded(made, name))  # noqa: B010 - mypy forbids assigning it
    return value


def _public(module: ModuleType) -> list[str]:
    """Returns the names that a module offers: those of `__all__`, all of a package, or what a module itself defines."""
    names = [n for n in getattr(module, "__all__", vars(module)) if not n.startswith("_")]
    own = None if hasattr(module, "__all__") or hasattr(module, "__path__") else module.__name__
    where = {n: getattr(getattr(module, n), "__module__", None) or "" for n in names}
    return [n for n in names if where[n].startswith(_OURS) and own in (None, where[n])]


def _guarded(function: Callable[..., Any], name: str) -> Callable[..., Any]:
    @wraps(function)
    def call(*arguments: Any, **named: Any) -> Any:
        try:
            return function(*arguments, **named)
        except OpError:
            raise
        except tuple(_RAW) as e:
            if not _arose_inside(e.__traceback__):
                raise
            kind = next(error for raw, error in _RAW.items() if isinstance(e, raw))
            raise kind(f"{name}: {type(e).__name__}: {e}; arguments of the kinds that it documents are required") from e

    return call


@cache
def _folders() -> tuple[str, str, tuple[str, ...]]:
    """Returns the folders of Python's library, of installed packages, and of those packages that our code calls."""
    import sysconfig  # here, since these take long and `import timberframe` does without

    import google.protobuf

    called = (f"{Path(m.__path__[0])}/" for m in (np, ml_dtypes, google.protobuf))
    return f"{sysconfig.get_path('stdlib')}/", f"{sysconfig.get_path('purelib')}/", ("<frozen ", *called)


def _arose_inside(traceback: TracebackType | None) -> bool:
    """Returns whether an exception came from the function itself: not from its call, and not
    from functions of the user.
    """
    inner = None if traceback is None else traceback.tb_next  # the first entry is `call` itself
    if inner is None:
        return False
    library, installed, called = _folders()
    while inner is not None:
        file = inner.tb_frame.f_code.co_filename
        in_library = file.startswith(library) and not file.startswith(installed)
        if not in_library and not file.startswith((*called, *library_folders())):
            return False
        inner = inner.tb_next
    return True
