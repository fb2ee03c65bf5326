"""Pointwise functions in arbitrary precision, by op name.

Each takes and returns mpmath numbers; the working precision is set by the caller. Only finite arguments whose float64
reference is finite are ever passed. Attrs that are numbers come by name, ``lambda x, alpha: ...``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import mpmath  # type: ignore[import-untyped]  # mpmath ships no types
from mpmath import mp

Function = Callable[..., Any]

# Klambauer et al., Self-Normalizing Neural Networks (2017): the constants as TensorFlow writes them.
SELU_SCALE = "1.0507009873554804934193349852946"
SELU_SCALE_ALPHA = "1.7580993408473768599402175208123"


def _sigmoid(x: Any) -> Any:
    return 1 / (1 + mp.exp(-x))


def _softplus(x: Any) -> Any:
    return mp.log1p(mp.exp(x))


def _elu(x: Any) -> Any:
    return mp.expm1(x) if x < 0 else x


def _selu(x: Any) -> Any:
    return mp.mpf(SELU_SCALE_ALPHA) * mp.expm1(x) if x < 0 else mp.mpf(SELU_SCALE) * x


def _lgamma(x: Any) -> Any:
    return mp.log(abs(mp.gamma(x))) if x < 0 else mp.loggamma(x)


def _lower_gamma(a: Any, x: Any) -> Any:
    """P(a, x) by its series of positive terms (DLMF 8.7.1); mpmath's own function takes minutes at some points."""
    if a <= 0 or x < 0:
        raise ValueError
    total, term, k = mp.mpf(1), mp.mpf(1), a
    while k < x or term > mp.eps * total:
        k += 1
        term *= x / k
        total += term
    return mp.exp(a * mp.log(x) - x - mp.loggamma(a + 1)) * total if x else mp.mpf(0)


def _upper_gamma(a: Any, x: Any) -> Any:
    """1 - P(a, x), with more bits for what cancels: the difference is of the size of e^-x."""
    with mp.workprec(mp.prec + int(2 * x) + 64):
        return 1 - _lower_gamma(a, x)


def _xlogy(x: Any, y: Any) -> Any:
    return mp.mpf(0) if x == 0 else x * mp.log(y)


def _xdivy(x: Any, y: Any) -> Any:
    return mp.mpf(0) if x == 0 else x / y


def _div_no_nan(x: Any, y: Any) -> Any:
    return mp.mpf(0) if y == 0 else x / y


def _squared_difference(x: Any, y: Any) -> Any:
    d = x - y
    return mp.conj(d) * d if isinstance(d, mpmath.mpc) else d * d


def _inv_grad(y: Any, dy: Any) -> Any:
    return -dy * mp.conj(y * y)


def _elu_grad(g: Any, y: Any) -> Any:
    return g * (y + 1) if y < 0 else g


def _selu_grad(g: Any, y: Any) -> Any:
    return g * (y + mp.mpf(SELU_SCALE_ALPHA)) if y < 0 else g * mp.mpf(SELU_SCALE)


FUNCTIONS: Mapping[str, Function] = {
    "Reciprocal": lambda x: 1 / x,
    "Inv": lambda x: 1 / x,
    "Square": lambda x: x * x,
    "Sqrt": mp.sqrt,
    "Rsqrt": lambda x: 1 / mp.sqrt(x),
    "Exp": mp.exp,
    "Expm1": mp.expm1,
    "Log": mp.log,
    "Log1p": mp.log1p,
    "Sin": mp.sin,
    "Cos": mp.cos,
    "Tan": mp.tan,
    "Asin": mp.asin,
    "Acos": mp.acos,
    "Atan": mp.atan,
    "Sinh": mp.sinh,
    "Cosh": mp.cosh,
    "Tanh": mp.tanh,
    "Asinh": mp.asinh,
    "Acosh": mp.acosh,
    "Atanh": mp.atanh,
    "Erf": mp.erf,
    "Erfc": mp.erfc,
    "Erfinv": mp.erfinv,
    "Ndtri": lambda p: mp.sqrt(2) * mp.erfinv(2 * p - 1),
    "Lgamma": _lgamma,
    "Digamma": mp.digamma,
    "BesselI0": lambda x: mp.besseli(0, x),
    "BesselI0e": lambda x: mp.besseli(0, x) * mp.exp(-abs(x)),
    "BesselI1": lambda x: mp.besseli(1, x),
    "BesselI1e": lambda x: mp.besseli(1, x) * mp.exp(-abs(x)),
    "Sigmoid": _sigmoid,
    "Softplus": _softplus,
    "Softsign": lambda x: x / (1 + abs(x)),
    "Elu": _elu,
    "Selu": _selu,
    "Abs": abs,
    "ComplexAbs": abs,
    "Angle": mp.arg,
    "Sign": lambda x: x / abs(x),
    "Add": lambda x, y: x + y,
    "AddV2": lambda x, y: x + y,
    "Sub": lambda x, y: x - y,
    "Mul": lambda x, y: x * y,
    "Div": lambda x, y: x / y,
    "RealDiv": lambda x, y: x / y,
    "DivNoNan": _div_no_nan,
    "Pow": mp.power,
    "Atan2": mp.atan2,
    "Xlogy": _xlogy,
    "Xlog1py": lambda x, y: mp.mpf(0) if x == 0 else x * mp.log1p(y),
    "Xdivy": _xdivy,
    "Betainc": lambda a, b, x: mp.betainc(a, b, 0, x, regularized=True),
    "Igamma": _lower_gamma,
    "Igammac": _upper_gamma,
    "Zeta": mp.zeta,
    "Polygamma": lambda n, x: mp.polygamma(int(n), x),
    "SquaredDifference": _squared_difference,
    "InvGrad": _inv_grad,
    "ReciprocalGrad": _inv_grad,
    "RsqrtGrad": lambda y, dy: -dy * mp.conj(y**3) / 2,
    "SqrtGrad": lambda y, dy: dy / mp.conj(2 * y),
    "SigmoidGrad": lambda y, dy: dy * (y * (1 - y)),
    "TanhGrad": lambda y, dy: dy * (1 - y * y),
    "SoftplusGrad": lambda g, x: g * _sigmoid(x),
    "SoftsignGrad": lambda g, x: g / (1 + abs(x)) ** 2,
    "EluGrad": _elu_grad,
    "SeluGrad": _selu_grad,
}

BRANCH_CUTS = frozenset({"Sqrt", "Rsqrt", "Log", "Log1p", "Asin", "Acos", "Atan", "Asinh", "Acosh", "Atanh", "Pow"})
"""Complex functions whose value on a cut depends on the sign of a zero, which mpmath does not have."""
