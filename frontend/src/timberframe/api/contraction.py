"""`tf.tensordot`: products of tensors summed over pairs of dimensions."""

from __future__ import annotations

import string
from collections.abc import Sequence
from typing import Any

import numpy as np

from timberframe.api.arrays import rank, transpose
from timberframe.api.axis_order import group
from timberframe_core.dtypes import int32
from timberframe_core.errors import InvalidArgumentError
from timberframe_core.graph.apply import apply_op, convert_to_tensor
from timberframe_core.graph.operation import Tensor

__all__ = ["tensordot"]

NAMESPACES = {"linalg": ("tensordot",)}


def tensordot(a: Any, b: Any, axes: Any, name: str | None = None) -> Tensor:
    """Returns the sum of products over pairs of dimensions: the last `axes` of a with the first
    of b, or two lists of axes.

    The result has the other dimensions of a, then those of b. The lists may be tensors.
    """
    x = convert_to_tensor(a)
    y = convert_to_tensor(b, x.dtype.base_dtype)
    summed = int(axes) if isinstance(axes, int | np.integer) else _sides(axes)
    computed = not isinstance(summed, int) and any(isinstance(side, Tensor) for side in summed)
    if computed or x.static_shape is None or y.static_shape is None:
        return _contract(x, y, summed, name)
    return _einsum(x, y, summed, name)


def _sides(axes: Any) -> Sequence[Any]:
    """Returns the axes of a and those of b: two tensors, or lists of ints."""
    if isinstance(axes, Tensor):
        return apply_op("Unpack", [axes], {"num": 2, "axis": 0})  # type: ignore[no-any-return]  # a list of tensors
    if len(axes) != 2:
        raise InvalidArgumentError(f"tensordot: axes has {len(axes)} entries; a number or two lists are required")
    return [side if isinstance(side, Tensor) else [int(i) for i in np.ravel(np.asarray(side))] for side in axes]


def _einsum(x: Tensor, y: Tensor, axes: int | Sequence[Any], name: str | None) -> Tensor:
    ranks = [len(t.static_shape or ()) for t in (x, y)]
    if isinstance(axes, int):
        if not 0 <= axes <= min(ranks):
            raise InvalidArgumentError(f"tensordot: axes is {axes} for ranks {ranks}; it must lie in [0, {min(ranks)}]")
        sides: Sequence[Any] = range(ranks[0] - axes, ranks[0]), range(axes)
    else:
        sides = axes
    for count, chosen in zip(ranks, sides, strict=True):
        if any(not -count <= i < count for i in chosen) or len({i % count for i in chosen}) != len(chosen):
            raise InvalidArgumentError(
                f"tensordot: axes {list(chosen)} for an input of rank {count}; each must lie in it, and only once"
            )
    if len(sides[0]) != len(sides[1]):
        raise InvalidArgumentError(f"tensordot: {len(sides[0])} axes of a, {len(sides[1])} of b; there must be as many")
    letters = iter(string.ascii_letters)
    of_a, of_b = ([next(letters) for _ in range(count)] for count in ranks)
    for i, j in zip(*sides, strict=True):
        of_b[j] = of_a[i]
    paired = {of_a[i] for i in sides[0]}
    output = [letter for letter in (*of_a, *of_b) if letter not in paired]
    equation = f"{''.join(of_a)},{''.join(of_b)}->{''.join(output)}"
    result: Tensor = apply_op("Einsum", [[x, y]], {"equation": equation}, name)
    return result


def _contract(x: Tensor, y: Tensor, axes: int | Sequence[Any], name: str | None) -> Tensor:
    """As a product of matrices, whose shapes a run computes."""
    if isinstance(axes, int):
        count = rank(x)
        sides: Sequence[Any] = apply_op("Range", [apply_op("Sub", [count, axes]), count, 1]), np.arange(axes)
    else:
        sides = axes
    left, of_a = _matrix(x, sides[0], last=True)
    right, of_b = _matrix(y, sides[1], last=False)
    product = apply_op("MatMul", [left, right])
    result: Tensor = apply_op("Reshape", [product, apply_op("ConcatV2", [[of_a, of_b], 0])], None, name)
    return result


def _matrix(x: Tensor, axes: Any, last: bool) -> tuple[Tensor, Tensor]:
    """x as a matrix whose columns (rows, unless `last`) are the axes that are summed; and the sizes of the others."""
    chosen = convert_to_tensor(axes, int32)
    order = group(rank(x), chosen, last)
    sizes = apply_op("GatherV2", [apply_op("Shape", [x]), order, 0])
    number = apply_op("Size", [chosen])
    split = apply_op("Sub", [apply_op("Size", [sizes]), number]) if last else number
    at = apply_op("ExpandDims", [split, 0])
    parts = [_part(sizes, [0], at), _part(sizes, at, apply_op("Shape", [sizes]))]
    shape = apply_op("Pack", [[apply_op("Prod", [part, 0]) for part in parts]])
    return apply_op("Reshape", [transpose(x, order), shape]), parts[0 if last else 1]


def _part(vector: Tensor, begin: Any, end: Any) -> Tensor:
    part: Tensor = apply_op("StridedSlice", [vector, begin, end, [1]])
    return part
