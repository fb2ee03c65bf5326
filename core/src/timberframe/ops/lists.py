"""Lists of tensors (TensorList*): host-side values of dtype variant that loops read, write and accumulate in.

No device has kernels for them: the executor keeps a list as a tuple of arrays, each where it was made. What is known of
the elements while a graph is built stands in the `handle` of a list's tensor: their dtype, and a shape that they suit.
"""

from __future__ import annotations

from typing import Any

from timberframe.ops.gradients import apply_op, constant
from timberframe.ops.opdef import UNKNOWN, InferenceContext, NotDifferentiable, define_op
from timberframe.shapes import Shape, compatible, format_shape, merge

_INDEX = "shape_type: {int32, int64}"
_ELEMENT = "element_dtype: type"
_UNKNOWN_SHAPE = -1  # in place of an element shape: nothing is known


def element_shape_value(c: InferenceContext, i: int) -> Shape:
    """Input i read as the shape of elements: a vector of sizes, or the scalar -1 for an unknown rank."""
    value = c.values[i]
    if value is None:
        length = c.shapes[i]
        return (None,) * length[0] if length and length[0] is not None else None
    if value.ndim == 0:
        return None
    return tuple(None if d is UNKNOWN or d < 0 else int(d) for d in value)


def list_handle(c: InferenceContext, i: int = 0) -> tuple[Any, Shape]:
    """Dtype and shape of the elements of the list at input i, as far as they are known."""
    handle = c.handles[i] if i < len(c.handles) else None
    return (None, None) if handle is None else handle


def _element(c: InferenceContext, i: int | None = None) -> Shape:
    """The shape of an element that is taken out: what the list and, at input i, the caller say of it."""
    shape = list_handle(c)[1]
    given = None if i is None else element_shape_value(c, i)
    if not compatible(shape, given):
        raise c.late_error(
            f"the list holds elements of shape {format_shape(shape)} and {format_shape(given)} is asked for; "
            "one tensor must be able to have both"
        )
    return merge(shape, given)


def _same_list(c: InferenceContext) -> list[Shape]:
    handle = c.handles[0] if c.handles else None
    if handle is not None:
        c.output_handles[0] = handle
    return [()]


def _with_item(item: int) -> Any:
    """The list with one more tensor, or rows of one, at input `item`; their shapes must suit."""

    def shape(c: InferenceContext) -> list[Shape]:
        handle = c.handles[0] if c.handles else None
        if handle is not None:
            fits = compatible(handle[1], c.shapes[item])
            c.output_handles[0] = handle if fits else (handle[0], None)
        return [()]

    return shape


def _new_list(i: int) -> Any:
    """A new list whose element shape is at input i."""

    def shape(c: InferenceContext) -> list[Shape]:
        c.output_handles[0] = (c.attrs["element_dtype"], element_shape_value(c, i))
        return [()]

    return shape


def _rows_shape(c: InferenceContext, i: int, rows: Shape) -> list[Shape]:
    given = element_shape_value(c, i)
    c.output_handles[0] = (c.attrs["element_dtype"], merge(given, rows) if compatible(given, rows) else given)
    return [()]


def _tail(shape: Shape) -> Shape:
    return None if not shape else shape[1:]


def _rows(count: int | None, shape: Shape) -> Shape:
    return None if shape is None else (count, *shape)


def _first_size(shape: Shape) -> int | None:
    return shape[0] if shape else None


def _shape_of_elements(handle: Any) -> Any:
    return apply_op("TensorListElementShape", [handle], {"shape_type": "int32"})


def _length(handle: Any) -> Any:
    return apply_op("TensorListLength", [handle])


def _sizes(shape: Shape) -> Any:
    """An element shape as a constant."""
    if shape is None:
        return constant(_UNKNOWN_SHAPE, "int32")
    return constant([_UNKNOWN_SHAPE if d is None else d for d in shape], "int32")


def _reserve_like(handle: Any, dtype: Any, size: Any = None) -> Any:
    """A list of as many elements, all zero."""
    attrs = {"element_dtype": dtype, "shape_type": "int32"}
    return apply_op("TensorListReserve", [_shape_of_elements(handle), _length(handle) if size is None else size], attrs)


# Making lists


def _reserve_gradient(op: Any, grad: Any) -> list[Any]:
    return [None, None]


