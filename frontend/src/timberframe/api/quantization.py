"""`tf.dequantize`, which is `tf.quantization.dequantize` too."""

from __future__ import annotations

from typing import Any

from timberframe_core.dtypes import float32
from timberframe_core.graph.apply import apply_op
from timberframe_core.graph.operation import Tensor

__all__ = ["dequantize"]

NAMESPACES = {"quantization": ("dequantize",)}


def dequantize(
    input: Any,
    min_range: Any,
    max_range: Any,
    mode: str = "MIN_COMBINED",
    name: str | None = None,
    axis: int | None = None,
    narrow_range: bool = False,
    dtype: Any = float32,
) -> Tensor:
    """The floating numbers that quantized integers represent; their whole range represents min_range to max_range.

    mode: MIN_COMBINED; MIN_FIRST, where the range is moved so that 0 is exact; SCALED, where 0 is 0 and only the end of
    the range with the larger magnitude is exact; narrow_range omits the smallest integer. axis: the dimension whose
    slices have a range of their own. dtype: float32, or bfloat16 with MIN_COMBINED.
    """
    attrs = {"mode": mode, "narrow_range": narrow_range, "axis": -1 if axis is None else axis, "dtype": dtype}
    result: Tensor = apply_op("Dequantize", [input, min_range, max_range], attrs, name)
    return result
