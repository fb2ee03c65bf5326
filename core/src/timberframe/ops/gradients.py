"""What the gradient functions of the ops are made of.

A gradient function is ``f(op, *grads) -> list``: the forward operation and one gradient for each flat output (zeros
where nothing flows into a floating or complex output, None for outputs of other dtypes) give one entry for each flat
input: a tensor, IndexedSlices, or None where nothing flows. It adds nodes by `apply_op` and by operators on tensors.

The graph is built on top of the ops, so it is imported when a gradient is built and not before.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from timberframe.dtypes import int32
from timberframe.shapes import is_static


def apply_op(op: str, inputs: Sequence[Any] = (), attrs: Mapping[str, Any] | None = None) -> Any:
    """Adds a node to the current graph; see `timberframe.graph.apply.apply_op`."""
    from timberframe.graph import apply

    return apply.apply_op(op, inputs, attrs)


def indexed_slices(values: Any, indices: Any, dense_shape: Any) -> Any:
    """The gradient of a lookup: rows of a tensor of shape `dense_shape`."""
    from timberframe.graph.indexed_slices import IndexedSlices

    return IndexedSlices(values, indices, dense_shape)


def shape_of(x: Any, dtype: Any = int32) -> Any:
    """The shape of x as a vector; no node but a constant where it is known."""
    if is_static(x.static_shape):
        return constant(list(x.static_shape), dtype)
    return apply_op("Shape", [x], {"out_type": dtype})


def constant(value: Any, dtype: Any) -> Any:
    """A constant of this dtype."""
    from timberframe.graph.apply import convert_to_tensor

    return convert_to_tensor(value, dtype)


def conjugate(x: Any) -> Any:
    """The complex conjugate; x itself where it is real."""
    return apply_op("Conj", [x]) if x.dtype.is_complex else x


def broadcast_gradients(op: Any, gx: Any, gy: Any) -> list[Any]:
    """Gradients of the two operands of a broadcasting op, summed over what each was repeated along.

    gx and gy have the shape of the result; None stays None. Static shapes add no node where nothing was repeated.
    """
    x, y = op.inputs
    if is_static(x.static_shape) and is_static(y.static_shape):
        return [sum_to_shape(gx, x), sum_to_shape(gy, y)]
    shapes = apply_op("Shape", [x]), apply_op("Shape", [y])
    axes = apply_op("BroadcastGradientArgs", list(shapes))
    return [
        None if grad is None else apply_op("Reshape", [apply_op("Sum", [grad, axis]), shape])
        for grad, axis, shape in zip((gx, gy), axes, shapes, strict=True)
    ]


def sum_to_shape(grad: Any, x: Any) -> Any:
    """A gradient that has a shape to which x broadcasts, summed to the shape of x; None stays None."""
    if grad is None:
        return None
    wide, narrow = grad.static_shape, x.static_shape
    if is_static(wide) and is_static(narrow):
        if wide == narrow:
            return grad
        lead = len(wide) - len(narrow)
        axes = [i for i, size in enumerate(wide) if i < lead or (narrow[i - lead] == 1 and size != 1)]
        kept = apply_op("Sum", [grad, constant(axes, int32)])
        return kept if kept.static_shape == narrow else apply_op("Reshape", [kept, constant(list(narrow), int32)])
    shape = apply_op("Shape", [x])
    axes, _ = apply_op("BroadcastGradientArgs", [shape, apply_op("Shape", [grad])])
    return apply_op("Reshape", [apply_op("Sum", [grad, axes]), shape])
