"""`tf.*` functions that sort, rank, and find distinct elements."""

from __future__ import annotations

from typing import Any, NamedTuple

from timberframe.api.arrays import transpose
from timberframe.api.axis_order import exchange_with_last
from timberframe.api.framework import name_scope
from timberframe_core.dtypes import int32
from timberframe_core.errors import InvalidArgumentError
from timberframe_core.graph.apply import apply_op, convert_to_tensor
from timberframe_core.graph.operation import Tensor

__all__ = ["argsort", "repeat", "searchsorted", "setdiff1d", "sort", "unique", "unique_with_counts"]

NAMESPACES = {"nn": ("in_top_k", "top_k"), "math": ("in_top_k", "top_k")}


class TopKV2(NamedTuple):
    """The largest values and their positions."""

    values: Tensor
    indices: Tensor


class Unique(NamedTuple):
    """Distinct elements, and each element's index among them."""

    y: Tensor
    idx: Tensor


class UniqueWithCounts(NamedTuple):
    """Distinct elements, each element's index among them, and how often they occur."""

    y: Tensor
    idx: Tensor
    count: Tensor  # type: ignore[assignment]  # TensorFlow's name, which hides tuple.count


class ListDiff(NamedTuple):
    """Elements of one list that are not in another, and their positions."""

    out: Tensor
    idx: Tensor


def top_k(input: Any, k: Any = 1, sorted: bool = True, index_type: Any = int32, name: str | None = None) -> TopKV2:
    """Returns the k largest elements along the last dimension, descending, and their positions."""
    return TopKV2(*apply_op("TopKV2", [input, k], {"sorted": sorted, "index_type": index_type}, name))


def in_top_k(predictions: Any, targets: Any, k: Any, name: str | None = None) -> Tensor:
    """Returns whether each row's target is among its k largest predictions."""
    result: Tensor = apply_op("InTopKV2", [predictions, targets, k], None, name)
    return result


def unique(x: Any, out_idx: Any = int32, name: str | None = None) -> Unique:
    """Returns the distinct elements of a vector in order of first occurrence, and each element's index among them."""
    return Unique(*apply_op("Unique", [x], {"out_idx": out_idx}, name))


def unique_with_counts(x: Any, out_idx: Any = int32, name: str | None = None) -> UniqueWithCounts:
    """`unique`, with how often each element occurs."""
    return UniqueWithCounts(*apply_op("UniqueWithCounts", [x], {"out_idx": out_idx}, name))


def setdiff1d(x: Any, y: Any, index_dtype: Any = int32, name: str | None = None) -> ListDiff:
    """Returns the elements of x that are not in y, and their positions."""
    return ListDiff(*apply_op("ListDiff", [x, y], {"out_idx": index_dtype}, name))


def sort(values: Any, axis: int = -1, direction: str = "ASCENDING", name: str | None = None) -> Tensor:
    """Returns the values in order along the axis; direction is ASCENDING or DESCENDING."""
    with name_scope(name, "sort"):
        return _order(values, axis, direction)[0]


def argsort(
    values: Any, axis: int = -1, direction: str = "ASCENDING", stable: bool = False, name: str | None = None
) -> Tensor:
    """Returns the positions that put the values in order along the axis.

    Equal ones stay in order even without `stable`.
    """
    with name_scope(name, "argsort"):
        return _order(values, axis, direction)[1]


def _order(values: Any, axis: int, direction: str) -> tuple[Tensor, Tensor]:
    if direction not in ("ASCENDING", "DESCENDING"):
        raise InvalidArgumentError(f"tf.sort: direction is {direction!r}; it must be ASCENDING or DESCENDING")
    x = convert_to_tensor(values)
    order = exchange_with_last(x, axis, "tf.sort")
    if order is not None:
        x = transpose(x, order)
    ascending = direction == "ASCENDING"
    found = top_k(_mirrored(x) if ascending else x, _last_size(x))
    ordered, positions = found.values, found.indices
    if ascending:
        ordered = _mirrored(ordered)
    return (ordered, positions) if order is None else (transpose(ordered, order), transpose(positions, order))


def _last_size(x: Tensor) -> Any:
    size = (x.static_shape or (None,))[-1]
    if size is not None:
        return size
    return apply_op("StridedSlice", [apply_op("Shape", [x]), [-1], [0], [1]], {"shrink_axis_mask": 1})


def _mirrored(x: Tensor) -> Tensor:
    """Returns values in the opposite order, from which this function gives back x exactly."""
    if x.dtype.is_integer:  # -1 - x, which no integer overflows; for unsigned ones it is max - x
        result: Tensor = apply_op("Invert", [x])
    else:
        result = apply_op("Neg", [x])
    return result


def searchsorted(
    sorted_sequence: Any, values: Any, side: str = "left", out_type: Any = int32, name: str | None = None
) -> Tensor:
    """Returns where values belong in rising sequences, [..., n] and [..., m]: before equal
    elements, or after with "right".

    It compares each value with each element.
    """
    if side not in ("left", "right"):
        raise InvalidArgumentError(f"tf.searchsorted: side is {side!r}; 'left' or 'right' is required")
    with name_scope(name, "searchsorted", [sorted_sequence, values]):
        sequence = convert_to_tensor(sorted_sequence)
        wanted = apply_op("ExpandDims", [convert_to_tensor(values, sequence.dtype), -1])
        given = apply_op("ExpandDims", [sequence, -2])
        before = apply_op("Less" if side == "left" else "LessEqual", [given, wanted])
        made: Tensor = apply_op("Sum", [apply_op("Cast", [before], {"DstT": out_type}), -1])
        return made


def repeat(input: Any, repeats: Any, axis: int | None = None, name: str | None = None) -> Tensor:
    """Returns the elements along an axis, each repeated so many times; axis None flattens first.

    repeats: a number, or one for each element.
    """
    with name_scope(name, "Repeat", [input, repeats]):
        x = convert_to_tensor(input)
        if axis is None:
            x, axis = apply_op("Reshape", [x, [-1]]), 0
        counts: Any = convert_to_tensor(repeats)
        size = apply_op("Shape", [x])[axis]
        counts = apply_op("BroadcastTo", [counts, apply_op("Pack", [[size]])])
        longest = apply_op("Maximum", [0, apply_op("Max", [counts, 0])])
        rows = apply_op("Less", [apply_op("Range", [0, longest, 1]), apply_op("ExpandDims", [counts, -1])])
        places = apply_op("Where", [rows])
        made: Tensor = apply_op("GatherV2", [x, apply_op("Squeeze", [places[:, :1]], {"squeeze_dims": [1]}), axis])
        return made
