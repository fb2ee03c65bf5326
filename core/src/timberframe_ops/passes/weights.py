"""Some rows of the weights that iterations of a loop multiply by, taken once for all of them."""

from __future__ import annotations

import weakref

import numpy as np

from timberframe_core.dtypes import as_dtype, int32
from timberframe_core.plugin.contracts import Value
from timberframe_ops.passes.loop_rewriter import LoopRewriter


def weight_rows(loop: LoopRewriter, weights: Value, begin: int, end: int) -> Value:
    """Returns some rows of weights, outside of the loop."""
    if weights.kind == "const":
        return loop.outer.constant(_constant_rows(weights.constant, begin, end))
    columns = weights.shape[1]
    attrs = {"T": as_dtype(weights.dtype), "Index": int32}
    bounds = [loop.outer.constant(np.array(x, np.int32)) for x in ((begin, 0), (end - begin, columns))]
    return loop.beside("Slice", [weights, *bounds], attrs, f"{loop.loop.name}/weights")


_views: weakref.WeakValueDictionary[tuple[int, ...], np.ndarray] = weakref.WeakValueDictionary()
"""Rows of constants, so that all plans share them, and what devices derive of them."""


def _constant_rows(x: np.ndarray, begin: int, end: int) -> np.ndarray:
    """Returns rows of a constant: the same array each time, for as long as somebody has it."""
    rows = x[begin:end]
    return _views.setdefault((rows.ctypes.data, *rows.shape, *rows.strides, ord(rows.dtype.char)), rows)
