"""Powers, logarithms and angles of two operands that broadcast."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from timberframe_core.ops.base.math.binary import (
    COMPLEX,
    FLOATS,
    SIGNED,
    at_least_float32,
    binary_op,
    broadcast_samples,
    limits,
    own_dtype,
    value_sample,
)
from timberframe_core.ops.definition.accuracy import Pointwise
from timberframe_core.ops.definition.gradients import apply_op, broadcast_gradients, conjugate, sum_to_shape
from timberframe_core.ops.definition.opdef import Attrs
from timberframe_core.ops.definition.samples import Arg, ErrorSample, Sample
from timberframe_core.ops.definition.value_checks import RefusedIntegers


def _power(attrs: Attrs, x: Any, y: Any) -> Any:
    if x.dtype.kind in "iu":
        return _integer_power(x, y)
    if x.dtype.kind == "c":
        return _complex_power(x, y)
    return at_least_float32(np.power)(x, y)


def _integer_power(x: Any, y: Any) -> Any:
    """By repeated squaring, which wraps around as the kernels do."""
    base, exponent = (a.copy() for a in np.broadcast_arrays(x, y))
    result = np.ones_like(base)
    while np.any(exponent > 0):
        result = np.where(exponent & 1, result * base, result)
        base = base * base
        exponent = exponent >> 1
    return result.astype(x.dtype)


def _complex_power(x: Any, y: Any) -> Any:
    x, y = np.broadcast_arrays(x, y)
    wide = np.exp(y.astype(np.clongdouble) * np.log(np.where(x == 0, 1, x).astype(np.clongdouble)))
    at_zero = np.where(y == 0, 1, np.where(y.real > 0, 0, np.nan + 1j * np.nan))
    return np.where(y == 0, 1, np.where(x == 0, at_zero, wide)).astype(x.dtype)


def _power_samples() -> Iterator[Sample]:
    yield from broadcast_samples(types=FLOATS)
    yield from broadcast_samples(Arg(low=0.01, high=30), Arg(low=-9, high=9), FLOATS)
    yield from broadcast_samples(Arg(), Arg(low=0, high=6, special=False), SIGNED)
    yield from broadcast_samples(Arg(special=False), Arg(special=False), COMPLEX)
    infinity, nan = np.inf, np.nan
    x = (-1.0, -1.0, 1.0, nan, 0.0, -0.0, -0.0, -8.0, -8.0, -infinity, 0.0, -infinity, 0.5, 2.0, -2.0, 1.5, nan, 2.0)
    y = (
        infinity,
        -infinity,
        nan,
        0.0,
        -1.0,
        -3.0,
        2.0,
        1 / 3,
        3.0,
        3.0,
        -infinity,
        -3.0,
        infinity,
        -infinity,
        1e30,
        -1e30,
        1.0,
        -149.0,
    )
    yield value_sample(FLOATS, x, y)
    for dtype in SIGNED:
        low, high = limits(dtype)
        yield value_sample((dtype,), (low, high, -1, -1, 0, 3, 2, low), (1, 2, 125, 126, 0, 41, 63, 0))


def _power_gradient(op: Any, grad: Any) -> list[Any]:
    """y x^(y-1) and x^y log(x); the latter 0 where the real logarithm does not exist."""
    x, y = map(conjugate, op.inputs)
    gx = grad * y * x ** (y - 1)
    exists = apply_op("NotEqual", [x, 0]) if x.dtype.is_complex else x > 0
    safe = apply_op("Select", [exists, x, apply_op("OnesLike", [x])])  # no infinity, which times 0 would be NaN
    gy = grad * conjugate(op.outputs[0]) * apply_op("Log", [safe])
    return broadcast_gradients(op, gx, gy)


binary_op(
    "Pow",
    "x to the power y by element, with C99's special cases. Integers wrap around; their exponents are at least 0.",
    _power,
    "{bfloat16, float, half, double, int8, int16, int32, int64, complex64, complex128}",
    accuracy=Pointwise(float32=16, float64=16, float16=4),  # OpenCL C full profile
    refused=RefusedIntegers(
        lambda y: y < 0, "element {0} of y is {1}; the exponent of an integer power must be at least 0"
    ),
    gradient=_power_gradient,
    gradient_notes=("nan_at_zero",),
    samples=_power_samples,
    errors=lambda: (
        ErrorSample((Arg(values=(2, 3)), Arg(values=(1, -1))), match="element 1 of y is -1;", types={"T": SIGNED}),
        ErrorSample((Arg(values=(1, -1)), Arg(values=-2)), match="element 0 of y is -2;", types={"T": SIGNED}),
    ),
)


def _atan2_gradient(op: Any, grad: Any) -> list[Any]:
    y, x = op.inputs
    scaled = grad / (apply_op("Square", [y]) + apply_op("Square", [x]))
    return broadcast_gradients(op, x * scaled, -y * scaled)


binary_op(
    "Atan2",
    "The angle of the point (x, y) against the x axis, in radians, in [-pi, pi], with C99's special cases.",
    lambda attrs, y, x: at_least_float32(np.arctan2)(y, x),
    "{bfloat16, half, float, double}",
    inputs=("y: T", "x: T"),
    accuracy=Pointwise(float32=6, float64=6, float16=2),  # OpenCL C full profile
    gradient=_atan2_gradient,
)


def _next_after(attrs: Attrs, x: Any, y: Any) -> Any:
    return np.nextafter(*own_dtype(attrs, x, y))


binary_op(
    "NextAfter",
    "The number that follows x1 in its dtype on the way to x2; x2 where both are equal.",
    _next_after,
    "{double, float} = DT_FLOAT",
    inputs=("x1: T", "x2: T"),
    outputs=("output: T",),
    gradient=lambda op, grad: [sum_to_shape(grad, op.inputs[0]), apply_op("ZerosLike", [op.inputs[1]])],
)


def _times_log(function: Any) -> Any:
    """x * function(y), and 0 where x is 0."""

    def reference(attrs: Attrs, x: Any, y: Any) -> Any:
        product = at_least_float32(lambda a, b: np.where(a == 0, a, a * function(b)))
        return product(x, y).astype(x.dtype)

    return reference


def _times_log_gradient(op_name: str, argument: Callable[[Any], Any]) -> Callable[..., list[Any]]:
    """Returns the function of y, also where x is 0, and x / argument(y), 0 there; conjugated,
    which TensorFlow's are not.
    """

    def gradient(op: Any, grad: Any) -> list[Any]:
        x, y = map(conjugate, op.inputs)
        gx = apply_op(op_name, [apply_op("OnesLike", [x]), y]) * grad
        return broadcast_gradients(op, gx, apply_op("Xdivy", [x, argument(y)]) * grad)

    return gradient


def _log_samples() -> Iterator[Sample]:
    yield from broadcast_samples(Arg(), Arg(low=0), FLOATS)
    yield from broadcast_samples(Arg(special=False), Arg(special=False), COMPLEX)
    yield value_sample(FLOATS, (0.0, 0.0, -0.0, 1.0, -1.0, 2.0), (0.0, np.nan, -5.0, 0.0, np.inf, -1.0))


# Three ULP of the logarithm (OpenCL C full profile), which the product may double at a binade's end, and its own half.
_LOG_ACCURACY = Pointwise(float32=7, float64=7, float16=3, complex=12)

binary_op(
    "Xlogy",
    "x * log(y) by element, and 0 where x is 0 whatever y is.",
    _times_log(np.log),
    "{half, bfloat16, float, double, complex64, complex128}",
    gradient=_times_log_gradient("Xlogy", lambda y: y),
    accuracy=_LOG_ACCURACY,
    samples=_log_samples,
)

binary_op(
    "Xlog1py",
    "x * log(1 + y) by element, and 0 where x is 0 whatever y is.",
    _times_log(np.log1p),
    "{half, bfloat16, float, double, complex64, complex128}",
    gradient=_times_log_gradient("Xlog1py", lambda y: y + 1),
    accuracy=_LOG_ACCURACY,
    samples=_log_samples,
)
