"""Gradients of reductions along axes."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from timberframe_core.dtypes import int32, int64
from timberframe_core.ops.definition.gradients import apply_op, conjugate, constant, shape_of
from timberframe_core.ops.definition.opdef import is_known
from timberframe_core.shapes import is_static


def _known_axes(op: Any) -> list[int] | None:
    """Returns the reduced dimensions counted from the front; None while they or the rank are unknown."""
    shape, axes = op.inputs[0].static_shape, op.inputs[1].host_value
    if shape is None or axes is None or not is_known(axes):
        return None
    return [int(a) % len(shape) for a in np.ravel(axes)]


def _axes(op: Any) -> Any:
    """Returns the reduced dimensions counted from the front, as a vector of int32."""
    rank = apply_op("Rank", [op.inputs[0]])
    given = apply_op("Reshape", [apply_op("Cast", [op.inputs[1]], {"DstT": int32}), [-1]])
    return apply_op("FloorMod", [given + rank, rank])


def _kept_shape(op: Any) -> Any:
    """Returns the input's shape with size one for the reduced dimensions."""
    x, axes = op.inputs[0], _known_axes(op)
    if axes is not None:
        shape = x.static_shape
        if is_static(shape):
            return constant([1 if i in axes else d for i, d in enumerate(shape)], int32)
        kept = [int(i not in axes) for i in range(len(shape))]
        return shape_of(x) * constant(kept, int32) + constant([1 - k for k in kept], int32)
    reduced = _axes(op)
    everywhere = apply_op("Range", [0, apply_op("Rank", [x]), 1])
    ones = apply_op("OnesLike", [reduced])
    return apply_op("DynamicStitch", [[everywhere, reduced], [shape_of(x), ones]])


def _kept(op: Any, *tensors: Any) -> list[Any]:
    """Returns tensors of the output's shape with the reduced dimensions put back in, with size one."""
    if op.attrs["keep_dims"]:
        return list(tensors)
    shape = _kept_shape(op)
    return [apply_op("Reshape", [t, shape]) for t in tensors]


def sum_gradient(op: Any, grad: Any) -> list[Any]:
    """Returns the gradient: each summand gets the gradient of its sum."""
    (kept,) = _kept(op, grad)
    return [apply_op("BroadcastTo", [kept, shape_of(op.inputs[0])]), None]


def mean_gradient(op: Any, grad: Any) -> list[Any]:
    """Returns the same for each element, over their number; divided first, while there are few."""
    x, y = op.inputs[0], op.outputs[0]
    if is_static(x.static_shape) and is_static(y.static_shape):
        return sum_gradient(op, grad / (math.prod(x.static_shape) // max(math.prod(y.static_shape), 1)))
    sizes = [apply_op("Size", [t], {"out_type": int64}) for t in (x, y)]
    count = apply_op("FloorDiv", [sizes[0], apply_op("Maximum", [sizes[1], 1])])
    return sum_gradient(op, grad / apply_op("Cast", [count], {"DstT": grad.dtype}))


def extreme_gradient(op: Any, grad: Any) -> list[Any]:
    """Shared out evenly among the elements that equal the extreme."""
    y, grad = _kept(op, op.outputs[0], grad)
    chosen = apply_op("Cast", [apply_op("Equal", [y, op.inputs[0]])], {"DstT": grad.dtype})
    count = apply_op("Sum", [chosen, op.inputs[1]], {"keep_dims": True})
    return [chosen / count * grad, None]


def norm_gradient(op: Any, grad: Any) -> list[Any]:
    """x / |x|. A complex gradient counts by its real part, as the norm has no other."""
    y, grad = _kept(op, op.outputs[0], grad)
    if grad.dtype.is_complex:
        grad = apply_op("Cast", [apply_op("Real", [grad], {"Tout": grad.dtype.real_dtype})], {"DstT": grad.dtype})
    return [op.inputs[0] * (grad / y), None]


def product_gradient(op: Any, grad: Any) -> list[Any]:
    """Returns the product of all other elements: of those before times of those after, so that zeros do no harm."""
    x = op.inputs[0]
    shape = shape_of(x)
    (kept,) = _kept(op, grad)
    axes = _known_axes(op)
    if axes is not None:
        others = [i for i in range(len(x.static_shape)) if i not in axes]
        reduced = constant(np.array(axes, np.int32), int32)
        order, back = (constant(p.astype(np.int32), int32) for p in _orders(axes + others))
    else:
        reduced = _axes(op)
        everywhere = apply_op("Range", [0, apply_op("Rank", [x]), 1])
        order = apply_op("ConcatV2", [[reduced, apply_op("ListDiff", [everywhere, reduced])[0]], 0])
        back = apply_op("InvertPermutation", [order])
    count = apply_op("Prod", [apply_op("GatherV2", [shape, reduced, 0]), 0])
    rest = apply_op("FloorDiv", [apply_op("Size", [x]), apply_op("Maximum", [count, 1])])
    turned = apply_op("Transpose", [x, order])
    rows = apply_op("Reshape", [turned, apply_op("Pack", [[count, rest]])])
    before, after = (apply_op("Cumprod", [rows, 0], {"exclusive": True, "reverse": r}) for r in (False, True))
    product = apply_op("Reshape", [conjugate(before) * conjugate(after), apply_op("GatherV2", [shape, order, 0])])
    return [apply_op("BroadcastTo", [kept, shape]) * apply_op("Transpose", [product, back]), None]


def _orders(order: list[int]) -> tuple[np.ndarray, np.ndarray]:
    """Returns a permutation and its inverse."""
    return np.array(order), np.argsort(order)
