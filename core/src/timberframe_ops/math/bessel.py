"""The modified Bessel functions of the first kind, of orders 0 and 1, and those scaled by exp(-|x|).

By their series (DLMF 10.25.2), whose terms are all positive, below 30, and by their expansion for large arguments (DLMF
10.40.1) from there on. Limits: 16 ULP, as for the other functions that OpenCL C lacks.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from timberframe_core.ops.base.math.unary import (
    FLOAT_TYPES,
    FLOATS,
    Gradient,
    computed_in_float32,
    unary_op,
    unary_samples,
)
from timberframe_core.ops.definition.accuracy import Pointwise
from timberframe_core.ops.definition.gradients import apply_op
from timberframe_core.ops.definition.samples import Arg, Sample

_LARGE = 30.0
_TERMS, _LARGE_TERMS = 80, 24
_QUOTIENT_SERIES = [0.5 / (math.factorial(k) * math.factorial(k + 1)) for k in range(9)]  # enough where |x| < 1


def _series(order: int, a: Any) -> Any:
    quarter, term = a * a / 4, (a / 2 if order else np.ones_like(a))
    total = term
    for k in range(1, _TERMS):
        term = term * quarter / (k * (k + order))
        total = total + term
    return total


def _expansion(order: int, a: Any) -> Any:
    """Returns what e^a is multiplied by."""
    total = term = np.ones_like(a)
    for k in range(1, _LARGE_TERMS):
        term = term * ((2 * k - 1) ** 2 - 4 * order) / (8 * k * a)
        total = total + term
    return total / (np.sqrt(2 * np.pi) * np.sqrt(a))


def _bessel(order: int, scaled: bool) -> Callable[[np.ndarray], np.ndarray]:
    def function(x: np.ndarray) -> np.ndarray:
        a = np.abs(np.asarray(x, np.float64))
        with np.errstate(all="ignore"):
            small = a < _LARGE
            low, high = _series(order, np.where(small, a, 1)), _expansion(order, np.where(small, _LARGE, a))
            if scaled:
                low = low * np.exp(-a)
            else:
                half = np.exp(a / 2)  # e^a overflows before the function does
                high = np.where(np.isinf(a), a, half * high * half)
            made = np.where(small, low, high)
        return np.asarray(np.copysign(made, x) if order else made).astype(x.dtype)

    return computed_in_float32(function)


def _samples() -> Iterator[Sample]:
    values = (0.0, -0.0, 1e-40, -1e-310, 1e-5, 29.99, -30.0, 88.0, 91.5, 300.0, 709.9, -713.5, 714.0, np.inf, -np.inf)
    yield from unary_samples(values, Arg(low=-8, high=8))
    for low, high in ((-40, 40), (80, 95), (0, 800)):
        yield Sample((Arg(shape=(997,), low=low, high=high),), types={"T": FLOATS})


def _of(op: str, x: Any) -> Any:
    return apply_op(op, [x])


def _quotient(op: Any, scaled: bool) -> Any:
    """Returns y / x of the function of order 1: by its series (DLMF 10.25.2) where x is small, so that it exists at 0
    and its own derivative is no difference of numbers as large as 1 / x.
    """
    x, y = op.inputs[0], op.outputs[0]
    size = _of("Abs", x)
    small = apply_op("Less", [size, 1.0])
    near = apply_op("SelectV2", [small, x, 0.0])
    quarter, total = _of("Square", near) * 0.25, _QUOTIENT_SERIES[-1]
    for coefficient in _QUOTIENT_SERIES[-2::-1]:
        total = quarter * total + coefficient
    if scaled:
        total = total * _of("Exp", -_of("Abs", near))
    return apply_op("SelectV2", [small, total, y / apply_op("SelectV2", [small, 1.0, x])])


_GRADIENTS: dict[str, Gradient] = {
    "BesselI0": lambda op, grad: [grad * _of("BesselI1", op.inputs[0])],
    "BesselI0e": lambda op, grad: [grad * (_of("BesselI1e", op.inputs[0]) - _of("Sign", op.inputs[0]) * op.outputs[0])],
    "BesselI1": lambda op, grad: [grad * (_of("BesselI0", op.inputs[0]) - _quotient(op, scaled=False))],
    "BesselI1e": lambda op, grad: [
        grad * (_of("BesselI0e", op.inputs[0]) - _of("Sign", op.inputs[0]) * op.outputs[0] - _quotient(op, scaled=True))
    ],
}

for _order in (0, 1):
    for _scaled in (False, True):
        _name = f"BesselI{_order}{'e' if _scaled else ''}"
        unary_op(
            _name,
            f"The modified Bessel function of the first kind of order {_order}, by element"
            + (", times exp(-|x|)." if _scaled else "."),
            _bessel(_order, _scaled),
            FLOAT_TYPES,
            accuracy=Pointwise(float32=16, float64=16),
            samples=_samples,
            gradient=_GRADIENTS[_name],
        )
