"""Permutations that move dimensions to the end, for ranks known while the graph is built or only in the run."""

from __future__ import annotations

from typing import Any

from timberframe.api.arrays import rank
from timberframe_core.dtypes import int32
from timberframe_core.errors import InvalidArgumentError
from timberframe_core.graph.apply import apply_op, convert_to_tensor
from timberframe_core.graph.operation import Tensor


def exchange_with_last(x: Tensor, axis: int, function: str) -> Any:
    """Returns the permutation that exchanges a dimension with the last one; None where it is the last.

    function: the caller's name, for the error if the axis is outside a known rank.
    """
    if axis == -1 and x.static_shape is None:
        return None
    if x.static_shape is not None:
        at, last = _known_axis(x, axis, function), len(x.static_shape) - 1
        return None if at == last else [last if i == at else at if i == last else i for i in range(last + 1)]
    count = rank(x)
    index, end, positions = _from_front(axis, count), apply_op("Sub", [count, 1]), apply_op("Range", [0, count, 1])
    exchanged = apply_op("SelectV2", [apply_op("Equal", [positions, index]), end, positions])
    return apply_op("SelectV2", [apply_op("Equal", [positions, end]), index, exchanged])


def move_to_end(x: Tensor, axis: int, function: str) -> Any:
    """Returns the permutation that puts a dimension after all others; None where it is the last."""
    if axis == -1 and x.static_shape is None:
        return None
    if x.static_shape is not None:
        at, last = _known_axis(x, axis, function), len(x.static_shape) - 1
        return None if at == last else [*(i for i in range(last + 1) if i != at), at]
    count = rank(x)
    index, others = _from_front(axis, count), apply_op("Range", [0, apply_op("Sub", [count, 1]), 1])
    after = apply_op("Cast", [apply_op("GreaterEqual", [others, index])], {"DstT": int32})
    return apply_op("ConcatV2", [[apply_op("AddV2", [others, after]), apply_op("ExpandDims", [index, 0])], 0])


def group(count: Any, axes: Any, last: bool) -> Tensor:
    """Returns the permutation of `count` dimensions that puts those of a vector in its order after
    the others, or before them.

    It uses only ops whose values follow from the rank, so that no shape depends on a device's result.
    """
    given = convert_to_tensor(axes, int32)
    chosen = apply_op("FloorMod", [given, count])  # counted from the front
    number = apply_op("Size", [chosen])
    positions, columns = apply_op("Range", [0, count, 1]), apply_op("ExpandDims", [chosen, 0])
    rows = apply_op("ExpandDims", [positions, 1])
    taken = apply_op("Cast", [apply_op("Equal", [rows, columns])], {"DstT": int32})
    before = apply_op("Sum", [apply_op("Cast", [apply_op("Less", [columns, rows])], {"DstT": int32}), 1])
    is_chosen = apply_op("Sum", [taken, 1])
    own = apply_op("Sum", [apply_op("Mul", [taken, apply_op("Range", [0, number, 1])]), 1])
    other = apply_op("Sub", [positions, before])
    if last:
        own = apply_op("AddV2", [own, apply_op("Sub", [count, number])])
    else:
        other = apply_op("AddV2", [other, number])
    rest = apply_op("Mul", [apply_op("Sub", [1, is_chosen]), other])
    order: Tensor = apply_op("InvertPermutation", [apply_op("AddV2", [apply_op("Mul", [is_chosen, own]), rest])])
    return order


def _known_axis(x: Tensor, axis: int, function: str) -> int:
    count = len(x.static_shape or ())
    if not -count <= axis < count:
        raise InvalidArgumentError(
            f"{function}: axis {axis} is outside the input's rank {count}; it must lie in [{-count}, {count})"
        )
    return axis % count


def _from_front(axis: int, count: Tensor) -> Tensor:
    at: Tensor = apply_op("AddV2", [count, axis]) if axis < 0 else convert_to_tensor(axis, int32)
    return at
