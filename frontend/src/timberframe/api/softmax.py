"""`tf.nn` functions: softmax and its logarithm along any axis."""

from __future__ import annotations

from typing import Any

from timberframe.api.arrays import transpose
from timberframe.api.axis_order import exchange_with_last
from timberframe.api.reduction import renamed
from timberframe_core.graph.apply import apply_op, convert_to_tensor
from timberframe_core.graph.operation import Tensor

__all__: list[str] = []

NAMESPACES = {"nn": ("log_softmax", "softmax"), "math": ("log_softmax", "softmax")}


def softmax(logits: Any, axis: int | None = None, name: str | None = None, dim: int | None = None) -> Tensor:
    """exp(logits) over the sum of exp(logits) along an axis (the last for None)."""
    return _along_axis("Softmax", logits, renamed("axis", axis, "dim", dim), name)


def log_softmax(logits: Any, axis: int | None = None, name: str | None = None, dim: int | None = None) -> Tensor:
    """logits less the logarithm of the sum of exp(logits) along an axis (the last for None)."""
    return _along_axis("LogSoftmax", logits, renamed("axis", axis, "dim", dim), name)


def _along_axis(op: str, logits: Any, axis: int | None, name: str | None) -> Tensor:
    """Applies the op to the last dimension; another axis is exchanged with that before and after."""
    x = convert_to_tensor(logits)
    order = None if axis is None or axis == -1 else exchange_with_last(x, axis, f"{op} '{name or op}'")
    if order is None:
        result: Tensor = apply_op(op, [x], name=name)
        return result
    return transpose(apply_op(op, [transpose(x, order)]), order, name=name)