define_op(
    "EmptyTensorList",
    inputs=["element_shape: shape_type", "max_num_elements: int32"],
    outputs=["handle: variant"],
    attrs=[_ELEMENT, _INDEX],
    doc="A list without elements, for elements that suit element_shape.",
    shape=_new_list(0),
    launch_inputs=("element_shape",),
    gradient=_reserve_gradient,
)

define_op(
    "TensorListReserve",
    inputs=["element_shape: shape_type", "num_elements: int32"],
    outputs=["handle: variant"],
    attrs=[_ELEMENT, _INDEX],
    doc="A list of num_elements elements that read as zeros until they are set.",
    shape=_new_list(0),
    launch_inputs=("element_shape",),
    gradient=_reserve_gradient,
)


def _stack_like(op: Any, grad: Any, tensor: Any) -> Any:
    attrs = {"element_dtype": tensor.dtype}
    count = _first_size(tensor.static_shape)
    given = _sizes(_tail(tensor.static_shape))
    return apply_op("TensorListStack", [grad, given], {**attrs, "num_elements": -1 if count is None else count})


define_op(
    "TensorListFromTensor",
    inputs=["tensor: element_dtype", "element_shape: shape_type"],
    outputs=["output_handle: variant"],
    attrs=[_ELEMENT, _INDEX],
    doc="The list of the tensor's rows.",
    shape=lambda c: _rows_shape(c, 1, _tail(c.shapes[0])),
    launch_inputs=("element_shape",),
    gradient=lambda op, grad: [_stack_like(op, grad, op.inputs[0]), None],
)


def _scatter_gradient(op: Any, grad: Any) -> list[Any]:
    tensor, indices = op.inputs[:2]
    given = _sizes(_tail(tensor.static_shape))
    rows = apply_op("TensorListGather", [grad, indices, given], {"element_dtype": tensor.dtype})
    return [rows, *[None] * (len(op.inputs) - 1)]


for _name, _more in (("TensorListScatter", []), ("TensorListScatterV2", ["num_elements: int32"])):
    define_op(
        _name,
        inputs=["tensor: element_dtype", "indices: int32", "element_shape: shape_type", *_more],
        outputs=["output_handle: variant"],
        attrs=[_ELEMENT, _INDEX],
        doc="The list that has row i of the tensor as its element indices[i]"
        + ("." if not _more else ", of num_elements elements (-1: as many as the indices need)."),
        shape=lambda c: _rows_shape(c, 2, _tail(c.shapes[0])),
        launch_inputs=("element_shape",),
        gradient=_scatter_gradient,
    )


def _split_shape(c: InferenceContext) -> list[Shape]:
    tensor = c.shapes[0]
    return _rows_shape(c, 1, None if not tensor else (None, *tensor[1:]))


def _split_gradient(op: Any, grad: Any) -> list[Any]:
    tensor, element_shape, lengths = op.inputs
    attrs = {"element_dtype": tensor.dtype, "shape_type": element_shape.dtype}
    made = apply_op("TensorListConcatV2", [grad, element_shape, lengths], attrs)
    return [made[0], None, None]


define_op(
    "TensorListSplit",
    inputs=["tensor: element_dtype", "element_shape: shape_type", "lengths: int64"],
    outputs=["output_handle: variant"],
    attrs=[_ELEMENT, _INDEX],
    doc="The list of consecutive pieces of the tensor, piece i of lengths[i] rows.",
    shape=_split_shape,
    launch_inputs=("element_shape",),
    gradient=_split_gradient,
)


# Changing elements


def _set_item_gradient(op: Any, grad: Any) -> list[Any]:
    _, index, item = op.inputs
    zeros = apply_op("ZerosLike", [item])
    attrs = {"element_dtype": item.dtype}
    rest = apply_op("TensorListSetItem", [grad, index, zeros], attrs)
    taken = apply_op("TensorListGetItem", [grad, index, _sizes(item.static_shape)], attrs)
    if op.attrs["resize_if_index_out_of_bounds"]:
        rest = apply_op("TensorListResize", [rest, _length(op.inputs[0])])
    return [rest, None, taken]


define_op(
    "TensorListSetItem",
    inputs=["input_handle: variant", "index: int32", "item: element_dtype"],
    outputs=["output_handle: variant"],
    attrs=[_ELEMENT, "resize_if_index_out_of_bounds: bool = false"],
    doc="The list with another element at `index`.",
    shape=_with_item(2),
    gradient=_set_item_gradient,
)


