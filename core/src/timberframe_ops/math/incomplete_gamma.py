"""The regularised incomplete gamma functions P(a, x) and Q = 1 - P, and dP/da.

P is the probability that a gamma number of shape a is below x, and p its density there. P comes from a series up to
x = a + 1, Q from a continued fraction from there on; the other one is 1 less it. How a gamma number moves with a when
its probability stays is -(dP/da) / p (M. Figurnov, S. Mohamed, A. Mnih: Implicit Reparameterization Gradients, 2018).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from timberframe_core.errors import UnimplementedError
from timberframe_core.ops.base.math.binary import binary_op, value_sample
from timberframe_core.ops.definition.accuracy import Bound
from timberframe_core.ops.definition.gradients import apply_op, sum_to_shape
from timberframe_core.ops.definition.opdef import Attrs
from timberframe_core.ops.definition.samples import Arg, Sample
from timberframe_core.shapes import StaticShape
from timberframe_ops.math.special_functions import digamma, lgamma

MOST_TERMS = 20_000
"""Terms of the series, or levels of the fraction; about 9 sqrt(alpha) are needed."""

UNIT = 2.0**-53
_CONVERGED = 2.0**-49
"""Convergents that differ by less have converged: their own roundings keep them moving by a few units."""
_RESCALE = 2.0**200


def _series(a: np.ndarray, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """S and dS/da with P = p x / a S, S the sum of x^n / ((a + 1) ... (a + n)) (DLMF 8.7.1)."""
    total, slope = np.ones_like(x), np.zeros_like(x)
    term, harmonic = np.ones_like(x), np.zeros_like(x)
    active = np.arange(x.size)
    for n in range(1, MOST_TERMS):
        k = a[active] + n
        term[active] *= x[active] / k
        harmonic[active] -= 1 / k
        change = term[active] * harmonic[active]
        total[active] += term[active]
        slope[active] += change
        active = active[~(np.abs(change) <= UNIT * np.abs(slope[active]))]
        if not len(active):
            break
    return total, slope


def _fraction(a: np.ndarray, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """F and dF/da with 1 - P = p x F, F the continued fraction of DLMF 8.9.2, by its convergents."""
    b = x + 1 - a
    one, zero = np.ones_like(x), np.zeros_like(x)
    # Numerators and denominators of the last two convergents, and their derivatives.
    p0, q0, dp0, dq0 = zero.copy(), one.copy(), zero.copy(), zero.copy()
    p1, q1, dp1, dq1 = one.copy(), b.copy(), zero.copy(), -one
    value, slope = p1 / q1, dp1 / q1 - p1 * dq1 / (q1 * q1)
    active = np.arange(x.size)
    for k in range(1, MOST_TERMS):
        i = active
        step, level = -k * (k - a[i]), b[i] + 2 * k
        p2, q2 = level * p1[i] + step * p0[i], level * q1[i] + step * q0[i]
        dp2 = level * dp1[i] - p1[i] + step * dp0[i] + k * p0[i]
        dq2 = level * dq1[i] - q1[i] + step * dq0[i] + k * q0[i]
        p0[i], q0[i], dp0[i], dq0[i] = p1[i], q1[i], dp1[i], dq1[i]
        p1[i], q1[i], dp1[i], dq1[i] = p2, q2, dp2, dq2
        made, turned = p2 / q2, (dp2 - p2 / q2 * dq2) / q2
        converged = np.abs(made - value[i]) <= _CONVERGED * np.abs(made)
        converged &= np.abs(turned - slope[i]) <= _CONVERGED * np.abs(turned)
        value[i], slope[i] = made, turned
        large = i[np.abs(q1[i]) > _RESCALE]
        for held in (p0, q0, dp0, dq0, p1, q1, dp1, dq1):
            held[large] /= _RESCALE
        active = i[~converged]
        if not len(active):
            break
    return value, slope


def gamma_sample_slope(alpha: Any, sample: Any, magnitude: bool = False) -> Any:
    """dx/da at gamma numbers x of the shape parameters a; NaN where there can be none.

    magnitude: the sum of the magnitudes of the two parts that cancel.
    """
    with np.errstate(all="ignore"):
        a, x = np.broadcast_arrays(np.asarray(alpha, np.float64), np.asarray(sample, np.float64))
        shape, a, x = a.shape, a.reshape(-1), x.reshape(-1)
        valid = (a > 0) & (x > 0) & np.isfinite(a) & np.isfinite(x)
        low = valid & (x < a + 1)
        out = np.where((a > 0) & (x == 0), 0.0, np.nan)
        for chosen, parts in ((low, _series), (valid & ~low, _fraction)):
            aa, xx = a[chosen], x[chosen]
            value, slope = parts(aa, xx)
            first = value * (np.log(xx) - digamma(aa + 1 if parts is _series else aa))
            factor = -xx / aa if parts is _series else xx
            out[chosen] = np.abs(factor) * (np.abs(first) + np.abs(slope)) if magnitude else factor * (first + slope)
        return out.reshape(shape)


def _density_times_x(a: Any, x: Any) -> Any:
    """p x = x^a e^-x / gamma(a)."""
    return np.exp(a * np.log(x) - x - lgamma(a))


def _inside(a: Any, x: Any) -> Any:
    return (a > 0) & (x > 0) & np.isfinite(a) & np.isfinite(x)


def incomplete_gamma(a: Any, x: Any, upper: bool = False) -> Any:
    """P(a, x), or Q(a, x) if `upper`; NaN unless a > 0 and x >= 0, but P(a, 0) = 0 for every a."""
    a, x = np.broadcast_arrays(np.asarray(a, np.float64), np.asarray(x, np.float64))
    shape, a, x = a.shape, a.reshape(-1), x.reshape(-1)
    with np.errstate(all="ignore"):
        out = np.where((a > 0) & (x >= 0) & (np.isfinite(a) | np.isfinite(x)), x >= a, np.nan)
        out[(x == 0) & ~((a <= 0) & upper)] = 0.0
        out = 1 - out if upper else out
        for chosen, parts in ((_inside(a, x) & (x < a + 1), _series), (_inside(a, x) & (x >= a + 1), _fraction)):
            aa, xx = a[chosen], x[chosen]
            front = _density_times_x(aa, xx)
            part = np.where(front > 0, front * parts(aa, xx)[0], 0.0)
            lower = parts is _series
            part = part / aa if lower else part
            out[chosen] = part if lower != upper else 1 - part
        return out.reshape(shape)


def incomplete_gamma_slope(a: Any, x: Any, magnitude: bool = False) -> Any:
    """dP/da; magnitude: with that of the parts of `gamma_sample_slope` in its place."""
    a, x = np.broadcast_arrays(np.asarray(a, np.float64), np.asarray(x, np.float64))
    with np.errstate(all="ignore"):
        density = _density_times_x(a, x) / x
        slope = np.where(density > 0, -density * gamma_sample_slope(a, x, magnitude), 0.0)
        outside = np.where((a > 0) & (x >= 0) & (np.isfinite(a) | np.isfinite(x)), 0.0, np.nan)
        return np.where(_inside(a, x), slope, np.where(x == 0, 0.0, outside))


def _front_error(a: Any, x: Any, u: float) -> Any:
    """Returns what p x loses: the logarithms whose sum it is the exponential of, and the terms
    of the series or fraction.
    """
    logs = a * np.abs(np.log(x)) + x + np.abs(lgamma(a))
    return u * (16 + 2 * logs + 9 * np.sqrt(a))


def _accuracy(upper: bool) -> Bound:
    def error(attrs: Attrs, inputs: Sequence[np.ndarray], expected: Any, u: float) -> Any:
        a, x = (np.asarray(v, np.float64) for v in inputs)
        with np.errstate(all="ignore"):
            computed = np.where((x < a + 1) != upper, expected, 1 - expected)
            size = _front_error(a, x, u) * np.abs(computed) + 4 * u * np.abs(expected)
        return np.where(np.isfinite(size), size, 0)

    return Bound(error, "the errors of the logarithms whose sum the density is the exponential of")


def _slope_error(attrs: Attrs, inputs: Sequence[np.ndarray], expected: Any, u: float) -> Any:
    a, x = (np.asarray(v, np.float64) for v in inputs)
    with np.errstate(all="ignore"):
        parts = u * (16 + 9 * np.sqrt(np.abs(a))) * np.abs(incomplete_gamma_slope(a, x, magnitude=True))
        size = _front_error(a, x, u) * np.abs(expected) + parts
    return np.where(np.isfinite(size), size, 0)


SHAPES: tuple[tuple[StaticShape, StaticShape], ...] = (
    ((), ()), ((7, 13), (7, 13)), ((131,), ()), ((), (67,)), ((5, 17), (17,)), ((17,), (5, 17)), ((11, 1), (1, 13)),
    ((3, 1, 7), (3, 5, 7)), ((0,), (1,)), ((3, 0, 2), (1, 2)),
)  # fmt: skip
"""Few and small: the references are slow."""


def _samples() -> Iterator[Sample]:
    for shapes in SHAPES:
        yield Sample([Arg(shape, low=0.1, high=20, special=False) for shape in shapes])
    a = (1.0, 0.5, 0.5, 2.0, 100.0, 100.0, 400.0, 0.0, -1.0, 1.0, np.nan, 1.0, np.inf, 1.0, 0.0, 1e-3, 3.0)
    x = (1.0, 1e-20, 30.0, 0.0, 80.0, 130.0, 400.0, 1.0, 1.0, -1.0, 1.0, np.nan, 1.0, np.inf, 0.0, 1e-3, 700.0)
    yield value_sample(("float32", "float64"), a, x)


def _gradient(sign: int) -> Callable[[Any, Any], list[Any]]:
    """Returns the slope and the density, of Q with the other sign."""

    def of(op: Any, grad: Any) -> list[Any]:
        a, x = op.inputs
        given = grad if sign > 0 else -grad
        existing = apply_op(
            "SelectV2", [apply_op("GreaterEqual", [x, 0.0]), x, np.nan]
        )  # (a - 1) log x is 0 where a is 1
        logs = apply_op("Xlogy", [a - 1, x]) - existing - apply_op("Lgamma", [a])
        by_a = given * apply_op("IgammaGradA", [a, x])
        return [sum_to_shape(by_a, a), sum_to_shape(given * apply_op("Exp", [logs]), x)]

    return of


def _no_gradient(op: Any, grad: Any) -> list[Any]:
    raise UnimplementedError(
        f"IgammaGradA '{op.name}': has no gradient, as in TensorFlow: the second derivative of the incomplete gamma "
        "function by a is required",
        op.name,
    )


for _name, _upper, _doc in (
    ("Igamma", False, "The regularised lower incomplete gamma function P(a, x), by element; NaN unless a > 0, x >= 0."),
    (
        "Igammac",
        True,
        "The regularised upper incomplete gamma function Q = 1 - P, by element; NaN unless a > 0, x >= 0.",
    ),
):
    binary_op(
        _name,
        _doc,
        lambda attrs, a, x, upper=_upper: incomplete_gamma(a, x, upper).astype(a.dtype),
        "{float, double}",
        inputs=("a: T", "x: T"),
        accuracy=_accuracy(_upper),
        samples=_samples,
        gradient=_gradient(-1 if _upper else 1),
        gradient_notes=("partly_refused",),
    )

binary_op(
    "IgammaGradA",
    "The derivative by a of the regularised lower incomplete gamma function P(a, x), by element.",
    lambda attrs, a, x: incomplete_gamma_slope(a, x).astype(a.dtype),
    "{float, double}",
    inputs=("a: T", "x: T"),
    accuracy=Bound(_slope_error, "the errors of the density, and of the parts of the slope, which cancel"),
    samples=_samples,
    gradient=_no_gradient,
    gradient_notes=("partly_refused",),
)
