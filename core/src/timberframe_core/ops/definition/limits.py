"""The error that a kernel may make in each element of an output, worked out from the op's declared accuracy."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from timberframe_core.ops.definition.accuracy import Accumulation, Bound, Pointwise
from timberframe_core.ops.definition.formats import FORMATS, HALVES, Format, computing_format, ulp, widen
from timberframe_core.ops.definition.opdef import OpDef, evaluate

# A product of complex numbers costs four real products and two sums; its error is bounded by sqrt(2) gamma_2 of the
# moduli (Higham, 2nd ed., lemma 3.5), so each complex term counts as this many real ones.
COMPLEX_TERMS = 4

UNDERFLOWS = 8
"""As many operations of an op with a bound of its own may give subnormal numbers, each off by half the smallest."""

Floor = Callable[[Format], float]
"""How far off a result may be in a format however small it is: each rounding may lose that much."""


def smallest(form: Format) -> float:
    """Returns the floor of a device that computes with subnormal numbers."""
    return form.smallest


def computing_errors(
    op: OpDef,
    attrs: Mapping[str, Any],
    inputs: Sequence[np.ndarray],
    expected: tuple[np.ndarray, ...],
    dtypes: Sequence[np.dtype],
    floor: Floor = smallest,
) -> list[np.ndarray | None]:
    """For each output how far off it may be, elementwise in float64; None where every bit is determined.

    For `Pointwise` the rounding to the output's dtype is a part of it, for others `with_rounding` adds it. expected:
    the outputs in float64 (complex128). dtypes: those that they have. Ops with `Residual` have no such errors: None,
    too.
    """
    if not any(t.name in FORMATS for t in dtypes):
        return [None] * len(expected)
    errors: Sequence[Any]
    with np.errstate(all="ignore"):
        match op.accuracy:
            case Pointwise() as accuracy:
                errors = [_pointwise(accuracy, e, t) for e, t in zip(expected, dtypes, strict=True)]
            case Accumulation() as accuracy:
                errors = _accumulation(op, accuracy, attrs, inputs, dtypes, floor)
            case Bound() as accuracy:
                errors = _bound(accuracy, attrs, inputs, expected, dtypes, floor)
            case _:
                return [None] * len(expected)
    return [np.asarray(e, np.float64) if t.name in FORMATS else None for e, t in zip(errors, dtypes, strict=True)]


def with_rounding(error: np.ndarray, expected: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Returns an error with that of rounding the result to its floating dtype; infinite where it is not known."""
    with np.errstate(all="ignore"):
        total = error + 0.5 * ulp(np.abs(expected), FORMATS[dtype.name])
    return np.where(np.isnan(total), np.inf, total)


def ulp_limit(accuracy: Pointwise, dtype: np.dtype) -> float:
    """Returns the limit in ULP for an output dtype."""
    if dtype.name in HALVES:
        return accuracy.float16
    if dtype.kind == "c" and accuracy.complex is not None:
        return accuracy.complex
    return accuracy.float64 if dtype.name in ("float64", "complex128") else accuracy.float32


def _pointwise(accuracy: Pointwise, expected: np.ndarray, dtype: np.dtype) -> np.ndarray | None:
    form = FORMATS.get(dtype.name)
    return None if form is None else ulp_limit(accuracy, dtype) * ulp(np.abs(expected), form)


def _accumulation(
    op: OpDef,
    accuracy: Accumulation,
    attrs: Mapping[str, Any],
    inputs: Sequence[np.ndarray],
    dtypes: Sequence[np.dtype],
    floor: Floor,
) -> list[np.ndarray]:
    wide = [widen(x) for x in inputs]
    terms = max(int(accuracy.terms(attrs, *inputs)), 1)
    magnitudes: Sequence[Any]
    if accuracy.magnitude is not None:
        found = accuracy.magnitude(attrs, *wide)
        magnitudes = found if isinstance(found, tuple) else (found,) * len(dtypes)
    else:
        magnitudes = evaluate(op, attrs, [_magnitude(x) for x in wide])
    result = []
    for magnitude, dtype in zip(magnitudes, dtypes, strict=True):
        form = computing_format(dtype) if dtype.name in FORMATS else FORMATS["float64"]
        n = terms * COMPLEX_TERMS if dtype.kind == "c" else terms
        gamma = n * form.unit_roundoff / (1 - min(n * form.unit_roundoff, 0.5))
        size = np.abs(magnitude)
        error = gamma * size + n * floor(form)
        result.append(np.where(size > form.largest, np.inf, error))
    return result


def _magnitude(x: np.ndarray) -> np.ndarray:
    if x.dtype.name not in FORMATS:
        return x
    size = np.abs(x)
    return np.where(np.isfinite(size), size, 0.0).astype(x.dtype)


def _bound(
    accuracy: Bound,
    attrs: Mapping[str, Any],
    inputs: Sequence[np.ndarray],
    expected: tuple[np.ndarray, ...],
    dtypes: Sequence[np.dtype],
    floor: Floor,
) -> list[np.ndarray]:
    only = expected if len(expected) > 1 else expected[0]
    form = computing_format(next(t for t in dtypes if t.name in FORMATS))
    found = accuracy.error(attrs, [widen(x) for x in inputs], only, form.unit_roundoff)
    errors = found if isinstance(found, tuple | list) else [found] * len(expected)
    return [np.asarray(error) + UNDERFLOWS * floor(form) for error in errors]