def _push_gradient(op: Any, grad: Any) -> list[Any]:
    item = op.inputs[1]
    return apply_op("TensorListPopBack", [grad, _sizes(item.static_shape)], {"element_dtype": item.dtype})  # type: ignore[no-any-return]  # two outputs come as a list


define_op(
    "TensorListPushBack",
    inputs=["input_handle: variant", "tensor: element_dtype"],
    outputs=["output_handle: variant"],
    attrs=[_ELEMENT],
    doc="The list with one more element at its end.",
    shape=_with_item(1),
    gradient=_push_gradient,
)


def _pop_shape(c: InferenceContext) -> list[Shape]:
    return [*_same_list(c), _element(c, 1)]


def _pop_gradient(op: Any, list_grad: Any, item_grad: Any) -> list[Any]:
    dtype = op.attrs["element_dtype"]
    if item_grad is None:  # a list of integers
        return [None, None]
    attrs = {"element_dtype": dtype}
    if list_grad is None:
        list_grad = apply_op("ZerosLike", [op.outputs[0]])
    return [apply_op("TensorListPushBack", [list_grad, item_grad], attrs), None]


define_op(
    "TensorListPopBack",
    inputs=["input_handle: variant", "element_shape: int32"],
    outputs=["output_handle: variant", "tensor: element_dtype"],
    attrs=[_ELEMENT],
    doc="The list without its last element, and that element.",
    shape=_pop_shape,
    launch_inputs=("element_shape",),
    gradient=_pop_gradient,
)


def _resize_gradient(op: Any, grad: Any) -> list[Any]:
    return [apply_op("TensorListResize", [grad, _length(op.inputs[0])]), None]


define_op(
    "TensorListResize",
    inputs=["input_handle: variant", "size: int32"],
    outputs=["output_handle: variant"],
    doc="The list with `size` elements: cut off, or with zeros at its end.",
    shape=_same_list,
    gradient=_resize_gradient,
)


def _scatter_into_gradient(op: Any, grad: Any) -> list[Any]:
    tensor, indices = op.inputs[1:]
    attrs = {"element_dtype": tensor.dtype}
    rows = apply_op("TensorListGather", [grad, indices, _sizes(_tail(tensor.static_shape))], attrs)
    zeros = apply_op("ZerosLike", [tensor])
    return [apply_op("TensorListScatterIntoExistingList", [grad, zeros, indices], attrs), rows, None]


define_op(
    "TensorListScatterIntoExistingList",
    inputs=["input_handle: variant", "tensor: element_dtype", "indices: int32"],
    outputs=["output_handle: variant"],
    attrs=[_ELEMENT],
    doc="The list with row i of the tensor as its element indices[i]; it grows where an index needs it.",
    shape=lambda c: _joined(c, _tail(c.shapes[1])),
    gradient=_scatter_into_gradient,
)


def _joined(c: InferenceContext, added: Shape) -> list[Shape]:
    handle = c.handles[0] if c.handles else None
    if handle is not None:
        c.output_handles[0] = handle if compatible(handle[1], added) else (handle[0], None)
    return [()]


define_op(
    "TensorListConcatLists",
    inputs=["input_a: variant", "input_b: variant"],
    outputs=["output: variant"],
    attrs=[_ELEMENT],
    doc="The elements of both lists in one.",
    shape=lambda c: _joined(c, list_handle(c, 1)[1]),
    gradient=NotDifferentiable("TensorFlow has none for it either"),
)


# Reading elements


def _get_item_gradient(op: Any, grad: Any) -> list[Any]:
    handle, index, _ = op.inputs
    dtype = op.attrs["element_dtype"]
    return [
        apply_op("TensorListSetItem", [_reserve_like(handle, dtype), index, grad], {"element_dtype": dtype}),
        None,
        None,
    ]


define_op(
    "TensorListGetItem",
    inputs=["input_handle: variant", "index: int32", "element_shape: int32"],
    outputs=["item: element_dtype"],
    attrs=[_ELEMENT],
    doc="The element at `index`.",
    shape=lambda c: [_element(c, 2)],
    launch_inputs=("element_shape",),
    gradient=_get_item_gradient,
)


