"""Rounding to integers, and tests for NaN and infinity."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from timberframe_core.ops.base.math.unary import FLOAT_TYPES, SIGNED_AND_COMPLEX_TYPES, computed_in_float32, unary_op
from timberframe_core.ops.definition.opdef import NotDifferentiable

_STEPS = NotDifferentiable("the result is a step function of the input", constant=True)
_TEST = NotDifferentiable("the result is a truth value")
_EDGES = (
    0.5,
    1.5,
    2.5,
    -0.5,
    -1.5,
    -2.5,
    0.49999997,
    -0.0,
    0.0,
    8388607.5,
    -8388607.5,
    4503599627370495.5,
    1e30,
    -1e-30,
)


def _round(x: Any) -> Any:
    return x if x.dtype.kind in "iu" else computed_in_float32(np.rint)(x)


for _name, _doc, _function, _types in (
    ("Floor", "The greatest integer that is not above x, by element.", computed_in_float32(np.floor), FLOAT_TYPES),
    ("Ceil", "The least integer that is not below x, by element.", computed_in_float32(np.ceil), FLOAT_TYPES),
    ("Round", "The nearest integer, of two the even one, by element; integers stay.", _round, SIGNED_AND_COMPLEX_TYPES),
    ("Rint", "The nearest integer, of two the even one, by element.", computed_in_float32(np.rint), FLOAT_TYPES),
):
    unary_op(_name, _doc, _function, _types, values=_EDGES, gradient=_STEPS)


def _test(name: str, doc: str, function: Callable[[Any], Any]) -> None:
    unary_op(
        name,
        doc,
        function,
        FLOAT_TYPES,
        outputs=("y: bool",),
        values=(np.nan, np.inf, -np.inf, 0.0, 3e38),
        gradient=_TEST,
    )


_test("IsNan", "Whether x is NaN, by element.", np.isnan)
_test("IsInf", "Whether x is infinite, by element.", np.isinf)
_test("IsFinite", "Whether x is neither infinite nor NaN, by element.", np.isfinite)
