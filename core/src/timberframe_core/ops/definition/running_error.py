"""Running error analysis: formulas evaluated together with a bound on their rounding error.

A formula written with operators and the functions of this module runs on arrays and gives values, or on `Approximate`
and gives values with bounds. Each operation adds one rounding to the errors of its operands (Higham, Accuracy and
Stability of Numerical Algorithms, 2nd ed., section 3.3); monotone functions are evaluated at both ends of the interval.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

_COMPLEX_OPERATION = 8.0
"""Roundings that a complex operation counts as: a quotient has at most this many (Higham, lemma 3.5)."""

_POWER_ULP = 32.0
"""Unit roundoffs of a power or exponential: 16 ULP, the limit of OpenCL C's pow."""

_STORED = {"float16": 2.0**-11, "bfloat16": 2.0**-8}


def stored_roundoff(dtype: str, u: float) -> float:
    """Returns the unit roundoff where each step's result is stored in the dtype, and not only the
    last one; u for wide ones.
    """
    return _STORED.get(dtype, u)


class Approximate:
    """Values of an exact formula, and how far a computation of them in unit roundoff `u` may be off."""

    __array_priority__ = 100  # so that ndarray + Approximate asks the Approximate

    def __init__(self, value: Any, u: float, error: Any = 0.0) -> None:
        self.value = np.asarray(value)
        self.u = u
        self.error = np.broadcast_to(np.asarray(error, np.float64), self.value.shape)

    def rounded(self, value: Any, error: Any, roundings: float = 1.0) -> Approximate:
        """`value` with the error that the operands cause, and that of the operation itself."""
        count = roundings * (_COMPLEX_OPERATION if np.iscomplexobj(value) else 1.0)
        return Approximate(value, self.u, error + count * self.u * (np.abs(value) + error))

    def _other(self, x: Any) -> Approximate:
        return x if isinstance(x, Approximate) else Approximate(x, self.u)

    def __add__(self, x: Any) -> Approximate:
        y = self._other(x)
        return self.rounded(self.value + y.value, self.error + y.error)

    def __sub__(self, x: Any) -> Approximate:
        y = self._other(x)
        return self.rounded(self.value - y.value, self.error + y.error)

    def __rsub__(self, x: Any) -> Approximate:
        return self._other(x) - self

    def __mul__(self, x: Any) -> Approximate:
        y = self._other(x)
        error = np.abs(self.value) * y.error + np.abs(y.value) * self.error + self.error * y.error
        return self.rounded(self.value * y.value, error)

    def __truediv__(self, x: Any) -> Approximate:
        y = self._other(x)
        least = np.abs(y.value) - y.error
        quotient = self.value / y.value
        error = np.where(least > 0, (self.error + np.abs(quotient) * y.error) / least, np.inf)
        return self.rounded(quotient, np.where(self.error + y.error > 0, error, 0.0))

    def __rtruediv__(self, x: Any) -> Approximate:
        return self._other(x) / self

    def __neg__(self) -> Approximate:
        return Approximate(-self.value, self.u, self.error)

    __radd__, __rmul__ = __add__, __mul__

    def __getitem__(self, key: Any) -> Approximate:
        return Approximate(self.value[key], self.u, self.error[key])

    def monotone(self, function: Callable[[Any], Any], roundings: float = 1.0) -> Approximate:
        """Returns a function that rises or falls over the interval, whose own error is that many unit roundoffs."""
        value = function(self.value)
        if np.iscomplexobj(value):  # of the root: it changes at most as fast as at the near end of the interval
            least = np.maximum(np.abs(self.value) - self.error, 0)
            return self.rounded(value, self.error / (np.sqrt(least) + np.sqrt(np.abs(self.value))), roundings)
        ends = function(self.value - self.error), function(self.value + self.error)
        change = np.maximum(*(np.abs(end - value) for end in ends))
        return self.rounded(value, np.where(self.error > 0, change, 0.0), roundings)


def _apply(x: Any, function: Callable[[Any], Any], roundings: float = 1.0) -> Any:
    return x.monotone(function, roundings) if isinstance(x, Approximate) else function(x)


def sqrt(x: Any) -> Any:
    """Returns the square root."""
    return _apply(x, np.sqrt)


def power(x: Any, exponent: Any) -> Any:
    """x to an exponent that has no error."""
    wanted = exponent.value if isinstance(exponent, Approximate) else exponent
    return _apply(x, lambda base: np.power(base, wanted), _POWER_ULP)


def exp(x: Any) -> Any:
    """e to the power of x."""
    return _apply(x, np.exp, _POWER_ULP)


def absolute(x: Any) -> Any:
    """Returns the absolute value, which adds no rounding."""
    return Approximate(np.abs(x.value), x.u, x.error) if isinstance(x, Approximate) else np.abs(x)


def sign(x: Any) -> Any:
    """-1, 0 or 1, which is uncertain by 2 where x may lie on either side of 0."""
    if not isinstance(x, Approximate):
        return np.sign(x)
    return Approximate(np.sign(x.value), x.u, np.where(np.abs(x.value) <= x.error, np.where(x.error > 0, 2.0, 0), 0))


def maximum(x: Any, y: Any) -> Any:
    """Returns the higher of two, which adds no rounding."""
    if not isinstance(x, Approximate):
        return np.maximum(x, y)
    other = y if isinstance(y, Approximate) else Approximate(y, x.u)
    return Approximate(np.maximum(x.value, other.value), x.u, np.maximum(x.error, other.error))


def above(x: Any, limit: Any, then: Any) -> Any:
    """`then` where x > limit, elsewhere 0; uncertain by `then` itself where x may lie on either side."""
    if not isinstance(x, Approximate):
        return np.where(x > limit, then, np.zeros_like(then))
    value = np.where(x.value > limit.value, then.value, 0.0)
    near = np.abs(x.value - limit.value) <= x.error + limit.error
    error = np.where(near, np.abs(then.value) + then.error, np.where(x.value > limit.value, then.error, 0.0))
    return Approximate(value, x.u, error)


def values(x: Any) -> Any:
    """Returns the plain values, for decisions that no error may change."""
    return x.value if isinstance(x, Approximate) else x