def _stack_shape(c: InferenceContext) -> list[Shape]:
    count = c.attrs["num_elements"]
    return [_rows(None if count < 0 else count, _element(c, 1))]


def _stack_gradient(op: Any, grad: Any) -> list[Any]:
    attrs = {"element_dtype": grad.dtype, "shape_type": "int32"}
    given = _sizes(_tail(grad.static_shape)) if grad.static_shape else _shape_of_elements(op.inputs[0])
    return [apply_op("TensorListFromTensor", [grad, given], attrs), None]


define_op(
    "TensorListStack",
    inputs=["input_handle: variant", "element_shape: int32"],
    outputs=["tensor: element_dtype"],
    attrs=[_ELEMENT, "num_elements: int = -1"],
    doc="The elements, all of one shape, as the rows of one tensor.",
    shape=_stack_shape,
    launch_inputs=("element_shape",),
    gradient=_stack_gradient,
)


def _gather_gradient(op: Any, grad: Any) -> list[Any]:
    handle, indices, _ = op.inputs
    attrs = {"element_dtype": grad.dtype, "shape_type": "int32"}
    sizes = [_shape_of_elements(handle), _length(handle)]
    return [apply_op("TensorListScatterV2", [grad, indices, *sizes], attrs), None, None]


define_op(
    "TensorListGather",
    inputs=["input_handle: variant", "indices: int32", "element_shape: int32"],
    outputs=["values: element_dtype"],
    attrs=[_ELEMENT],
    doc="The elements at `indices`, all of one shape, as the rows of one tensor.",
    shape=lambda c: [_rows(_first_size(c.shapes[1]), _element(c, 2))],
    launch_inputs=("element_shape",),
    gradient=_gather_gradient,
)


def _concat_shape(c: InferenceContext, shape: Shape) -> list[Shape]:
    return [None if shape is None else (None, *shape[1:]), (None,)]


def _concat_v2_shape(c: InferenceContext) -> list[Shape]:
    known = element_shape_value(c, 1)
    inner = list_handle(c)[1]
    if known and inner:
        known, inner = (None, *known[1:]), (None, *inner[1:])
    return _concat_shape(c, merge(known, inner) if compatible(known, inner) else known)


def _concat_gradient(op: Any, grad: Any, _: Any) -> list[Any]:
    attrs = {"element_dtype": grad.dtype, "shape_type": "int32"}
    made = apply_op("TensorListSplit", [grad, _shape_of_elements(op.inputs[0]), op.outputs[1]], attrs)
    return [made, *[None] * (len(op.inputs) - 1)]


define_op(
    "TensorListConcat",
    inputs=["input_handle: variant"],
    outputs=["tensor: element_dtype", "lengths: int64"],
    attrs=[_ELEMENT, "element_shape: shape = { unknown_rank: true }"],
    doc="The elements one after the other along their first dimension, and how long each is.",
    shape=lambda c: _concat_shape(c, c.attrs["element_shape"] or list_handle(c)[1]),
    gradient=_concat_gradient,
)

define_op(
    "TensorListConcatV2",
    inputs=["input_handle: variant", "element_shape: shape_type", "leading_dims: int64"],
    outputs=["tensor: element_dtype", "lengths: int64"],
    attrs=[_ELEMENT, _INDEX],
    doc="The elements one after the other along their first dimension, and how long each is. leading_dims: the lengths "
    "of those that were never set.",
    shape=_concat_v2_shape,
    launch_inputs=("element_shape",),
    gradient=_concat_gradient,
)

define_op(
    "TensorListLength",
    inputs=["input_handle: variant"],
    outputs=["length: int32"],
    doc="How many elements the list has.",
    shape=lambda c: [()],
    gradient=NotDifferentiable("a count does not change with the values"),
)


def _element_shape_shape(c: InferenceContext) -> list[Shape]:
    shape = list_handle(c)[1]
    return [None if shape is None else (len(shape),)]


define_op(
    "TensorListElementShape",
    inputs=["input_handle: variant"],
    outputs=["element_shape: shape_type"],
    attrs=[_INDEX],
    doc="The shape that all elements suit, with -1 for unknown sizes; the scalar -1 where the rank is unknown.",
    shape=_element_shape_shape,
    gradient=NotDifferentiable("shapes do not change with the values"),
)
