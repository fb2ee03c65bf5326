"""Results in arbitrary precision at chosen points, for ops in the table of functions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

import mpmath  # type: ignore[import-untyped]  # mpmath ships no types
import numpy as np
from mpmath import mp

from timberframe_conformance.truth.functions import BRANCH_CUTS, FUNCTIONS

PRECISION = 160  # bits: 53 of the result, and room for the cancellation at roots and for large arguments


def has_function(op: str) -> bool:
    """Returns whether an op can be evaluated in arbitrary precision."""
    return op in FUNCTIONS


def evaluate(op: str, arguments: Sequence[Any], attrs: Mapping[str, Any] = MappingProxyType({})) -> Any | None:
    """Returns the op at one point as an mpmath number; None if mpmath cannot evaluate it.

    arguments: Python floats or complex numbers. attrs: the node's; floats are float32 in every GraphDef. None is
    returned at poles, points outside a real function's domain, negative zeros (mpmath has none), and points on the
    branch cut of a complex function.
    """
    if not all(np.isfinite(a) for a in arguments) or any(a == 0 and np.signbit(np.real(a)) for a in arguments):
        return None
    is_complex = any(isinstance(a, complex) for a in arguments)
    if is_complex and op in BRANCH_CUTS and any(a.imag == 0 or a.real == 0 for a in arguments):
        return None
    with mp.workprec(PRECISION):
        value = value_at(op, [mpmath.mpmathify(a) for a in arguments], attrs)
    return None if isinstance(value, mpmath.mpc) and not is_complex else value


def value_at(op: str, arguments: Sequence[Any], attrs: Mapping[str, Any]) -> Any | None:
    """Returns the op of mpmath numbers, in the precision that the caller sets; None if mpmath cannot evaluate it."""
    numbers = {name: mpmath.mpf(float(np.float32(v))) for name, v in attrs.items() if isinstance(v, float)}
    numbers |= {name: v for name, v in attrs.items() if isinstance(v, int)}
    try:
        value = FUNCTIONS[op](*arguments, **numbers)
    except (ValueError, ZeroDivisionError, OverflowError, ArithmeticError):
        return None
    return value if mp.isfinite(value) else None


def as_double(value: Any) -> float | complex:
    """Returns an mpmath number rounded to float64 (complex128)."""
    return complex(value) if isinstance(value, mpmath.mpc) else float(value)
