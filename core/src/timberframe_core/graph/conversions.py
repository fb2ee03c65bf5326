"""Types of programs that become tensors wherever one is taken."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from timberframe_core.arguments import instance
from timberframe_core.dtypes import DType
from timberframe_core.errors import InvalidArgumentError, InvalidTypeError
from timberframe_core.graph.operation import Tensor

Conversion = Callable[..., Any]
_conversions: list[tuple[int, tuple[type, ...], Conversion]] = []


def register_tensor_conversion_function(base_type: Any, conversion_func: Conversion, priority: int = 100) -> None:
    """Makes `convert_to_tensor`, and so all that takes tensors, convert values of a type by a function.

    base_type: a type or a tuple of types. conversion_func: called with the value and the keywords dtype, name and
    as_ref; returns a tensor, of dtype where that is not None, or NotImplemented to leave the value to others. Functions
    of smaller priority are tried first. Raises InvalidTypeError for types that NumPy converts.
    """
    types = base_type if isinstance(base_type, tuple) else (base_type,)
    for one in types:
        instance(one, type, "register_tensor_conversion_function: base_type", "a type or a tuple of types")
        if issubclass(one, int | float | complex | np.generic | np.ndarray):
            raise InvalidTypeError(
                f"register_tensor_conversion_function: base_type is {one.__name__}; numbers and arrays of NumPy are "
                "converted already"
            )
    if not callable(conversion_func):
        raise InvalidTypeError(
            f"register_tensor_conversion_function: conversion_func is {conversion_func!r}; a function is required"
        )
    _conversions.append((priority, types, conversion_func))
    _conversions.sort(key=lambda c: c[0])


def converts(value: Any) -> bool:
    """Returns whether a function is registered for the type of a value."""
    return any(isinstance(value, types) for _, types, _ in _conversions)


def tensor_of(value: Any, dtype: DType | None, name: str | None) -> Tensor | None:
    """Returns what a registered function makes of a value; None where there is none for it."""
    for _, types, function in _conversions:
        if isinstance(value, types):
            made = function(value, dtype=dtype, name=name, as_ref=False)
            if made is NotImplemented:
                continue
            if not isinstance(made, Tensor):
                raise InvalidTypeError(
                    f"the conversion function of {type(value).__name__} gave a {type(made).__name__}; a tensor is "
                    "required"
                )
            if dtype is not None and made.dtype.base_dtype is not dtype.base_dtype:
                raise InvalidArgumentError(
                    f"the conversion function of {type(value).__name__} gave dtype {made.dtype.name}; {dtype.name} is "
                    "required"
                )
            return made
    return None
