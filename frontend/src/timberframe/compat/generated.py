"""`tensorflow.python.ops.gen_*_ops`: ops as functions of positions and names, by names in lower case."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import cache
from typing import Any

from timberframe import raw_ops
from timberframe_core.ops.definition import registry


@cache
def _ops() -> dict[str, str]:
    """Returns the names of ops by themselves in lower case and without underscores, which
    TensorFlow puts by many rules.
    """
    return {op.name.lower(): op.name for op in registry.all_ops() if op.name.isalnum()}


def find(name: str) -> Callable[..., Any]:
    """Returns the function of an op by its name in lower case, with underscores; older programs put one before it."""
    op = _ops().get(name.replace("_", ""))
    if op is None:
        raise AttributeError(f"there is no op {name!r}")
    function = getattr(raw_ops, op)
    parameters = list(inspect.signature(function).parameters)

    def call(*args: Any, **kwargs: Any) -> Any:
        if len(args) > len(parameters):
            raise TypeError(f"{name}: {len(args)} arguments given; at most {len(parameters)} may be")
        return function(**dict(zip(parameters, args, strict=False)), **kwargs)

    call.__name__ = call.__qualname__ = name
    call.__doc__ = function.__doc__
    return call
