"""Counts of what single operations have and do."""

from __future__ import annotations

import math

import numpy as np

from timberframe_core.graph.graph import Graph
from timberframe_core.graph.operation import Operation, Tensor
from timberframe_core.ops.definition.work import floating_operations
from timberframe_core.shapes import is_static

TRAINABLE_VARIABLES = "_trainable_variables"
"""The type that trainable variables have in profiles besides the types of their operations."""


def own_types(graph: Graph) -> dict[str, list[str]]:
    """Returns the further types of operations by name."""
    trainable = graph.get_collection("trainable_variables")
    return {v.op.name: [TRAINABLE_VARIABLES] for v in trainable if hasattr(v, "op")}


def variable_shape(op: Operation) -> tuple[int, ...] | None:
    """Returns the shape of the variable that an operation makes; None where there is none, or no shape is known."""
    shape: tuple[int, ...] | None = op.attrs.get("shape") if op.op_def.role in ("variable", "reference") else None
    return shape if is_static(shape) else None


def float_ops(op: Operation) -> int:
    """Returns how many floating operations a run of an operation takes; 0 where shapes are not known."""
    tensors = [*op.inputs, *op.outputs]
    if any(t.static_shape is None or None in t.static_shape for t in tensors):
        return 0
    written = sum(math.prod(_sizes(t)) for t in op.outputs if t.dtype.is_floating or t.dtype.is_complex)
    return floating_operations(op.op_def, op.attrs, [_stand_in(t) for t in op.inputs], written)


def _sizes(tensor: Tensor) -> list[int]:
    return [d or 0 for d in tensor.static_shape or ()]


def _stand_in(tensor: Tensor) -> np.ndarray:
    """Returns an array of the tensor's shape that needs no memory; its value where that is known."""
    if tensor.host_value is not None:
        return np.asarray(tensor.host_value)
    return np.broadcast_to(np.zeros((), tensor.dtype.base_dtype.numpy), _sizes(tensor))
