"""Histograms with parts of equal width."""

from __future__ import annotations

from typing import Any

from timberframe.api.assertions import assert_positive
from timberframe.api.framework import control_dependencies, name_scope
from timberframe_core.dtypes import as_dtype, int32
from timberframe_core.graph.apply import apply_op, convert_to_tensor
from timberframe_core.graph.operation import Tensor

__all__ = ["histogram_fixed_width", "histogram_fixed_width_bins"]


def histogram_fixed_width(
    values: Any, value_range: Any, nbins: Any = 100, dtype: Any = int32, name: str | None = None
) -> Tensor:
    """Returns how many values lie in each of `nbins` equal parts of value_range, those outside
    in the first or last part.
    """
    with name_scope(name, "histogram_fixed_width") as scope:
        x = convert_to_tensor(values, name="values")
        limits = convert_to_tensor(value_range, x.dtype, "value_range")
        result: Tensor = apply_op("HistogramFixedWidth", [x, limits, nbins], {"dtype": as_dtype(dtype)}, scope)
        return result


def histogram_fixed_width_bins(
    values: Any, value_range: Any, nbins: Any = 100, dtype: Any = int32, name: str | None = None
) -> Tensor:
    """Returns the part of value_range, of `nbins` equal ones, that each value lies in; for those
    outside the first or last.

    dtype is TensorFlow's and ignored as there: the result is int32.
    """
    with name_scope(name, "histogram_fixed_width_bins") as scope:
        x = convert_to_tensor(values, name="values")
        limits = convert_to_tensor(value_range, x.dtype, "value_range")
        low, high = limits[0], limits[1]
        part, whole = apply_op("Sub", [x, low]), apply_op("Sub", [high, low])
        share: Any = part / whole  # in float64 for integers
        number = convert_to_tensor(nbins, int32)
        with control_dependencies([assert_positive(number, message="histogram_fixed_width_bins: nbins")]):
            count = apply_op("Cast", [number], {"DstT": share.dtype})
        bins = apply_op(
            "ClipByValue", [apply_op("Floor", [count * share]), convert_to_tensor(0, share.dtype), count - 1]
        )
        result: Tensor = apply_op("Cast", [bins], {"DstT": int32}, scope)
        return result
