"""Derivatives from either side of a point, which need not exist at the point itself.

They are limits of the slopes next to the point: f is taken at k h for k from 1 to 4, never at 0, so that a function
that jumps there, or is not defined there, has them all the same. The derivative at 0 of the polynomial through the four
errs by O(h^3); its difference from that of the polynomial through the first three, which errs by O(h^2), bounds it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from math import comb
from typing import Any

import numpy as np

STEP = 2.0**-12
DETERMINED = 1e-4
"""A slope is used if its bound is below this fraction of itself and of the function's size."""


def _slope_weights(count: int) -> list[Fraction]:
    """Returns the weights of values at 1, 2, ..., count in the derivative at 0 of the polynomial through them."""
    harmonic = sum((Fraction(1, k) for k in range(1, count + 1)), Fraction(0))
    return [(-1) ** k * comb(count, k) * (harmonic - Fraction(1, k)) for k in range(1, count + 1)]


MOST = _slope_weights(4)
FEWER = [*_slope_weights(3), Fraction(0)]
VALUE = [4.0, -6.0, 4.0, -1.0]
"""The value at 0 of the polynomial through those at 1, 2, 3 and 4."""
TABLE = np.array([[float(w) for w in MOST], [float(w) for w in FEWER], VALUE])


@dataclass(frozen=True)
class Side:
    """Several functions on one side of a point: their slopes, bounds on the errors of these, and their limits.

    NaN where differences do not determine a slope.
    """

    slopes: np.ndarray
    bounds: np.ndarray
    limits: np.ndarray


def side(f: Callable[[float], np.ndarray], sign: int) -> Side:
    """Returns the slopes of f, an array for each number, at 0 from the right (sign 1) or the left (sign -1)."""
    found = np.array([f(sign * k * STEP) for k in range(1, len(MOST) + 1)])
    with np.errstate(all="ignore"):
        most, fewer, limits = np.tensordot(TABLE, found, 1)
        slopes = sign * most / STEP
        size = np.max(np.abs(found), axis=0)
        bounds = np.abs(most - fewer) / STEP + 2.0**-48 * size / STEP
        known = np.isfinite(slopes) & (bounds <= DETERMINED * (np.abs(slopes) + size) + 2.0**-45)
    return Side(np.where(known, slopes, np.nan), np.where(known, bounds, np.nan), limits)


def precise_side(f: Callable[[Any], Any | None], sign: int, step: Any) -> float:
    """Returns the slope of one function of an mpmath number in the same way; NaN where it is not determined.

    f gives None where it has no value.
    """
    found: list[Any] = [f(sign * k * step) for k in range(1, len(MOST) + 1)]
    if any(y is None for y in found):
        return float("nan")
    most, fewer = (
        sign * sum(w.numerator * y / w.denominator for w, y in zip(weights, found, strict=True)) / step
        for weights in (MOST, FEWER)
    )
    settled = bool(abs(most - fewer) <= DETERMINED**2 * (abs(most) + max(abs(y) for y in found)))
    return float(most) if settled else float("nan")
