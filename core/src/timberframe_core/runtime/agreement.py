"""Whether two devices' results of one node agree, by what the op's accuracy allows each of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from timberframe_core.ops.definition.accuracy import Residual
from timberframe_core.ops.definition.formats import FORMATS, widen
from timberframe_core.ops.definition.limits import computing_errors, with_rounding
from timberframe_core.ops.definition.opdef import OpDef


class Divergence(NamedTuple):
    """An output in which `differing` of `size` elements differ too much, and the first of them, at `place`."""

    output: int
    differing: int
    size: int
    place: tuple[int, ...]
    got: Any
    wanted: Any
    allowed: float


def first_divergence(
    op: OpDef,
    attrs: Mapping[str, Any],
    inputs: Sequence[np.ndarray],
    got: Sequence[np.ndarray],
    wanted: Sequence[np.ndarray],
) -> Divergence | None:
    """Returns the first output in which two results differ by more than both may be off; None where they agree."""
    with np.errstate(all="ignore"):
        limits = _limits(op, attrs, inputs, wanted)
        for i, (a, b, limit) in enumerate(zip(got, wanted, limits, strict=True)):
            if a.dtype != b.dtype or a.shape != b.shape:
                return Divergence(i, a.size, a.size, (), f"{a.dtype}{a.shape}", f"{b.dtype}{b.shape}", 0.0)
            wrong = _differ(a, b)
            if limit is not None:
                wide = np.promote_types(a.dtype, np.float64) if a.dtype.kind in "fc" else np.float64
                error = np.abs(a.astype(wide) - b.astype(wide))
                wrong &= ~(error <= 2 * limit)
            if wrong.any():
                index = tuple(int(k) for k in np.argwhere(wrong)[0])
                allowed = 0.0 if limit is None else float(np.broadcast_to(2 * limit, wrong.shape)[index])
                return Divergence(i, int(wrong.sum()), wrong.size, index, a[index], b[index], allowed)
    return None


def _differ(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Returns the elements that are not equal; any NaN equals any other."""
    differ: np.ndarray = np.asarray(a != b)
    if a.dtype.name in FORMATS:
        differ &= ~(np.isnan(a) & np.isnan(b))
    return differ


def _limits(
    op: OpDef, attrs: Mapping[str, Any], inputs: Sequence[np.ndarray], results: Sequence[np.ndarray]
) -> list[np.ndarray | None]:
    """For each output how far one result may be from the truth, elementwise in float64; None where it is exact.

    The results stand for the truth, from which they are a rounding away.
    """
    dtypes, wide = [x.dtype for x in results], tuple(map(widen, results))
    if isinstance(op.accuracy, Residual):
        return [np.full((), np.inf) if t.name in FORMATS else None for t in dtypes]  # its results are not unique
    errors = computing_errors(op, attrs, inputs, wide, dtypes)
    return [None if e is None else with_rounding(e, w, t) for e, w, t in zip(errors, wide, dtypes, strict=True)]
