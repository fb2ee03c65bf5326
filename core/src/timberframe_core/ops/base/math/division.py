"""Quotients and remainders of two operands that broadcast."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from timberframe_core.ops.base.math.binary import (
    COMPLEX,
    FLOATS,
    INTEGERS,
    PIECEWISE_CONSTANT,
    SIGNED,
    UNSIGNED,
    at_least_float32,
    binary_op,
    broadcast_samples,
    host_value,
    limits,
    own_dtype,
    value_sample,
)
from timberframe_core.ops.definition.accuracy import Bound, Pointwise
from timberframe_core.ops.definition.gradients import apply_op, broadcast_gradients, conjugate
from timberframe_core.ops.definition.opdef import Attrs
from timberframe_core.ops.definition.samples import Arg, ErrorSample, Sample
from timberframe_core.ops.definition.value_checks import RefusedIntegers

_NUMBERS = (
    "{bfloat16, half, float, double, uint8, int8, uint16, int16, int32, uint32, uint64, int64, complex64, complex128}"
)
_INEXACT = "{half, float, bfloat16, double, complex64, complex128}"
_LOG_INEXACT = "{half, bfloat16, float, double, complex64, complex128}"

# Real: OpenCL C full profile. Complex, by Smith's formula: seven roundings at most lie on the way to each part; they
# add up to 7u of the modulus, and two parts make that sqrt(2) larger; u is at most one ULP.
QUOTIENT = Pointwise(float32=2.5, float64=0.5, float16=1, complex=10)


def truncated_quotient(x: Any, y: Any) -> Any:
    """Returns the integer quotient rounded towards zero; 0 where y is 0.

    The least integer divided by -1 wraps around.
    """
    divisor = np.where(y == 0, np.ones((), y.dtype), y)
    quotient = np.floor_divide(x, divisor)
    remainder = (x - quotient * divisor).astype(x.dtype)
    up = (remainder != 0) & ((x < 0) != (divisor < 0))
    return np.where(y == 0, np.zeros((), x.dtype), quotient + up.astype(x.dtype)).astype(x.dtype)


def python_truncated_quotient(x: int, y: int) -> int:
    """Returns the same for Python integers; raises ZeroDivisionError."""
    quotient = abs(x) // abs(y)
    return quotient if (x < 0) == (y < 0) else -quotient


def _divide(attrs: Attrs, x: Any, y: Any) -> Any:
    return truncated_quotient(x, y) if x.dtype.kind in "iu" else at_least_float32(np.true_divide)(x, y)


def _float_quotient(rounding: Callable[..., Any]) -> Callable[..., Any]:
    """Returns the quotient rounded to the dtype, and that rounded to an integer: two
    roundings, as TensorFlow has it.
    """

    def reference(attrs: Attrs, x: Any, y: Any) -> Any:
        if x.dtype.kind in "iu":
            return np.floor_divide(x, y) if rounding is np.floor else truncated_quotient(x, y)
        a, b = own_dtype(attrs, x, y)
        return rounding(np.true_divide(a, b)).astype(x.dtype)

    return reference


def _integer_step(attrs: Attrs, inputs: Any, expected: Any, u: float) -> Any:
    """Returns a whole step where the quotient lies so near an integer that its own rounding decides; else exact."""
    quotient = np.abs(np.true_divide(inputs[0], inputs[1]))
    near = np.abs(quotient - np.rint(quotient)) <= 5 * u * quotient
    return np.where(near, np.maximum(1, 5 * u * quotient), 0)


_STEP = Bound(_integer_step, "2.5 ULP of the quotient (OpenCL C full profile), then one exact rounding to an integer")


def _floor_mod(attrs: Attrs, x: Any, y: Any) -> Any:
    if x.dtype.kind in "iu":
        return np.remainder(x, y)
    a, b = own_dtype(attrs, x, y)
    remainder = np.fmod(a, b)
    other_sign = (remainder != 0) & ((remainder < 0) != (b < 0))
    return np.where(other_sign, remainder + b, remainder).astype(x.dtype)


def _truncate_mod(attrs: Attrs, x: Any, y: Any) -> Any:
    return np.fmod(x, y) if x.dtype.kind in "iu" else at_least_float32(np.fmod)(x, y)


def _complex_samples() -> Iterator[Sample]:
    yield from broadcast_samples(Arg(special=False), Arg(special=False), COMPLEX)
    yield value_sample(COMPLEX, (0, 3 + 1j, -2j, 0), (np.inf, np.inf, -np.inf, 2))  # C11, annex G: 0 by an infinity


def _samples(floats: bool = True, complex_types: bool = False) -> Callable[[], Iterator[Sample]]:
    def samples() -> Iterator[Sample]:
        yield from broadcast_samples(Arg(), Arg(low=1, high=17, special=False), INTEGERS)
        for dtype in INTEGERS:
            low, high = limits(dtype)
            yield value_sample((dtype,), (high, high, high - 1, 7, 0, low, low), (1, high, high, 3, 5, 1, high))
        for dtype in SIGNED:
            low, high = limits(dtype)
            yield value_sample(
                (dtype,), (low, low, low, high, 7, -7, 7, -7, 6, -6, 0), (-1, 1, low, -1, 2, 2, -2, -2, -3, 3, -1)
            )
        if floats:
            yield from broadcast_samples(types=FLOATS)
            infinity, nan = np.inf, np.nan
            x = (5.0, -5.0, 5.0, -5.0, 0.0, -0.0, 1.0, infinity, nan, 3.0, 6.0, -6.0, 6.0, -1e-20, 5.0, -5.0, 1e30, 0.1)
            y = (
                3.0,
                3.0,
                -3.0,
                -3.0,
                0.0,
                5.0,
                infinity,
                2.0,
                1.0,
                0.0,
                3.0,
                3.0,
                -3.0,
                1.0,
                -infinity,
                infinity,
                3.0,
                1e-30,
            )
            yield value_sample(FLOATS[2:], x, y)
            yield value_sample(FLOATS[:2], x[:13], y[:13])
        if complex_types:
            yield from _complex_samples()

    return samples


def _zero_divisors() -> tuple[ErrorSample, ...]:
    samples = (
        ((5, 1), (2, 0), 1), ((0, 1, 2), 0, 0), (7, ((1, 2, 3), (4, 0, 6)), 4), (((1, 2), (3, 4)), ((5, 0),), 1),
    )  # fmt: skip
    return tuple(
        ErrorSample(
            (Arg(values=x), Arg(values=y)),
            match=f"integer division by zero: element {at} of y is 0;",
            types={"T": SIGNED + UNSIGNED},
        )
        for x, y, at in samples
    )


def _quotient_gradient(op_name: str) -> Callable[..., list[Any]]:
    """grad / y and -grad x / y^2, each quotient by the op itself."""

    def gradient(op: Any, grad: Any) -> list[Any]:
        x, y = map(conjugate, op.inputs)
        slope = apply_op(op_name, [apply_op(op_name, [-x, y]), y])
        return broadcast_gradients(op, apply_op(op_name, [grad, y]), grad * slope)

    return gradient


def _remainder_gradient(quotient: str) -> Callable[..., list[Any]]:
    """1 and minus the integer quotient."""
    return lambda op, grad: broadcast_gradients(op, grad, grad * -apply_op(quotient, list(op.inputs)))


def _xdivy_gradient(op: Any, grad: Any) -> list[Any]:
    """1 / y, also where x is 0, and -x / y^2, 0 there; conjugated, which TensorFlow's own are not."""
    x, y = map(conjugate, op.inputs)
    gy = apply_op("Xdivy", [-x, apply_op("Mul", [y, y])]) * grad  # a square's derivative, 2 y, may overflow
    return broadcast_gradients(op, apply_op("Reciprocal", [y]) * grad, gy)


