"""Derivatives by central differences, with a bound on their error.

Along a direction v, D(h) = (f(x + h v) - f(x - h v)) / 2h errs by c h^2 + O(h^4) where f is smooth. Richardson's
extrapolation R(h) = (4 D(h) - D(2h)) / 3 cancels the first term. What is left of it is below |R(h) - R(2h)|, which is
about 15 times the error of R(h), as O(h^4) shrinks by 16. If f is known to `noise`, rounding adds at most noise (4/h +
1/2h) / 3 = 1.5 noise / h. The bound is the sum of both. h = 2^-11 makes the two of the same order for functions of
order one: h^4 = 6e-14, and 2^-53 / h = 2e-13.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

STEP = 2.0**-11


@dataclass(frozen=True)
class Slope:
    """A directional derivative, and how far it may be off. The bound is large where f has a kink nearby."""

    value: float
    bound: float


def slope(f: Callable[[float], float], noise: float, step: float = STEP) -> Slope:
    """Returns the derivative at 0 of a function of one number that is known to within `noise`."""
    near, middle, far = ((f(k * step) - f(-k * step)) / (2 * k * step) for k in (1, 2, 4))
    first, second = (4 * near - middle) / 3, (4 * middle - far) / 3
    return Slope(first, abs(first - second) + 1.5 * noise / step)


def directions(shape: tuple[int, ...], dtype: np.dtype, count: int, rng: np.random.Generator) -> list[np.ndarray]:
    """At most `count` directions that together touch every element once; complex ones point anywhere in the plane.

    Their entries are between 1/2 and 1 in modulus, so that no element counts for little.
    """
    size = int(np.prod(shape, dtype=np.int64))
    order = rng.permutation(size)
    result = []
    for k in range(min(count, size)):
        v = np.zeros(size, np.complex128 if dtype.kind == "c" else np.float64)
        chosen = order[k::count]
        weights = rng.uniform(0.5, 1.0, chosen.size)
        signs = np.exp(2j * np.pi * rng.random(chosen.size)) if dtype.kind == "c" else rng.choice((-1, 1), chosen.size)
        v[chosen] = weights * signs
        result.append(v.reshape(shape))
    return result
