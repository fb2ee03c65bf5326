"""What the gradient functions of the ops are made of.

A gradient function is ``f(op, *grads) -> list``: the forward operation and one gradient for each flat output (zeros
where nothing flows into a floating or complex output, None for outputs of other dtypes) give one entry for each flat
input: a tensor, IndexedSlices, or None where nothing flows. The gradients that it is given are tensors, unless the op
says that it takes slices. It adds nodes by `apply_op` and by operators on tensors.

The graph is built on top of the ops, which import nothing of it: what they call of it is in `supplied`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from timberframe_core.dtypes import int32
from timberframe_core.ops.definition.opdef import is_known
from timberframe_core.shapes import is_static


class _Supplied:
    """What gradient functions call of `timberframe_core.graph` and `timberframe_core.gradients`.

    Each of the two puts its functions here when it is loaded; without them there is nothing to differentiate.
    """

    apply_op: Callable[..., Any]
    convert_to_tensor: Callable[..., Any]
    get_default_graph: Callable[[], Any]
    indexed_slices: type[Any]
    branch_gradient: Callable[..., list[Any]]
    call_gradient: Callable[..., list[Any]]
    loop_gradient: Callable[..., list[Any]]
    zeros_like: Callable[[Any], Any]


supplied = _Supplied()


def apply_op(op: str, inputs: Sequence[Any] = (), attrs: Mapping[str, Any] | None = None) -> Any:
    """Adds a node to the current graph; see `timberframe_core.graph.apply.apply_op`."""
    return supplied.apply_op(op, inputs, attrs)


def indexed_slices(values: Any, indices: Any, dense_shape: Any) -> Any:
    """Returns the gradient of a lookup: rows of a tensor of shape `dense_shape`."""
    return supplied.indexed_slices(values, indices, dense_shape)


def is_slices(grad: Any) -> bool:
    """Returns whether a gradient has come as IndexedSlices."""
    return isinstance(grad, supplied.indexed_slices)


def shape_of(x: Any, dtype: Any = int32) -> Any:
    """Returns the shape of x as a vector; no node but a constant where it is known."""
    if is_static(x.static_shape):
        return constant(list(x.static_shape), dtype)
    return apply_op("Shape", [x], {"out_type": dtype})


def constant(value: Any, dtype: Any) -> Any:
    """Returns a constant of this dtype."""
    return supplied.convert_to_tensor(value, dtype)


def conjugate(x: Any) -> Any:
    """Returns the complex conjugate; x itself where it is real."""
    return apply_op("Conj", [x]) if x.dtype.is_complex else x


def broadcast_gradients(op: Any, gx: Any, gy: Any) -> list[Any]:
    """Gradients of the two operands of a broadcasting op, summed over what each was repeated along.

    gx and gy have the shape of the result; None stays None. What was surely not repeated adds no node, and its gradient
    may be IndexedSlices.
    """
    x, y = op.inputs
    full = [g is None or _is_full(a, b) for g, a, b in ((gx, x, y), (gy, y, x))]
    if any(full) or (is_static(x.static_shape) and is_static(y.static_shape)):
        return [g if kept else sum_to_shape(dense(g), a) for g, kept, a in zip((gx, gy), full, (x, y), strict=True)]
    shapes = apply_op("Shape", [x]), apply_op("Shape", [y])
    axes = apply_op("BroadcastGradientArgs", list(shapes))
    return [
        apply_op("Reshape", [apply_op("Sum", [dense(grad), axis]), shape])
        for grad, axis, shape in zip((gx, gy), axes, shapes, strict=True)
    ]


def _is_full(x: Any, y: Any) -> bool:
    """Returns whether x, broadcast with y, surely has the shape of the result already."""
    own, other = x.static_shape, y.static_shape
    if own is None or other is None or len(other) > len(own):
        return bool(other == ())
    aligned = zip(own[len(own) - len(other) :], other, strict=True)
    return all(b == 1 or a not in (None, 1) for a, b in aligned)


def sum_to_shape(grad: Any, x: Any) -> Any:
    """Returns a gradient that has a shape to which x broadcasts, summed to the shape of x; None stays None.

    It is a Reshape of a Sum, as in TensorFlow, also where the Sum has the shape already: programs (KFAC) walk from the
    gradient of a bias to what was summed.
    """
    if grad is None:
        return None
    wide, narrow = grad.static_shape, x.static_shape
    if is_static(wide) and is_static(narrow):
        if wide == narrow:
            return grad
        lead = len(wide) - len(narrow)
        axes = [i for i, size in enumerate(wide) if i < lead or (narrow[i - lead] == 1 and size != 1)]
        kept = apply_op("Sum", [grad, constant(axes, int32)])
        return apply_op("Reshape", [kept, constant(list(narrow), int32)])
    shape = apply_op("Shape", [x])
    axes, _ = apply_op("BroadcastGradientArgs", [shape, apply_op("Shape", [grad])])
    return apply_op("Reshape", [apply_op("Sum", [grad, axes]), shape])


def of_values(function: Callable[[Any], Any], grad: Any) -> Any:
    """Returns the function of a gradient, of IndexedSlices that of their values: for
    functions by element that keep 0.
    """
    if is_slices(grad):
        return indexed_slices(function(grad.values), grad.indices, grad.dense_shape)
    return function(grad)


def dense(grad: Any) -> Any:
    """Returns the gradient as a tensor, IndexedSlices with zeros between their rows."""
    return supplied.convert_to_tensor(grad)


def known(x: Any) -> Any:
    """Returns the value of x as an array where it follows from the graph alone, else None."""
    return x.host_value if is_known(x.host_value) else None


def zeros_like(x: Any) -> Any:
    """Returns zeros of the shape and dtype of x."""
    return apply_op("ZerosLike", [x])


def reshape_like(grad: Any, x: Any) -> Any:
    """Returns the elements of the gradient in the shape of x; no node but a constant where one size of x is unknown."""
    sizes = x.static_shape
    if sizes is not None and sizes.count(None) == 1 and 0 not in sizes:
        return apply_op("Reshape", [grad, constant([-1 if d is None else d for d in sizes], int32)])
    return apply_op("Reshape", [grad, shape_of(x)])


def sum_all(x: Any) -> Any:
    """Returns the sum of all elements."""
    if x.static_shape is None:
        x = apply_op("Reshape", [x, constant([-1], int32)])
    return apply_op("Sum", [x, constant(list(range(len(x.static_shape))), int32)])


def gather(params: Any, indices: Any) -> Any:
    """Returns the rows of params that the indices name."""
    return apply_op("GatherV2", [params, indices, constant(0, int32)])


def indicator(condition: Any, dtype: Any) -> Any:
    """Returns one where the condition holds, zero elsewhere."""
    return apply_op("Cast", [condition], {"DstT": dtype})


def size_of(x: Any, first: Any, last: Any) -> Any:
    """Returns the product of the sizes of x from dimension `first` up to `last`: an integer
    where known, else a scalar.
    """
    shape = x.static_shape
    if shape is not None and isinstance(first, int) and not hasattr(last, "dtype"):
        part = shape[first:last]
        if None not in part:
            return math.prod(part)
    end = [0] if last is None else [last]
    part = apply_op("StridedSlice", [shape_of(x), [first], end, [1]], {"end_mask": int(last is None)})
    return apply_op("Prod", [part, constant(0, int32)])
