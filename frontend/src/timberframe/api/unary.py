"""Functions of one tensor, element by element: `tf.*`, `tf.math.*`, `tf.nn.*` and `tf.bitwise.invert`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from timberframe_core.graph.apply import apply_op, convert_to_tensor
from timberframe_core.graph.operation import Tensor

Result = Any  # a Tensor


def _function(public: str, op: str, doc: str) -> Callable[..., Result]:
    """Returns the function ``public(x, name=None)``, which is one op."""

    def function(x: Any, name: str | None = None) -> Result:
        return apply_op(op, [x], name=name)

    return _described(function, public, doc)


def _activation(public: str, op: str, doc: str) -> Callable[..., Result]:
    """Returns the function ``public(features, name=None)``, which is one op."""

    def function(features: Any, name: str | None = None) -> Result:
        return apply_op(op, [features], name=name)

    return _described(function, public, doc)


def _described(function: Callable[..., Result], public: str, doc: str) -> Callable[..., Result]:
    function.__name__ = function.__qualname__ = public
    function.__doc__ = f"{doc}, by element."
    return function


negative = _function("negative", "Neg", "-x")
reciprocal = _function("reciprocal", "Reciprocal", "1 / x")
square = _function("square", "Square", "x * x")
sqrt = _function("sqrt", "Sqrt", "The square root")
rsqrt = _function("rsqrt", "Rsqrt", "1 / sqrt(x)")
exp = _function("exp", "Exp", "e to the power x")
expm1 = _function("expm1", "Expm1", "exp(x) - 1")
log = _function("log", "Log", "The natural logarithm")
log1p = _function("log1p", "Log1p", "log(1 + x)")
sin = _function("sin", "Sin", "The sine")
cos = _function("cos", "Cos", "The cosine")
tan = _function("tan", "Tan", "The tangent")
asin = _function("asin", "Asin", "The inverse sine")
acos = _function("acos", "Acos", "The inverse cosine")
atan = _function("atan", "Atan", "The inverse tangent")
sinh = _function("sinh", "Sinh", "The hyperbolic sine")
cosh = _function("cosh", "Cosh", "The hyperbolic cosine")
tanh = _function("tanh", "Tanh", "The hyperbolic tangent")
asinh = _function("asinh", "Asinh", "The inverse hyperbolic sine")
acosh = _function("acosh", "Acosh", "The inverse hyperbolic cosine")
atanh = _function("atanh", "Atanh", "The inverse hyperbolic tangent")
erf = _function("erf", "Erf", "The error function")
erfc = _function("erfc", "Erfc", "1 - erf(x)")
erfinv = _function("erfinv", "Erfinv", "The inverse error function")
ndtri = _function("ndtri", "Ndtri", "The quantile of the standard normal distribution")
lgamma = _function("lgamma", "Lgamma", "log |gamma(x)|")
digamma = _function("digamma", "Digamma", "The derivative of lgamma")
bessel_i0 = _function("bessel_i0", "BesselI0", "The modified Bessel function of the first kind of order 0")
bessel_i0e = _function("bessel_i0e", "BesselI0e", "exp(-|x|) times the modified Bessel function of order 0")
bessel_i1 = _function("bessel_i1", "BesselI1", "The modified Bessel function of the first kind of order 1")
bessel_i1e = _function("bessel_i1e", "BesselI1e", "exp(-|x|) times the modified Bessel function of order 1")
floor = _function("floor", "Floor", "The greatest integer not above x")
ceil = _function("ceil", "Ceil", "The least integer not below x")
rint = _function("rint", "Rint", "The nearest integer, of two the even one")
is_nan = _function("is_nan", "IsNan", "Whether x is NaN")
is_inf = _function("is_inf", "IsInf", "Whether x is infinite")
is_finite = _function("is_finite", "IsFinite", "Whether x is neither infinite nor NaN")
logical_not = _function("logical_not", "LogicalNot", "True where x is False")
invert = _function("invert", "Invert", "Every bit inverted")
sigmoid = _function("sigmoid", "Sigmoid", "1 / (1 + exp(-x))")
relu = _activation("relu", "Relu", "max(x, 0)")
relu6 = _activation("relu6", "Relu6", "min(max(x, 0), 6)")
elu = _activation("elu", "Elu", "x where it is not negative, exp(x) - 1 elsewhere")
selu = _activation("selu", "Selu", "The scaled exponential linear unit")
softplus = _activation("softplus", "Softplus", "log(1 + exp(x))")
softsign = _activation("softsign", "Softsign", "x / (1 + |x|)")


def abs(x: Any, name: str | None = None) -> Result:
    """|x| by element; the modulus, a real tensor, of complex x."""
    x = convert_to_tensor(x)
    if x.dtype.is_complex:
        return apply_op("ComplexAbs", [x], {"Tout": x.dtype.real_dtype}, name)
    return apply_op("Abs", [x], name=name)


def sign(x: Any, name: str | None = None) -> Result:
    """-1, 0 or 1 as x is negative, zero or positive, by element; of complex x: x / |x|, and 0 of 0."""
    x = convert_to_tensor(x)
    if not x.dtype.is_complex:
        return apply_op("Sign", [x], name=name)
    modulus = apply_op("Cast", [abs(x)], {"DstT": x.dtype})
    return apply_op("DivNoNan", [x, modulus], name=name)  # unlike Sign it has a slope


def round(x: Any, name: str | None = None) -> Result:
    """Returns the nearest integer, of two the even one, by element; integers are returned as they are."""
    x = convert_to_tensor(x)
    return x if x.dtype.is_integer else apply_op("Round", [x], name=name)


def real(input: Any, name: str | None = None) -> Result:
    """Returns the real part by element; a real tensor is returned as it is."""
    input = convert_to_tensor(input)
    return _part("Real", input, name) if input.dtype.is_complex else input


def imag(input: Any, name: str | None = None) -> Result:
    """Returns the imaginary part by element; zeros for a real tensor."""
    input = convert_to_tensor(input)
    return _part("Imag", input, name) if input.dtype.is_complex else apply_op("ZerosLike", [input], name=name)


def angle(input: Any, name: str | None = None) -> Result:
    """Returns the argument in (-pi, pi] by element; 0 or pi for a real tensor."""
    input = convert_to_tensor(input)
    if input.dtype.is_complex:
        return _part("Angle", input, name)
    zero = apply_op("ZerosLike", [input])
    pi = np.array(np.pi).astype(input.dtype.numpy)
    return apply_op("SelectV2", [apply_op("Less", [input, zero]), pi, zero], name=name)


def conj(x: Any, name: str | None = None) -> Result:
    """Returns the complex conjugate by element; a real tensor is returned as it is."""
    x = convert_to_tensor(x)
    return apply_op("Conj", [x], name=name) if x.dtype.is_complex else x


def _part(op: str, x: Tensor, name: str | None) -> Result:
    return apply_op(op, [x], {"Tout": x.dtype.real_dtype}, name)


def leaky_relu(features: Any, alpha: Any = 0.2, name: str | None = None) -> Result:
    """x where it is not negative, alpha x elsewhere, by element; integers are converted to float32 first."""
    features = convert_to_tensor(features)
    if features.dtype.is_integer:
        features = apply_op("Cast", [features], {"DstT": "float32"})
    return apply_op("LeakyRelu", [features], {"alpha": float(alpha)}, name)


def log_sigmoid(x: Any, name: str | None = None) -> Result:
    """log(sigmoid(x)) by element, computed as -softplus(-x)."""
    return negative(softplus(negative(x)), name)


def erfcinv(x: Any, name: str | None = None) -> Result:
    """Returns the inverse of erfc by element: -ndtri(x / 2) / sqrt(2)."""
    x = convert_to_tensor(x)
    half, root = (np.array(c).astype(x.dtype.numpy) for c in (0.5, np.sqrt(0.5)))
    return apply_op("Mul", [negative(ndtri(apply_op("Mul", [half, x]))), root], name=name)


def reciprocal_no_nan(x: Any, name: str | None = None) -> Result:
    """1 / x by element, and 0 where x is 0."""
    x = convert_to_tensor(x)
    return apply_op("DivNoNan", [np.array(1).astype(x.dtype.numpy), x], name=name)


def swish(features: Any, beta: Any = 1.0) -> Result:
    """x sigmoid(beta x) by element."""
    features = convert_to_tensor(features)
    scale = convert_to_tensor(beta, dtype=features.dtype)
    return apply_op("Mul", [features, sigmoid(apply_op("Mul", [scale, features]))])


silu = swish

_BESSEL = ("bessel_i0", "bessel_i0e", "bessel_i1", "bessel_i1e")
_MATH = (
    "abs", "acos", "acosh", "angle", "asin", "asinh", "atan", "atanh", "ceil", "conj", "cos", "cosh", "digamma", "erf",
    "erfc", "exp", "expm1", "floor", "imag", "is_finite", "is_inf", "is_nan", "lgamma", "log", "log1p", "log_sigmoid",
    "logical_not", "negative", "real", "reciprocal", "rint", "round", "rsqrt", "sigmoid", "sign", "sin", "sinh", "sqrt",
    "square", "tan", "tanh",
)  # fmt: skip

__all__ = [
    "abs", "acos", "acosh", "angle", "asin", "asinh", "atan", "atanh", "ceil", "conj", "cos", "cosh", "digamma", "erf",
    "erfc", "exp", "expm1", "floor", "imag", "is_finite", "is_inf", "is_nan", "lgamma", "log", "log1p",
    "log_sigmoid", "logical_not", "negative", "real", "reciprocal", "rint", "round", "rsqrt", "sigmoid", "sign", "sin",
    "sinh", "sqrt", "square", "tan", "tanh",
]  # fmt: skip

NAMESPACES = {
    "math": (*_MATH, *_BESSEL, "erfcinv", "erfinv", "ndtri", "reciprocal_no_nan", "softplus", "softsign"),
    "nn": (
        "elu", "leaky_relu", "relu", "relu6", "selu", "sigmoid", "silu", "softplus", "softsign", "swish",
        "tanh",
    ),
    "bitwise": ("invert",),
}  # fmt: skip
