"""The absolute error that each element of an output may have, by its op's accuracy and the profile in force."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from timberframe_conformance.tolerance.declared import current, declared_ulp, floor
from timberframe_conformance.truth.reference import quiet
from timberframe_core.ops.definition.accuracy import Exact, Pointwise
from timberframe_core.ops.definition.formats import FORMATS, ulp
from timberframe_core.ops.definition.limits import computing_errors, with_rounding
from timberframe_core.ops.definition.opdef import OpDef

REFERENCE = ("float64", "complex128")
"""Dtypes that truth itself is computed in, with errors of the same size."""


def is_exact(op: OpDef, dtype: np.dtype) -> bool:
    """Returns whether every bit of an output of this dtype is determined."""
    return dtype.name not in FORMATS or (isinstance(op.accuracy, Exact) and declared_ulp(op.name, dtype) is None)


def allowed_error(
    op: OpDef,
    attrs: Mapping[str, Any],
    inputs: Sequence[np.ndarray],
    expected: tuple[np.ndarray, ...],
    dtypes: Sequence[np.dtype],
) -> list[np.ndarray | None]:
    """For each output the allowed |result - truth| in float64, elementwise; None where the output is exact.

    inputs are those of the case, expected the true outputs in float64 (complex128). For outputs of REFERENCE,
    accumulated errors are counted once for each side. The profile in force may declare a
    wider limit, and that subnormal numbers count as zero.
    """
    with quiet():
        own = computing_errors(op, attrs, inputs, expected, dtypes, floor)
        if not isinstance(op.accuracy, Pointwise):
            own = [
                None if a is None else with_rounding(2 * a if t.name in REFERENCE else a, e, t)
                for a, e, t in zip(own, expected, dtypes, strict=True)
            ]
    return [_declared(op, a, e, t) for a, e, t in zip(own, expected, dtypes, strict=True)]


def _declared(op: OpDef, own: np.ndarray | None, expected: np.ndarray, dtype: np.dtype) -> np.ndarray | None:
    """Returns an output's own limit, or what the profile in force allows beyond it."""
    if dtype.name not in FORMATS:
        return own
    form, wider = FORMATS[dtype.name], declared_ulp(op.name, dtype)
    if own is None and wider is None:
        return None
    allowed = np.zeros(()) if own is None else own
    if wider is not None:
        allowed = np.maximum(allowed, wider * ulp(np.abs(expected), form))
    return allowed + form.smallest_normal if current().flushes_subnormals else allowed
