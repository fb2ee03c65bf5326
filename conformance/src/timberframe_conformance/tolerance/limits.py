"""The absolute error that each element of an output may have, from the op's declared accuracy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from timberframe_conformance.tolerance.declared import current, declared_ulp, floor
from timberframe_conformance.tolerance.ulp import FORMATS, Format, ulp
from timberframe_conformance.truth.reference import evaluate
from timberframe_core.ops.definition.accuracy import Accumulation, Bound, Exact, Pointwise
from timberframe_core.ops.definition.opdef import OpDef
from timberframe_sdk.reference import widen

HALVES = ("float16", "bfloat16")

# A product of complex numbers costs four real products and two sums; its error is bounded by sqrt(2) gamma_2 of the
# moduli (Higham, 2nd ed., lemma 3.5), so each complex term counts as this many real ones.
COMPLEX_TERMS = 4


UNDERFLOWS = 8
"""As many operations of an op with a bound of its own may give subnormal numbers, each off by half the smallest."""


def is_exact(op: OpDef, dtype: np.dtype) -> bool:
    """Whether every bit of an output of this dtype is determined."""
    return dtype.name not in FORMATS or (isinstance(op.accuracy, Exact) and declared_ulp(op.name, dtype) is None)


def computing_format(dtype: np.dtype) -> Format:
    """The format in which kernels compute for this output: float32 for the half-width ones."""
    return FORMATS["float32" if dtype.name in HALVES else dtype.name]


def ulp_limit(accuracy: Pointwise, dtype: np.dtype) -> float:
    """The limit in ULP for an output dtype."""
    if dtype.name in HALVES:
        return accuracy.float16
    if dtype.kind == "c" and accuracy.complex is not None:
        return accuracy.complex
    return accuracy.float64 if dtype.name in ("float64", "complex128") else accuracy.float32


def allowed_error(
    op: OpDef,
    attrs: Mapping[str, Any],
    inputs: Sequence[np.ndarray],
    expected: tuple[np.ndarray, ...],
    dtypes: Sequence[np.dtype],
) -> list[np.ndarray | None]:
    """For each output the allowed |result - truth| in float64, elementwise; None where the output is exact.

    inputs are those of the case, expected the true outputs in float64 (complex128). Where truth itself is computed in
    the same precision (float64), accumulated errors are counted once for each side. The profile in force may declare a
    wider limit, and that subnormal numbers count as zero.
    """
    own = _own_error(op, attrs, inputs, expected, dtypes)
    return [_declared(op, a, e, t) for a, e, t in zip(own, expected, dtypes, strict=True)]


def _declared(op: OpDef, own: np.ndarray | None, expected: np.ndarray, dtype: np.dtype) -> np.ndarray | None:
    """An output's own limit, or what the profile in force allows beyond it."""
    if dtype.name not in FORMATS:
        return own
    form, wider = FORMATS[dtype.name], declared_ulp(op.name, dtype)
    if own is None and wider is None:
        return None
    allowed = np.zeros(()) if own is None else own
    if wider is not None:
        allowed = np.maximum(allowed, wider * ulp(np.abs(expected), form))
    return allowed + form.smallest_normal if current().flushes_subnormals else allowed


def _own_error(
    op: OpDef,
    attrs: Mapping[str, Any],
    inputs: Sequence[np.ndarray],
    expected: tuple[np.ndarray, ...],
    dtypes: Sequence[np.dtype],
) -> list[np.ndarray | None]:
    if not any(t.name in FORMATS for t in dtypes):
        return [None] * len(expected)
    if isinstance(op.accuracy, Accumulation):
        errors = _accumulation(op, op.accuracy, attrs, inputs, dtypes)
    elif isinstance(op.accuracy, Bound):
        errors = _bound(op.accuracy, attrs, inputs, expected, dtypes)
    elif isinstance(op.accuracy, Pointwise):
        accuracy = op.accuracy
        return [
            None if t.name not in FORMATS else ulp_limit(accuracy, t) * ulp(np.abs(e), FORMATS[t.name])
            for e, t in zip(expected, dtypes, strict=True)
        ]
    else:
        return [None] * len(expected)
    return [
        None if t.name not in FORMATS else _finish(np.asarray(a, dtype=np.float64), e, t)
        for a, e, t in zip(errors, expected, dtypes, strict=True)
    ]


def _finish(error: np.ndarray, expected: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Adds the rounding to the output dtype, and the reference's own error where it has the same precision."""
    with np.errstate(all="ignore"):
        if dtype.name in ("float64", "complex128"):
            error = 2 * error
        total: np.ndarray = error + 0.5 * ulp(np.abs(expected), FORMATS[dtype.name])
    return np.where(np.isnan(total), np.inf, total)


def _accumulation(
    op: OpDef,
    accuracy: Accumulation,
    attrs: Mapping[str, Any],
    inputs: Sequence[np.ndarray],
    dtypes: Sequence[np.dtype],
) -> list[np.ndarray]:
    wide = [widen(x) for x in inputs]
    terms = max(int(accuracy.terms(attrs, *inputs)), 1)
    with np.errstate(all="ignore"):
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
) -> list[np.ndarray]:
    floating = next((t for t in dtypes if t.name in FORMATS), None)
    if floating is None:
        return [np.zeros(())] * len(expected)
    with np.errstate(all="ignore"):
        only = expected if len(expected) > 1 else expected[0]
        form = computing_format(floating)
        found = accuracy.error(attrs, [widen(x) for x in inputs], only, form.unit_roundoff)
    errors = found if isinstance(found, tuple | list) else [found] * len(expected)
    return [np.asarray(error) + UNDERFLOWS * floor(form) for error in errors]
