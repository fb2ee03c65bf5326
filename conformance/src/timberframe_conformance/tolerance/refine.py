"""Judges float64 results in arbitrary precision at sampled points, since NumPy's and SciPy's own float64 errs too."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import mpmath  # type: ignore[import-untyped]  # mpmath ships no types
import numpy as np
from mpmath import mp

from timberframe_conformance.truth.precise import PRECISION, evaluate, has_function
from timberframe_core.ops.definition.formats import FORMATS
from timberframe_core.ops.definition.opdef import OpDef

if TYPE_CHECKING:
    from timberframe_conformance.tolerance.compare import Errors

SAMPLED = 12
"""Points of every case that are evaluated whatever the reference says."""
SUSPECT = 200
"""Most points evaluated because they are far from the reference."""


def refine(
    op: OpDef, attrs: Mapping[str, Any], inputs: Sequence[np.ndarray], got: Any, dtype: np.dtype, errors: Errors
) -> None:
    """Replaces errors by exact ones at some evenly spread points and at all that are far from the reference."""
    size = errors.error.size
    if size == 0 or not has_function(op.name) or any(x.dtype != dtype for x in inputs):
        return
    try:
        arguments = [np.broadcast_to(x, errors.error.shape) for x in inputs]
    except ValueError:
        return
    doubtful = np.flatnonzero(errors.wrong | (errors.error > errors.allowed / 2))
    spread = np.linspace(0, size - 1, min(SAMPLED, size)).astype(np.int64)
    form = FORMATS[dtype.name]
    result = np.asarray(got)
    for at in dict.fromkeys([*doubtful[:SUSPECT].tolist(), *spread.tolist()]):
        value = result.flat[at].item()
        if not np.isfinite(value):
            continue
        truth = evaluate(op.name, [x.flat[at].item() for x in arguments], attrs)
        if truth is None or abs(truth) > form.largest:
            continue
        with mp.workprec(PRECISION):
            error = float(abs(mpmath.mpmathify(value) - truth))
        errors.error.flat[at] = error
        errors.wrong.flat[at] = bool(error > errors.allowed.flat[at])
