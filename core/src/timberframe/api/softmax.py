"""`tf.nn` functions: softmax and its logarithm along any axis."""

from __future__ import annotations

from typing import Any

from timberframe.api.arrays import rank, transpose
from timberframe.api.reduction import renamed
from timberframe.errors import InvalidArgumentError
from timberframe.graph.apply import apply_op, convert_to_tensor
from timberframe.graph.operation import Tensor

__all__: list[str] = []

NAMESPACES = {"nn": ("log_softmax", "softmax"), "math": ("log_softmax", "softmax")}


def softmax(logits: Any, axis: int | None = None, name: str | None = None, dim: int | None = None) -> Tensor:
    """exp(logits) over the sum of exp(logits) along an axis (the last for None)."""
    return _along_axis("Softmax", logits, renamed("axis", axis, "dim", dim), name)


def log_softmax(logits: Any, axis: int | None = None, name: str | None = None, dim: int | None = None) -> Tensor:
    """logits less the logarithm of the sum of exp(logits) along an axis (the last for None)."""
    return _along_axis("LogSoftmax", logits, renamed("axis", axis, "dim", dim), name)


def _along_axis(op: str, logits: Any, axis: int | None, name: str | None) -> Tensor:
    """The op works on the last dimension; another axis changes places with that before and after."""
    x = convert_to_tensor(logits)
    shape = x.static_shape
    if axis is None or axis == -1 or (shape is not None and axis == len(shape) - 1):
        result: Tensor = apply_op(op, [x], name=name)
        return result
    order: Any = _dynamic_order(x, axis) if shape is None else None
    if shape is not None:
        if not -len(shape) <= axis < len(shape):
            raise InvalidArgumentError(
                f"{op} '{name or op}': axis {axis} is outside the rank {len(shape)} of logits; "
                f"it must lie in [{-len(shape)}, {len(shape)})"
            )
        order = list(range(len(shape)))
        order[axis], order[-1] = order[-1], order[axis]
    return transpose(apply_op(op, [transpose(x, order)]), order, name=name)


def _dynamic_order(x: Tensor, axis: int) -> Tensor:
    """The permutation that swaps `axis` and the last dimension of a tensor of unknown rank."""
    n = rank(x)
    last = apply_op("Sub", [n, 1])
    place = apply_op("AddV2", [n, axis]) if axis < 0 else convert_to_tensor(axis)
    positions = apply_op("Range", [0, n, 1])
    swapped = apply_op("SelectV2", [apply_op("Equal", [positions, place]), last, positions])
    order: Tensor = apply_op("SelectV2", [apply_op("Equal", [positions, last]), place, swapped])
    return order
