"""Exponentials, logarithms, trigonometric and hyperbolic functions, and those of probability.

Real limits in ULP are those of the OpenCL C 3.0 full profile, section 7.4 (double precision: table 67); they hold for
every argument, subnormals included. Its erf and erfc stand for erfinv, ndtri, lgamma and digamma too, which it lacks.
float16 and bfloat16 are float32 rounded once. Complex limits are against the modulus: the C library's manual ("Known
Maximum Errors in Math Functions") states at most 4 ULP for a part, so below 4 sqrt(2) of the modulus.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from timberframe_core.dtypes import float32, float64
from timberframe_core.ops.base.math.unary import (
    FLOAT_TYPES,
    FLOATS,
    INEXACT_TYPES,
    Gradient,
    by_input,
    by_output,
    computed_in_float32,
    unary_op,
    unary_samples,
)
from timberframe_core.ops.definition.accuracy import Bound, Pointwise
from timberframe_core.ops.definition.formats import FORMATS
from timberframe_core.ops.definition.gradients import apply_op
from timberframe_core.ops.definition.opdef import Attrs
from timberframe_core.ops.definition.samples import Arg, Sample
from timberframe_ops.math import special_functions as special

_COMPLEX_LIMIT = 6.0
_PI = np.pi
_SLOPE_OF_ERF = float(2 / np.sqrt(_PI))  # at 0


def _expm1(x: np.ndarray) -> np.ndarray:
    """Of x + iy: expm1(x) cos(y) - 2 sin(y / 2)^2 + i exp(x) sin(y), where nothing cancels near 0."""
    if not np.iscomplexobj(x):
        return np.asarray(np.expm1(x))
    half = np.sin(x.imag / 2)
    real = np.expm1(x.real) * np.cos(x.imag) - 2 * half * half
    return np.asarray(real + 1j * np.where(x.imag == 0, x.imag, np.exp(x.real) * np.sin(x.imag))).astype(x.dtype)


def _log1p(x: np.ndarray) -> np.ndarray:
    """Returns log(1 + x + iy): the real part is log1p(2x + x^2 + y^2) / 2 near 0, where nothing
    cancels against the modulus.
    """
    if not np.iscomplexobj(x):
        return np.asarray(np.log1p(x))
    a, b = x.real, x.imag
    near = np.maximum(np.abs(a), np.abs(b)) < 0.5
    small = 0.5 * np.log1p(np.where(near, a * (2 + a) + b * b, 0))
    real = np.where(near, small, np.log(np.hypot(1 + a, b)))
    result = np.empty(x.shape, x.dtype)
    result.real, result.imag = real, np.arctan2(b, 1 + a)
    return result


def _square(x: Any) -> Any:
    return apply_op("Square", [x])


def _reciprocal(x: Any) -> Any:
    """1 / x, whose own gradient is 0 for a gradient of 0 at a pole; that of a quotient would be NaN there."""
    return apply_op("Reciprocal", [x])


def _slope_of_acosh(grad: Any, x: Any) -> Any:
    """1 / sqrt(x^2 - 1) by factors, of which none overflows; nor does one have an infinite slope but at 1 and -1."""
    for shifted in (x - 1, x + 1):
        grad = grad * _reciprocal(apply_op("Sqrt", [shifted]))
    return grad


def _gradient_of_asinh(op: Any, grad: Any) -> list[Any]:
    """1 / sqrt(x^2 + 1), which is 1 / |x| to the last digit where x is large, and so does not overflow."""
    x = op.inputs[0]
    if x.dtype.is_complex:
        return by_output(lambda grad, y: grad / apply_op("Cosh", [y]))(op, grad)
    size = apply_op("Abs", [x])
    large = apply_op("GreaterEqual", [size, 2 / math.sqrt(FORMATS[x.dtype.name].unit_roundoff)])
    root = apply_op("Sqrt", [1 + _square(apply_op("SelectV2", [large, 1.0, x]))])
    return [grad * _reciprocal(apply_op("SelectV2", [large, size, root]))]


def _math_op(
    name: str,
    doc: str,
    function: Callable[[Any], Any],
    limit: float,
    values: Sequence[float],
    ranges: Sequence[tuple[float, float]] = (),
    *,
    gradient: Gradient,
    types: str = INEXACT_TYPES,
    arg: Arg = Arg(),
) -> None:
    """Declares a function with its limit, tried at these points and on these ranges in addition to that of `arg`."""

    def samples() -> Iterator[Sample]:
        yield from unary_samples(values, arg)
        for low, high in ranges:
            yield Sample((Arg(shape=(997,), low=low, high=high),), types={"T": FLOATS})

    accuracy = Pointwise(float32=limit, float64=limit, complex=_COMPLEX_LIMIT)
    unary_op(name, doc, computed_in_float32(function), types, accuracy=accuracy, samples=samples, gradient=gradient)


_TINY = (0.0, -0.0, 1e-40, -1e-40, 1e-5, -1e-5, 1e-310)
_MULTIPLES = tuple(k * _PI / 2 for k in (1, 2, 3, 4, 22, 355, -1, -710, 10_000, 41_722)) + _TINY
_LARGE = ((-100, 100), (-70_000, 70_000), (1e6, 1e38))
_NEAR_ONE = (1.0, 1 + 2.0**-23, 1 - 2.0**-24, 1 + 2.0**-52, 1 - 2.0**-53, 0.5, 2.0)

_math_op(
    "Exp",
    "e to the power x, by element.",
    np.exp,
    3,
    (88.7, 88.73, -87.4, -103.9, -104.0, 709.7, 709.8, -745.1, *_TINY),
    ((-110, 95), (-750, 715)),
    gradient=by_output(lambda grad, y: grad * y),
)
_math_op(
    "Expm1",
    "exp(x) - 1 by element, accurate near 0.",
    _expm1,
    3,
    (88.7, -17.5, 709.7, -38.0, *_TINY),
    ((-1e-3, 1e-3), (-40, 95)),
    gradient=by_input(lambda grad, x: grad * apply_op("Exp", [x])),
)
_math_op(
    "Log",
    "The natural logarithm by element; -infinity of 0, NaN of negative x. Of complex x: the principal value.",
    np.log,
    3,
    (*_NEAR_ONE, *_TINY, 0.70710678, 1.41421356, 3e38),
    ((0, 4), (0.9, 1.1), (0, 1e30)),
    gradient=by_input(lambda grad, x: grad * _reciprocal(x)),
)
_math_op(
    "Log1p",
    "log(1 + x) by element, accurate near 0.",
    _log1p,
    2,
    (-1.0, -0.99999994, 3e38, 1e300, *_TINY),
    ((-1, 1), (-1e-3, 1e-3), (0, 1e30)),
    gradient=by_input(lambda grad, x: grad * _reciprocal(1 + x)),
)
_math_op(
    "Sin",
    "The sine of x in radians, by element.",
    np.sin,
    4,
    _MULTIPLES,
    _LARGE,
    gradient=by_input(lambda grad, x: grad * apply_op("Cos", [x])),
)
_math_op(
    "Cos",
    "The cosine of x in radians, by element.",
    np.cos,
    4,
    _MULTIPLES,
    _LARGE,
    gradient=by_input(lambda grad, x: -grad * apply_op("Sin", [x])),
)
_math_op(
    "Tan",
    "The tangent of x in radians, by element.",
    np.tan,
    5,
    _MULTIPLES,
    _LARGE,
    gradient=by_input(lambda grad, x: grad * _square(_reciprocal(apply_op("Cos", [x])))),
)
_math_op(
    "Asin",
    "The angle in [-pi/2, pi/2] whose sine is x; NaN outside [-1, 1].",
    np.arcsin,
    4,
    (*_NEAR_ONE, *_TINY, -1.0),
    ((-1, 1),),
    gradient=by_input(lambda grad, x: grad * _reciprocal(apply_op("Sqrt", [1 - _square(x)]))),
)
_math_op(
    "Acos",
    "The angle in [0, pi] whose cosine is x; NaN outside [-1, 1].",
    np.arccos,
    4,
    (*_NEAR_ONE, *_TINY, -1.0),
    ((-1, 1),),
    gradient=by_input(lambda grad, x: -grad * _reciprocal(apply_op("Sqrt", [1 - _square(x)]))),
)
_math_op(
    "Atan",
    "The angle in [-pi/2, pi/2] whose tangent is x.",
    np.arctan,
    5,
    (*_TINY, 0.41421356, 2.4142135, 1e30),
    ((-1e3, 1e3),),
    gradient=by_input(lambda grad, x: grad * _reciprocal(1 + _square(x))),
)
_math_op(
    "Sinh",
    "The hyperbolic sine by element.",
    np.sinh,
    4,
    (88.8, 89.4, -89.5, 710.4, *_NEAR_ONE, *_TINY),
    ((-1, 1), (-95, 95)),
    gradient=by_input(lambda grad, x: grad * apply_op("Cosh", [x])),
)
_math_op(
    "Cosh",
    "The hyperbolic cosine by element.",
    np.cosh,
    4,
    (88.8, 89.4, -89.5, 710.4, *_TINY),
    ((-95, 95),),
    gradient=by_input(lambda grad, x: grad * apply_op("Sinh", [x])),
)
_math_op(
    "Tanh",
    "The hyperbolic tangent by element.",
    np.tanh,
    5,
    (9.0, 9.02, -9.1, 19.0, 22.0, *_TINY),
    ((-1, 1), (-20, 20)),
    gradient=by_output(lambda grad, y: apply_op("TanhGrad", [y, grad])),
)
_math_op(
    "Asinh",
    "The number whose hyperbolic sine is x.",
    np.arcsinh,
    4,
    (*_TINY, 8191.0, 3e38, -1e300),
    ((-1, 1), (-1e30, 1e30)),
    gradient=_gradient_of_asinh,
)
_math_op(
    "Acosh",
    "The non-negative number whose hyperbolic cosine is x; NaN below 1.",
    np.arccosh,
    4,
    (*_NEAR_ONE, 8191.0, 3e38, 1e300),
    ((1, 1.1), (1, 10), (1, 1e30)),
    gradient=by_input(_slope_of_acosh),
)
_math_op(
    "Atanh",
    "The number whose hyperbolic tangent is x; NaN outside [-1, 1].",
    np.arctanh,
    5,
    (-1.0, *_NEAR_ONE, *_TINY),
    ((-1, 1),),
    gradient=by_input(lambda grad, x: grad * _reciprocal(1 - _square(x))),
)

_math_op(
    "Erf",
    "The error function by element.",
    special.erf,
    16,
    (*_TINY, 3.9, -4.1, 6.0),
    ((-1, 1), (-7, 7)),
    types=FLOAT_TYPES,
    gradient=by_input(lambda grad, x: grad * _SLOPE_OF_ERF * apply_op("Exp", [-_square(x)])),
)
_math_op(
    "Erfc",
    "1 - erf(x) by element, accurate where that is small.",
    special.erfc,
    16,
    (*_TINY, 9.1, 10.0, 10.1, 26.5, 27.3),
    ((-7, 28),),
    types=FLOAT_TYPES,
    gradient=by_input(lambda grad, x: grad * -_SLOPE_OF_ERF * apply_op("Exp", [-_square(x)])),
)
_math_op(
    "Erfinv",
    "The number whose error function is x; NaN outside [-1, 1].",
    special.erfinv,
    16,
    (-1.0, *_NEAR_ONE, *_TINY),
    ((-1, 1),),
    types=FLOAT_TYPES,
    gradient=by_output(lambda grad, y: grad / _SLOPE_OF_ERF * apply_op("Exp", [_square(y)])),
)
_math_op(
    "Ndtri",
    "The quantile of the standard normal distribution at x; NaN outside [0, 1].",
    special.ndtri,
    16,
    (*_NEAR_ONE, 0.0, 1e-5, 1e-12, 0.3),
    ((0, 1), (0, 1e-10)),
    types=FLOAT_TYPES,
    gradient=by_output(lambda grad, y: grad * float(np.sqrt(2 * _PI)) * apply_op("Exp", [_square(y) / 2])),
)
_math_op(
    "Lgamma",
    "log |gamma(x)| by element; infinite at 0 and the negative integers.",
    special.lgamma,
    16,
    # Negative numbers as single points, next to roots and between them.
    (
        *_TINY,
        1.0,
        2.0,
        1.0000001,
        1.9999999,
        -1.0,
        -2.4570247,
        -2.7476826,
        -3.1435808,
        1e30,
        *np.linspace(-9.9, -0.1, 99),
    ),
    ((0.5, 2.5), (0, 1e5)),
    types=FLOAT_TYPES,
    arg=Arg(low=0, high=8),
    gradient=by_input(lambda grad, x: grad * apply_op("Digamma", [x])),
)


def _digamma_error(
    attrs: Attrs, inputs: Sequence[np.ndarray], expected: Sequence[np.ndarray], u: float
) -> list[np.ndarray]:
    x = inputs[0]
    positive = np.where(x > 0, x, 1 - x)
    terms = np.abs(np.log(positive)) + 1 / positive
    reflected = np.where(x > 0, 0, np.abs(_PI / np.tan(_PI * (x - np.rint(x)))))
    return [32 * u * (terms + reflected)]


def _trigamma(x: Any) -> Any:
    """Polygamma of order 1, which there is for float32 and float64."""
    if x.dtype in (float32, float64):
        return apply_op("Polygamma", [1, x])
    wide = apply_op("Polygamma", [1, apply_op("Cast", [x], {"DstT": float32})])
    return apply_op("Cast", [wide], {"DstT": x.dtype})


unary_op(
    "Digamma",
    "The derivative of log(gamma(x)) by element; NaN at 0 and the negative integers.",
    computed_in_float32(special.digamma),
    FLOAT_TYPES,
    accuracy=Bound(
        _digamma_error,
        "16 ULP (as for the functions that OpenCL C lacks) of the terms log(x) + 1/x, and of pi cot(pi x) by which"
        " negative x are reflected: the function has a root between any two poles, where the terms cancel",
    ),
    values=(1.4616321449683623, 1.0, 2.0, 0.5, -0.5, 0.0, -1.0, 1e-30, 1e30, 10.0),
    gradient=by_input(lambda grad, x: grad * _trigamma(x)),
)
