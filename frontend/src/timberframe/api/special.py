"""`tf.math.*` functions made of a few others: counts, means of segments, polynomials, indices of several dimensions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from timberframe.api.arrays import expand_dims, reshape
from timberframe.api.assertions import assert_less, assert_non_negative
from timberframe.api.framework import control_dependencies, name_scope
from timberframe.api.indexing import unsorted_segment_sum
from timberframe.api.reduction import cumprod, reduce_max, reduce_prod, reduce_sum
from timberframe.api.selection import cast, where_v2
from timberframe.api.unary import lgamma
from timberframe_core.dtypes import int32
from timberframe_core.errors import InvalidArgumentError, InvalidTypeError
from timberframe_core.graph.apply import apply_op, convert_to_tensor
from timberframe_core.graph.operation import Tensor

__all__ = ["bincount", "lbeta", "unravel_index", "unsorted_segment_mean", "unsorted_segment_sqrt_n"]

NAMESPACES = {"math": ("bincount", "lbeta", "polyval", "unsorted_segment_mean", "unsorted_segment_sqrt_n")}


def bincount(
    arr: Any, weights: Any = None, minlength: Any = None, maxlength: Any = None, dtype: Any = int32,
    name: str | None = None,
) -> Tensor:  # fmt: skip
    """Returns how often each number from 0 occurs in integers that are not negative, or the sums of their weights.

    minlength, maxlength: the least and the greatest number of results; numbers from maxlength on do not count.
    dtype: of counts; sums have that of the weights. Running it raises InvalidArgumentError for negative numbers.
    """
    with name_scope(name, "bincount"):
        numbers = convert_to_tensor(arr, preferred_dtype=int32)
        if not numbers.dtype.is_integer:
            raise InvalidTypeError(f"tf.bincount: arr is of {numbers.dtype.name}; integers are required")
        given = reshape(cast(numbers, int32), [-1])
        with control_dependencies([assert_non_negative(given, message="tf.bincount: arr has negative numbers")]):
            given = apply_op("Identity", [given])
        size = apply_op("AddV2", [reduce_max(apply_op("ConcatV2", [[given, [-1]], 0])), 1])
        for op, limit in (("Maximum", minlength), ("Minimum", maxlength)):
            size = size if limit is None else apply_op(op, [size, cast(convert_to_tensor(limit), int32)])
        ones = apply_op("OnesLike", [given])
        values = cast(ones, dtype) if weights is None else reshape(weights, [-1])
        return unsorted_segment_sum(values, where_v2(apply_op("Less", [given, size]), given, -1), size)


def _over_counts(data: Any, segment_ids: Any, num_segments: Any, name: str | None, function: str) -> Tensor:
    with name_scope(name, function):
        x, ids = convert_to_tensor(data), convert_to_tensor(segment_ids)
        total: Any = unsorted_segment_sum(x, ids, num_segments)
        counts: Any = unsorted_segment_sum(cast(apply_op("OnesLike", [ids]), x.dtype), ids, num_segments)
        least = apply_op("Maximum", [counts, cast(1, x.dtype)])
        divisor = least if function.endswith("mean") else apply_op("Sqrt", [least])
        if x.shape.ndims is None or ids.shape.ndims is None:
            raise InvalidArgumentError(f"tf.{function}: the rank of data or segment_ids is unknown; it must be known")
        made: Tensor = total / reshape(divisor, [-1, *[1] * (x.shape.ndims - ids.shape.ndims)])
        return made


def unsorted_segment_mean(data: Any, segment_ids: Any, num_segments: Any, name: str | None = None) -> Tensor:
    """Returns the means of the elements of each segment, 0 where it has none; negative ids are left out."""
    return _over_counts(data, segment_ids, num_segments, name, "unsorted_segment_mean")


def unsorted_segment_sqrt_n(data: Any, segment_ids: Any, num_segments: Any, name: str | None = None) -> Tensor:
    """Returns the sums of the elements of each segment, divided by the root of their number."""
    return _over_counts(data, segment_ids, num_segments, name, "unsorted_segment_sqrt_n")


def polyval(coeffs: Sequence[Any], x: Any, name: str | None = None) -> Tensor:
    """Returns the polynomial of x whose coefficients, the highest power's first, are a list; by Horner's rule."""
    if not isinstance(coeffs, list):
        raise InvalidArgumentError(f"tf.math.polyval: coeffs is {coeffs!r}; a list is required")
    with name_scope(name, "polyval", [*coeffs, x]):
        given: Any = convert_to_tensor(x)
        total: Any = apply_op("ZerosLike", [given])
        for i, c in enumerate(coeffs):
            own = convert_to_tensor(c, given.dtype)
            total = own if i == 0 else own + total * given
        made: Tensor = total
        return made


def lbeta(x: Any, name: str | None = None) -> Tensor:
    """log |Beta(x)| = sum(log gamma(x)) - log gamma(sum(x)) along the last dimension."""
    with name_scope(name, "lbeta", [x]):
        given = convert_to_tensor(x)
        first: Any = reduce_sum(lgamma(given), [-1])
        made: Tensor = first - lgamma(reduce_sum(given, [-1]))
        return made


def unravel_index(indices: Any, dims: Any, name: str | None = None) -> Tensor:
    """Returns the index along each dimension of an array of sizes `dims`: [dimensions] of one
    number, else [dimensions, n].
    """
    with name_scope(name, "unravel_index"):
        given = convert_to_tensor(indices)
        sizes = convert_to_tensor(dims, given.dtype)
        count = reduce_prod(sizes)
        with control_dependencies(
            [
                assert_non_negative(given, message="tf.unravel_index: indices"),
                assert_less(given, count, message="tf.unravel_index: indices must lie inside of dims"),
            ]
        ):
            given = apply_op("Identity", [given])
        steps = cumprod(sizes, exclusive=True, reverse=True)
        if given.shape.ndims != 0:
            sizes, steps = expand_dims(sizes, 1), expand_dims(steps, 1)
        made: Tensor = apply_op("FloorMod", [apply_op("FloorDiv", [given, steps]), sizes])
        return made
