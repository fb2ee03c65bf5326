"""Numbers of floating operations that operations do, by their ops' definitions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from timberframe_core.ops.definition.accuracy import Accumulation, Pointwise
from timberframe_core.ops.definition.opdef import OpDef

_FLOATING = "fcV"  # kinds of dtypes, those of ml_dtypes included


def floating_operations(op: OpDef, attrs: Mapping[str, Any], inputs: Sequence[np.ndarray], written: int) -> int:
    """Returns a multiplication and an addition for each product that is summed, one for each element of pointwise ops.

    inputs: arrays of the inputs' shapes and dtypes, with the values of those that sizes follow from. written: how many
    floating elements the outputs have. 0 for other ops, and where the number depends on values that are not given.
    """
    if not written:
        return 0
    if isinstance(op.accuracy, Accumulation):
        factors = sum(x.dtype.kind in _FLOATING for x in inputs)
        try:
            return written * int(op.accuracy.terms(attrs, *inputs)) * min(2, factors)
        except Exception:  # terms that depend on values
            return 0
    return written if op.elementwise or isinstance(op.accuracy, Pointwise) else 0