_ZERO = RefusedIntegers(
    lambda y: y == 0, "integer division by zero: element {0} of y is 0; divisors of integers must not be 0"
)
_TRUNCATED = host_value(python_truncated_quotient)

binary_op(
    "Div",
    "x / y by element; integers round towards zero.",
    _divide,
    _NUMBERS,
    accuracy=QUOTIENT,
    samples=_samples(complex_types=True),
    errors=_zero_divisors,
    refused=_ZERO,
    value=_TRUNCATED,
    gradient=_quotient_gradient("Div"),
)

binary_op(
    "RealDiv",
    "x / y by element.",
    lambda attrs, x, y: at_least_float32(np.true_divide)(x, y),
    _NUMBERS,
    accuracy=QUOTIENT,
    samples=lambda: (
        *broadcast_samples(types=FLOATS),
        *_complex_samples(),
    ),
    gradient=_quotient_gradient("RealDiv"),
)

binary_op(
    "FloorDiv",
    "The largest integer not above x / y, by element.",
    _float_quotient(np.floor),
    _NUMBERS,
    accuracy=_STEP,
    samples=_samples(),
    errors=_zero_divisors,
    refused=_ZERO,
    value=host_value(lambda x, y: x // y),
    total_value=True,
    gradient=PIECEWISE_CONSTANT,
)

binary_op(
    "TruncateDiv",
    "x / y by element, rounded towards zero.",
    _float_quotient(np.trunc),
    _NUMBERS,
    accuracy=_STEP,
    samples=_samples(),
    errors=_zero_divisors,
    refused=_ZERO,
    value=_TRUNCATED,
    gradient=PIECEWISE_CONSTANT,
)

binary_op(
    "FloorMod",
    "The remainder of x / y by element that has y's sign: x - FloorDiv(x, y) * y.",
    _floor_mod,
    "{int8, int16, int32, int64, uint8, uint16, uint32, uint64, bfloat16, half, float, double}",
    samples=_samples(),
    errors=_zero_divisors,
    refused=_ZERO,
    value=host_value(lambda x, y: x % y),
    total_value=True,
    gradient=_remainder_gradient("FloorDiv"),
)

for _name in ("Mod", "TruncateMod"):
    binary_op(
        _name,
        "The remainder of x / y by element that has x's sign, exact for floating-point numbers.",
        _truncate_mod,
        "{int32, int64, half, bfloat16, float, double}"
        if _name == "Mod"
        else "{int32, int64, bfloat16, half, float, double}",
        samples=_samples(),
        errors=_zero_divisors,
        refused=_ZERO,
        value=host_value(lambda x, y: x - y * python_truncated_quotient(x, y)),
        gradient=_remainder_gradient("TruncateDiv"),
    )

binary_op(
    "DivNoNan",
    "x / y by element, and 0 where y is 0.",
    lambda attrs, x, y: np.where(y == 0, np.zeros((), x.dtype), at_least_float32(np.true_divide)(x, y)).astype(x.dtype),
    _INEXACT,
    accuracy=QUOTIENT,
    samples=lambda: (
        *broadcast_samples(types=FLOATS),
        *_complex_samples(),
        value_sample(FLOATS, (1.0, np.nan, np.inf, 0.0, 3.0), (0.0, -0.0, 0.0, 0.0, 2.0)),
    ),
    gradient=_quotient_gradient("DivNoNan"),
)

binary_op(
    "Xdivy",
    "x / y by element, and 0 where x is 0 whatever y is.",
    lambda attrs, x, y: np.where(x == 0, x, at_least_float32(np.true_divide)(x, y)).astype(x.dtype),
    _LOG_INEXACT,
    accuracy=QUOTIENT,
    samples=lambda: (
        *broadcast_samples(types=FLOATS),
        *_complex_samples(),
        value_sample(FLOATS, (0.0, 0.0, 1.0, -0.0, 3.0), (0.0, np.nan, 0.0, -5.0, 2.0)),
    ),
    gradient=_xdivy_gradient,
)
