"""The Hurwitz zeta function and the derivatives of digamma that it gives.

Limits: 16 ULP, as for the other functions that OpenCL C lacks, of the sum of the terms' magnitudes, which cancel only
where q is negative.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from timberframe_core.ops.base.math.binary import binary_op, broadcast_samples, value_sample
from timberframe_core.ops.definition.accuracy import Bound
from timberframe_core.ops.definition.gradients import apply_op, sum_to_shape
from timberframe_core.ops.definition.opdef import Attrs
from timberframe_core.ops.definition.samples import Arg, Sample
from timberframe_ops.math.special_functions import digamma

_TYPES = "{float, double}"

# B_2j / (2j)! of the Euler-Maclaurin formula (DLMF 25.11.43), B being Bernoulli's numbers.
_COEFFICIENTS = (
    1 / 12, -1 / 720, 1 / 30240, -1 / 1209600, 1 / 47900160, -691 / 1307674368000, 1 / 74724249600,
    -3617 / 10670622842880000, 43867 / 5109094217170944000, -174611 / 802857662698291200000,
    77683 / 14101100039391805440000, -236364091 / 1693824136731743669452800000,
)  # fmt: skip


def _positive_zeta(x: Any, q: Any) -> Any:
    """For x > 1 and q > 0: terms up to 10 + x, or till they no longer count; then the Euler-Maclaurin formula."""
    total, a, k = np.zeros(np.shape(x)), np.array(q), 0
    active = a < 10 + x
    cut = np.zeros(np.shape(x), bool)
    while active.any():
        term = np.where(active, a**-x, 0)
        total = total + term
        cut |= active & (term <= 2.0**-60 * total)
        k += 1
        a = np.where(active & ~cut, q + k, a)
        active = active & ~cut & (a < 10 + x)
    last, whole = a**-x, a ** (1 - x) / (x - 1)  # 1 - x is exact
    factor, series = x * last / a, np.zeros(np.shape(x))
    for j, c in enumerate(_COEFFICIENTS):
        series = series + c * factor
        factor = factor * ((x + 2 * j + 1) / a * ((x + 2 * j + 2) / a))
    return np.where(cut, total, total + whole + np.where(last == 0, 0, 0.5 * last + series))


def hurwitz_zeta(x: Any, q: Any, magnitude: bool = False) -> Any:
    """Returns the sum of (q + k)^-x for k >= 0; magnitude: of the absolute values of its terms.

    Infinite where x is 1, or q is a pole and x even; NaN where x is less, q another pole, or q < 0 and x no integer.
    """
    x, q = np.broadcast_arrays(np.asarray(x, np.float64), np.asarray(q, np.float64))
    with np.errstate(all="ignore"):
        even, integer = np.fmod(x, 2) == 0, x == np.floor(x)
        pole = (q <= 0) & (q == np.floor(q))
        usual = np.isfinite(x) & (x > 1) & ~np.isnan(q)
        reflected = usual & (q < 0) & ~pole & integer & np.isfinite(q)
        safe = np.where(usual, x, 2)
        # The terms below 0 are (-1)^x times the first of the zeta function from p on, up to 1 - q.
        p = np.where(reflected, np.ceil(q) - q, 0.5)
        start = np.where(reflected, 1 - p, np.where(q > 0, q, 1))
        below = _positive_zeta(safe, p) - _positive_zeta(safe, np.where(reflected, 1 - q, 1))
        sign = 1.0 if magnitude else np.where(even, 1.0, -1.0)
        value = _positive_zeta(safe, start) + np.where(reflected, sign * below, 0)
        value = np.where(usual & ((q > 0) | reflected), value, np.nan)
        return np.where((x == 1) | (usual & pole & even), np.inf, value)


def polygamma(n: Any, x: Any, magnitude: bool = False) -> Any:
    """Returns the nth derivative of digamma: (-1)^(n+1) n! zeta(n + 1, x); NaN where n is no integer of 0 or more."""
    n, x = np.broadcast_arrays(np.asarray(n, np.float64), np.asarray(x, np.float64))
    with np.errstate(all="ignore"):
        exists = np.isfinite(n) & (n >= 0) & (n == np.floor(n))
        factorial = np.array([math.gamma(k + 1) if 0 <= k < 170 else math.inf for k in n.flat]).reshape(n.shape)
        value = factorial * hurwitz_zeta(n + 1, x, magnitude)
        if not magnitude:
            value = np.where(np.fmod(n, 2) == 1, value, -value)
        value = np.where(exists, value, np.nan)
        zero = n == 0
        value[zero] = np.log1p(np.abs(x[zero])) + 1 + 1 / np.abs(x[zero]) if magnitude else digamma(x[zero])
        return value


def _reference(function: Callable[..., Any]) -> Callable[[Attrs, Any, Any], Any]:
    return lambda attrs, a, b: function(a, b).astype(a.dtype)


def _accuracy(function: Callable[..., Any]) -> Bound:
    def error(attrs: Attrs, inputs: Sequence[np.ndarray], expected: Any, u: float) -> Any:
        size = function(*inputs, magnitude=True)
        return 32 * u * np.where(np.isfinite(size), size, 0)

    return Bound(error, "16 ULP of the sum of the terms' magnitudes, as for other functions that OpenCL C lacks")


def _zeta_samples() -> Iterator[Sample]:
    yield from broadcast_samples(Arg(low=1.1, high=9, special=False), Arg(low=0.1, high=20, special=False))
    x = (1.0, 0.5, 2.0, 3.0, 2.0, 3.0, 2.5, 40.0, 2.0, 60.0, 2.0, 1.001, np.nan, 2.0, 4.0, 3.0, 2.0)
    q = (3.0, 1.0, -2.0, -2.0, -1.5, -1.5, -1.5, 0.3, 1e10, 12.0, 1e-30, 1.0, 1.0, np.nan, -20.25, -1000.5, np.inf)
    yield value_sample(("float32", "float64"), x, q)
    yield value_sample(("float64",), (1 + 2.0**-26, 1.5), (1.7e308, 1e308))


def _polygamma_samples() -> Iterator[Sample]:
    yield Sample(
        (Arg(shape=(67,), low=0, high=5, whole=True, special=False), Arg(shape=(67,), low=0.5, high=9, special=False))
    )
    for order in (0, 1, 2, 5):
        yield Sample((Arg(values=order), Arg(shape=(131,), low=0.1, high=20, special=False)))
    yield Sample((Arg(values=((1,), (3,))), Arg(shape=(1, 7), low=0.1, high=3, special=False)))
    yield Sample((Arg(values=(1, 2, 3)), Arg(shape=(257, 3), low=0.5, high=9, special=False)))
    yield Sample((Arg(values=()), Arg(shape=(2, 0), special=False)))
    a = (1.0, 1.0, 2.0, 1.5, -1.0, 2.0, 1.0, 30.0, 3.0, 1.0, np.nan, 1.0, 2.0)
    x = (0.0, -1.0, -3.0, 1.0, 1.0, -1.5, -0.25, 4.0, -7.5, 1e8, 1.0, np.inf, np.inf)
    yield value_sample(("float32", "float64"), a, x)


def _zeta_gradient(op: Any, grad: Any) -> list[Any]:
    """-x zeta(x + 1, q), which is 0 for a large x, and so first; with respect to x none is known, as in TensorFlow."""
    x, q = op.inputs
    return [None, sum_to_shape(grad * (-x * apply_op("Zeta", [x + 1, q])), q)]


def _polygamma_gradient(op: Any, grad: Any) -> list[Any]:
    """Returns the next order; the order itself is an integer."""
    a, x = op.inputs
    return [None, sum_to_shape(grad * apply_op("Polygamma", [a + 1, x]), x)]


binary_op(
    "Zeta",
    "The Hurwitz zeta function, the sum of (q + k)^-x for k >= 0, for x > 1, by element; q < 0 needs an integer x.",
    _reference(hurwitz_zeta),
    _TYPES,
    inputs=("x: T", "q: T"),
    accuracy=_accuracy(hurwitz_zeta),
    samples=_zeta_samples,
    gradient=_zeta_gradient,
    constant_inputs=("x",),
)

binary_op(
    "Polygamma",
    "The derivative of order a of digamma at x, by element; NaN where a is no integer of 0 or more.",
    _reference(polygamma),
    _TYPES,
    inputs=("a: T", "x: T"),
    accuracy=_accuracy(polygamma),
    samples=_polygamma_samples,
    gradient=_polygamma_gradient,
    constant_inputs=("a",),
)
