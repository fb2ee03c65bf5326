"""Dimension: one size of a shape, which may be unknown."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from timberframe_core.errors import InvalidArgumentError, InvalidTypeError


class Dimension:
    """A size, or an unknown one; arithmetic with an unknown size gives an unknown one, comparison with it None.

    value: an integer that is not negative, None where it is unknown, or a Dimension. It serves as an integer where it
    is known: as an index, in `range`, in NumPy.
    """

    __slots__ = ("_value",)

    def __init__(self, value: Any) -> None:
        self._value = _value(value)
        if self._value is not None and self._value < 0:
            raise InvalidArgumentError(f"Dimension is {self._value}; it must not be negative")

    @property
    def value(self) -> int | None:
        """The size, None where it is unknown."""
        return self._value

    def is_compatible_with(self, other: Any) -> bool:
        """Returns whether both may be the same size."""
        size = _value(other)
        return self._value is None or size is None or self._value == size

    def assert_is_compatible_with(self, other: Any) -> None:
        """Raises InvalidArgumentError unless both may be the same size."""
        if not self.is_compatible_with(other):
            raise InvalidArgumentError(f"Dimensions {self} and {Dimension(other)} are not compatible; they must agree")

    def merge_with(self, other: Any) -> Dimension:
        """Returns what is known when both are the same size; raises InvalidArgumentError where they contradict."""
        self.assert_is_compatible_with(other)
        return Dimension(other if self._value is None else self._value)

    def __truediv__(self, other: Any) -> Any:
        raise InvalidTypeError(f"Dimension {self} is divided by {other!r} with /; use // for sizes")

    def __rtruediv__(self, other: Any) -> Any:
        raise InvalidTypeError(f"{other!r} is divided by Dimension {self} with /; use // for sizes")

    def _known(self) -> int:
        if self._value is None:
            raise InvalidTypeError("Dimension is unknown and used as an integer; tf.shape gives it in the run")
        return self._value

    def __index__(self) -> int:
        return self._known()

    def __int__(self) -> int:
        return self._known()

    def __float__(self) -> float:
        return float(self._known())

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.array(self._known(), dtype)

    def __bool__(self) -> bool:
        return bool(self._value)

    def __hash__(self) -> int:
        return hash(self._value)

    def __reduce__(self) -> Any:
        return Dimension, (self._value,)

    def __format__(self, spec: str) -> str:
        return format(str(self) if self._value is None else self._value, spec)

    def __repr__(self) -> str:
        return f"Dimension({self._value})"

    def __str__(self) -> str:
        return "?" if self._value is None else str(self._value)

    def __eq__(self, other: object) -> Any:
        return _compare(operator.eq, self, other)

    def __ne__(self, other: object) -> Any:
        return _compare(operator.ne, self, other)


def _value(given: Any) -> int | None:
    """Returns the size that a number, None or Dimension means; InvalidTypeError for anything else."""
    if given is None or type(given) is int:
        return given
    if isinstance(given, Dimension):
        return given.value
    try:
        if not isinstance(given, float) or not given.is_integer():
            return operator.index(given)
        return int(given)
    except TypeError:
        raise InvalidTypeError(f"Dimension of {given!r}: an integer, or None for unknown, is required") from None


def _compare(function: Callable[[Any, Any], Any], a: Dimension, b: Any) -> Any:
    try:
        other = _value(b)
    except InvalidTypeError:
        return NotImplemented
    return None if a.value is None or other is None else function(a.value, other)


def _install_operators() -> None:
    """Arithmetic with Dimensions and integers, and order."""

    def arithmetic(function: Callable[[Any, Any], Any], reverse: bool) -> Callable[[Dimension, Any], Any]:
        def operate(self: Dimension, other: Any) -> Any:
            try:
                sizes = (_value(other), self.value) if reverse else (self.value, _value(other))
            except InvalidTypeError:
                return NotImplemented
            return Dimension(None if None in sizes else function(*sizes))

        return operate

    for word in ("add", "sub", "mul", "floordiv", "mod"):
        function = getattr(operator, word)
        setattr(Dimension, f"__{word}__", arithmetic(function, False))
        setattr(Dimension, f"__r{word}__", arithmetic(function, True))
    for word in ("lt", "le", "gt", "ge"):

        def compare(self: Dimension, other: Any, function: Any = getattr(operator, word)) -> Any:
            return _compare(function, self, other)

        setattr(Dimension, f"__{word}__", compare)


_install_operators()
