"""Histograms with parts of equal width, and how often integers occur."""

from __future__ import annotations

from typing import Any

from timberframe.api.assertions import assert_positive
from timberframe.api.framework import control_dependencies, name_scope
from timberframe.api.reduction import reduce_max
from timberframe_core.dtypes import as_dtype, int32
from timberframe_core.errors import InvalidTypeError
from timberframe_core.graph.apply import apply_op, convert_to_tensor
from timberframe_core.graph.operation import Tensor

__all__ = ["bincount", "histogram_fixed_width", "histogram_fixed_width_bins"]

NAMESPACES = {"math": ("bincount",)}


def histogram_fixed_width(
    values: Any, value_range: Any, nbins: Any = 100, dtype: Any = int32, name: str | None = None
) -> Tensor:
    """How many values lie in each of `nbins` equal parts of value_range, those outside in the first or last part."""
    with name_scope(name, "histogram_fixed_width") as scope:
        x = convert_to_tensor(values, name="values")
        limits = convert_to_tensor(value_range, x.dtype, "value_range")
        result: Tensor = apply_op("HistogramFixedWidth", [x, limits, nbins], {"dtype": as_dtype(dtype)}, scope)
        return result


def histogram_fixed_width_bins(
    values: Any, value_range: Any, nbins: Any = 100, dtype: Any = int32, name: str | None = None
) -> Tensor:
    """The part of value_range, of `nbins` equal ones, that each value lies in; for those outside the first or last.

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


def bincount(arr: Any, weights: Any = None, minlength: Any = None, maxlength: Any = None, dtype: Any = int32) -> Tensor:
    """Counts how often each number from 0 to the largest occurs, or with weights of their shape adds these up.

    minlength, maxlength: the least and the greatest length of the result. dtype: of the result without weights.
    """
    with name_scope(None, "bincount"):
        numbers = convert_to_tensor(arr, name="arr")
        if not numbers.dtype.is_integer:
            raise InvalidTypeError(f"tf.math.bincount: arr is of {numbers.dtype.name}; integers are required")
        size = apply_op("Cast", [apply_op("Size", [numbers]) > 0], {"DstT": numbers.dtype}) * (reduce_max(numbers) + 1)
        if minlength is not None:
            size = apply_op("Maximum", [convert_to_tensor(minlength, numbers.dtype, "minlength"), size])
        if maxlength is not None:
            size = apply_op("Minimum", [convert_to_tensor(maxlength, numbers.dtype, "maxlength"), size])
        given = (
            convert_to_tensor([], as_dtype(dtype)) if weights is None else convert_to_tensor(weights, name="weights")
        )
        flat = [apply_op("Reshape", [x, [-1]]) for x in (numbers, given)]
        result: Tensor = apply_op("DenseBincount", [flat[0], size, flat[1]])
        return result
