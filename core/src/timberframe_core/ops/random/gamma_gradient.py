"""How a gamma number moves with its shape parameter when the probability below it stays.

With P(a, x) the regularised lower incomplete gamma function and p its density, that is -(dP/da) / p (M. Figurnov,
S. Mohamed, A. Mnih: Implicit Reparameterization Gradients, NeurIPS 2018).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from timberframe_core.ops.definition.accuracy import Bound
from timberframe_core.ops.definition.gradients import apply_op, sum_to_shape
from timberframe_core.ops.definition.opdef import Attrs, NotDifferentiable
from timberframe_core.ops.definition.samples import Arg, Sample
from timberframe_core.ops.math.binary import binary_op, value_sample
from timberframe_core.ops.math.special_functions import digamma
from timberframe_core.shapes import StaticShape

MOST_TERMS = 20_000
"""Terms of the series, or levels of the fraction; about 9 sqrt(alpha) are needed."""

_UNIT = 2.0**-53
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
        active = active[~(np.abs(change) <= _UNIT * np.abs(slope[active]))]
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


def _error(attrs: Attrs, inputs: Sequence[np.ndarray], expected: Any, u: float) -> Any:
    alpha, sample = inputs
    size = gamma_sample_slope(alpha, sample, magnitude=True)
    terms = 16 + 9 * np.sqrt(np.abs(np.where(np.isfinite(alpha), alpha, 0.0)))
    return u * np.abs(expected) + np.where(np.isfinite(size), 8 * terms * _UNIT * size, 0.0)


_SHAPES: tuple[tuple[StaticShape, StaticShape], ...] = (
    ((), ()), ((7, 13), (7, 13)), ((131,), ()), ((), (67,)), ((5, 17), (17,)), ((17,), (5, 17)), ((11, 1), (1, 13)),
    ((3, 1, 7), (3, 5, 7)), ((0,), (1,)), ((3, 0, 2), (1, 2)),
)  # fmt: skip
"""Few and small: the reference is slow."""


def _samples() -> Iterator[Sample]:
    for shapes in _SHAPES:
        yield Sample([Arg(shape, low=0.1, high=20, special=False) for shape in shapes])
    alpha = (1.0, 0.5, 0.5, 2.0, 100.0, 100.0, 400.0, 400.0, 0.0, -1.0, 1.0, np.nan, 1.0, np.inf)
    sample = (1.0, 1e-20, 30.0, 0.0, 80.0, 130.0, 400.0, 450.0, 1.0, 1.0, -1.0, 1.0, np.nan, 1.0)
    yield value_sample(("float32", "float64"), alpha, sample)


def alpha_gradient(op: Any, grad: Any) -> list[Any]:
    """The gradient of an op that draws gamma numbers with respect to its last input, the shape parameters."""
    alpha = op.inputs[-1]
    slope = apply_op("RandomGammaGrad", [alpha, op.outputs[0]])
    return [None] * (len(op.inputs) - 1) + [sum_to_shape(grad * slope, alpha)]


binary_op(
    "RandomGammaGrad",
    "How gamma numbers move with their shape parameters alpha when the probability below them stays, by element.",
    lambda attrs, alpha, sample: gamma_sample_slope(alpha, sample).astype(sample.dtype),
    "{float, double}",
    inputs=("alpha: T", "sample: T"),
    outputs=("output: T",),
    accuracy=Bound(
        _error, "8 roundings in float64 for each term of the series or fraction, of which 9 sqrt(alpha) count"
    ),
    samples=_samples,
    gradient=NotDifferentiable("TensorFlow has no second derivative either"),
)
