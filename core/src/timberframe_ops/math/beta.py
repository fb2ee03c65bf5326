"""The regularised incomplete beta function."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from timberframe_core.ops.definition.accuracy import Bound
from timberframe_core.ops.definition.gradients import apply_op, sum_to_shape
from timberframe_core.ops.definition.opdef import Attrs, InferenceContext, define_op
from timberframe_core.ops.definition.samples import Arg, ErrorSample, Sample
from timberframe_core.ops.definition.shape_functions import merge_shapes
from timberframe_core.shapes import Shape
from timberframe_ops.math.special_functions import lgamma

_NAMES = ("a", "b", "x")
_MOST_STEPS = 20_000  # about the root of the larger parameter is needed
_SMALLEST = 1e-300
_DONE = 2.0**-49  # what the roundings of one step amount to is less


def _shape(c: InferenceContext) -> list[Shape]:
    """That of the operands that are no scalars, which must agree."""
    result: Shape = ()
    named = ""
    for i, name in enumerate(_NAMES):
        shape = c.shapes[i]
        if shape == ():
            continue
        if result == ():
            result, named = shape, name
        else:
            result = merge_shapes(c, result, shape, f"{named} and {name}, which are no scalars,")
    unknown = any(s is None for s in c.shapes)
    return [None if unknown and result in ((), None) else result]


def _fraction(a: Any, b: Any, x: Any) -> Any:
    """Returns the continued fraction of the function by Lentz's method (DLMF 8.17.22); 1 /
    (1 + d1 / (1 + d2 / ...)).
    """
    c = np.ones(np.shape(x))
    d = 1 - (a + b) * x / (a + 1)
    d = 1 / np.where(np.abs(d) < _SMALLEST, _SMALLEST, d)
    h = d
    active = np.ones(np.shape(x), bool)
    for m in range(1, _MOST_STEPS):
        before = h
        for term in (
            m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)),
            -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1)),
        ):
            d = 1 + term * d
            d = 1 / np.where(np.abs(d) < _SMALLEST, _SMALLEST, d)
            c = 1 + term / c
            c = np.where(np.abs(c) < _SMALLEST, _SMALLEST, c)
            h = np.where(active, h * d * c, h)
        active = active & (np.abs(h - before) > _DONE * np.abs(h))
        if not active.any():
            break
    return h


def _log_front(a: Any, b: Any, x: Any) -> Any:
    return lgamma(a + b) - lgamma(a) - lgamma(b) + a * np.log(x) + b * np.log1p(-x)


def _wide(*inputs: Any) -> tuple[Any, ...]:
    return tuple(np.broadcast_arrays(*(np.asarray(v, np.float64) for v in inputs)))


def incomplete_beta(a: Any, b: Any, x: Any) -> Any:
    """Returns the integral of t^(a-1) (1-t)^(b-1) from 0 to x over that to 1; NaN unless a, b > 0 and 0 <= x <= 1."""
    a, b, x = _wide(a, b, x)
    with np.errstate(all="ignore"):
        valid = (a > 0) & (b > 0) & (x >= 0) & (x <= 1)
        inside = valid & (x > 0) & (x < 1) & np.isfinite(a) & np.isfinite(b)
        p, q, z = (np.where(inside, v, safe) for v, safe in ((a, 1.0), (b, 1.0), (x, 0.5)))
        swap = z > (p + 1) / (p + q + 2)  # where the fraction converges fast
        front = np.exp(_log_front(p, q, z))
        none = ~(front > 0)
        p, q, z = np.where(swap, q, p), np.where(swap, p, q), np.where(swap, 1 - z, z)
        p, q, z = np.where(none, 1.0, p), np.where(none, 1.0, q), np.where(none, 0.5, z)
        tail = front * _fraction(p, q, z) / p
        value = np.where(inside, np.where(swap, 1 - tail, tail), np.where(x >= 1, 1.0, 0.0))
        return np.where(valid & (inside | (x == 0) | (x == 1)), value, np.nan)


def _reference(attrs: Attrs, a: Any, b: Any, x: Any) -> Any:
    return incomplete_beta(a, b, x).astype(a.dtype)


def _error(attrs: Attrs, inputs: Sequence[np.ndarray], expected: Any, u: float) -> Any:
    """Returns what the logarithms of the front lose, and 16 units for the fraction; of the tail that was computed."""
    a, b, x = _wide(*inputs)
    with np.errstate(all="ignore"):
        logs = np.abs(lgamma(a + b)) + np.abs(lgamma(a)) + np.abs(lgamma(b)) + a * np.abs(np.log(x))
        logs = logs + b * np.abs(np.log1p(-x)) + a + b
        tail = np.where(x > (a + 1) / (a + b + 2), 1 - expected, expected)
        size = (16 + 2 * logs) * 2.0**-52 * np.abs(tail) + 4 * u * np.abs(expected)
    return np.where(np.isfinite(size), size, 0)


def _samples() -> Iterator[Sample]:
    for shapes in (
        ((), (), ()),
        ((7,), (7,), (7,)),
        ((), (131,), (131,)),
        ((5, 3), (), (5, 3)),
        ((), (), (29,)),
        ((2, 3), (2, 3), ()),
        ((0,), (0,), ()),
        ((1031,), (1031,), (1031,)),
    ):
        ranges = ((0.1, 20), (0.1, 20), (0, 1))
        yield Sample(tuple(Arg(s, low=lo, high=hi, special=False) for s, (lo, hi) in zip(shapes, ranges, strict=True)))
    a = (1.0, 2.0, 0.0, -1.0, 2.0, 2.0, 2.0, 2.0, 2.0, 1.0, 1e-3, 50.0, 0.5, 3.0, np.nan, 300.0)
    b = (1.0, 3.0, 1.0, 1.0, 0.0, 3.0, 3.0, 3.0, np.nan, 2.0, 1e-3, 0.01, 0.5, 400.0, 1.0, 200.0)
    x = (0.5, 0.3, 0.5, 0.5, 0.5, 0.0, 1.0, 1.5, 0.5, -0.1, 0.7, 0.9, 1e-12, 0.01, 0.5, 0.61)
    yield Sample((Arg(values=a), Arg(values=b), Arg(values=x)))


def _errors() -> Iterator[ErrorSample]:
    yield ErrorSample((Arg((2,)), Arg((3,)), Arg(())), r"a and b, which are no scalars, have shapes \(2,\) and \(3,\)")
    yield ErrorSample((Arg(()), Arg((3,)), Arg((3, 1))), r"b and x, which are no scalars, have shapes")


def _gradient(op: Any, grad: Any) -> list[Any]:
    """Returns the integrand with respect to x; none is known for a and b, as in TensorFlow."""
    a, b, x = op.inputs
    logs = apply_op("Xlog1py", [b - 1, -x]) + apply_op("Xlogy", [a - 1, x])
    of_a, of_b, of_both = (apply_op("Lgamma", [v]) for v in (a, b, a + b))
    return [None, None, sum_to_shape(grad * apply_op("Exp", [logs - (of_a + of_b - of_both)]), x)]


define_op(
    "Betainc",
    inputs=("a: T", "b: T", "x: T"),
    outputs=("z: T",),
    attrs=("T: {float, double}",),
    doc="The regularised incomplete beta function, by element: the integral of t^(a-1) (1-t)^(b-1) from 0 to x over "
    "that from 0 to 1. Operands that are no scalars have one shape. NaN unless a, b are positive and x is from 0 to 1.",
    shape=_shape,
    reference=_reference,
    elementwise=True,
    accuracy=Bound(_error, "the errors of the logarithms whose sum the front is the exponential of"),
    samples=_samples,
    errors=_errors,
    gradient=_gradient,
    constant_inputs=("a", "b"),
)
