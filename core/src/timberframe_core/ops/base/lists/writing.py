"""Lists of tensors (TensorList*): host-side values of dtype variant that loops read, write and accumulate in.

No device has kernels for them: the executor keeps a list as a tuple of arrays, each where it was made. What is known of
the elements while a graph is built stands in the `handle` of a list's tensor: their dtype, and a shape that they suit.
"""

from __future__ import annotations

from typing import Any

from timberframe_core.ops.base.lists.functions import (
    ELEMENT,
    SHAPE_TYPE,
    first_size,
    joined,
    length_of,
    list_handle,
    new_list,
    row_shape,
    rows_shape,
    same_list,
    scattered_rows,
    tail,
    taken,
    with_item,
)
from timberframe_core.ops.definition.gradients import apply_op, shape_of
from timberframe_core.ops.definition.opdef import InferenceContext, NotDifferentiable, define_op
from timberframe_core.shapes import Shape

# Making lists


def _reserve_gradient(op: Any, grad: Any) -> list[Any]:
    return [None, None]


define_op(
    "EmptyTensorList",
    inputs=["element_shape: shape_type", "max_num_elements: int32"],
    outputs=["handle: variant"],
    attrs=[ELEMENT, SHAPE_TYPE],
    doc="A list without elements, for elements that suit element_shape.",
    shape=new_list(0),
    launch_inputs=("element_shape",),
    gradient=_reserve_gradient,
)

define_op(
    "TensorListReserve",
    inputs=["element_shape: shape_type", "num_elements: int32"],
    outputs=["handle: variant"],
    attrs=[ELEMENT, SHAPE_TYPE],
    doc="A list of num_elements elements that read as zeros until they are set.",
    shape=new_list(0),
    launch_inputs=("element_shape",),
    gradient=_reserve_gradient,
)


def _stack_like(op: Any, grad: Any, tensor: Any) -> Any:
    attrs = {"element_dtype": tensor.dtype}
    count = first_size(tensor.static_shape)
    given = row_shape(tensor)
    return apply_op("TensorListStack", [grad, given], {**attrs, "num_elements": -1 if count is None else count})


define_op(
    "TensorListFromTensor",
    inputs=["tensor: element_dtype", "element_shape: shape_type"],
    outputs=["output_handle: variant"],
    attrs=[ELEMENT, SHAPE_TYPE],
    doc="The list of the tensor's rows.",
    shape=lambda c: rows_shape(c, 1, tail(c.shapes[0])),
    launch_inputs=("element_shape",),
    gradient=lambda op, grad: [_stack_like(op, grad, op.inputs[0]), None],
)


def _scatter_gradient(op: Any, grad: Any) -> list[Any]:
    tensor, indices = op.inputs[:2]
    return [scattered_rows(op.outputs[0], indices, tensor, grad), *[None] * (len(op.inputs) - 1)]


for _name, _more in (("TensorListScatter", []), ("TensorListScatterV2", ["num_elements: int32"])):
    define_op(
        _name,
        inputs=["tensor: element_dtype", "indices: int32", "element_shape: shape_type", *_more],
        outputs=["output_handle: variant"],
        attrs=[ELEMENT, SHAPE_TYPE],
        doc="The list that has row i of the tensor as its element indices[i]"
        + ("." if not _more else ", of num_elements elements (-1: as many as the indices need)."),
        shape=lambda c: rows_shape(c, 2, tail(c.shapes[0])),
        launch_inputs=("element_shape",),
        gradient=_scatter_gradient,
    )


def _split_shape(c: InferenceContext) -> list[Shape]:
    tensor = c.shapes[0]
    return rows_shape(c, 1, None if not tensor else (None, *tensor[1:]))


def _split_gradient(op: Any, grad: Any) -> list[Any]:
    tensor, _, lengths = op.inputs
    attrs = {"element_dtype": tensor.dtype, "shape_type": "int32"}
    piece = apply_op("ConcatV2", [[[-1], row_shape(tensor)], 0])
    made = apply_op("TensorListConcatV2", [grad, piece, lengths], attrs)
    return [made[0], None, None]


define_op(
    "TensorListSplit",
    inputs=["tensor: element_dtype", "element_shape: shape_type", "lengths: int64"],
    outputs=["output_handle: variant"],
    attrs=[ELEMENT, SHAPE_TYPE],
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
    taken = apply_op("TensorListGetItem", [grad, index, shape_of(item)], attrs)
    rest = apply_op("TensorListSetItem", [grad, index, zeros], attrs)
    if op.attrs["resize_if_index_out_of_bounds"]:
        rest = apply_op("TensorListResize", [rest, length_of(op.inputs[0])])
    return [rest, None, taken]


define_op(
    "TensorListSetItem",
    inputs=["input_handle: variant", "index: int32", "item: element_dtype"],
    outputs=["output_handle: variant"],
    attrs=[ELEMENT, "resize_if_index_out_of_bounds: bool = false"],
    doc="The list with another element at `index`.",
    shape=with_item(2),
    gradient=_set_item_gradient,
)


def _push_gradient(op: Any, grad: Any) -> list[Any]:
    item = op.inputs[1]
    popped: list[Any] = apply_op("TensorListPopBack", [grad, shape_of(item)], {"element_dtype": item.dtype})
    return popped


define_op(
    "TensorListPushBack",
    inputs=["input_handle: variant", "tensor: element_dtype"],
    outputs=["output_handle: variant"],
    attrs=[ELEMENT],
    doc="The list with one more element at its end.",
    shape=with_item(1),
    gradient=_push_gradient,
)


def _pop_shape(c: InferenceContext) -> list[Shape]:
    return [*same_list(c), taken(c, 1, 1)]


def _pop_gradient(op: Any, list_grad: Any, item_grad: Any) -> list[Any]:
    attrs = {"element_dtype": op.attrs["element_dtype"]}
    if item_grad is None:  # nothing needs it, as of integers; the list's gradient must have an element all the same
        item_grad = apply_op("ZerosLike", [op.outputs[1]])
    if list_grad is None:
        list_grad = apply_op("ZerosLike", [op.outputs[0]])
    return [apply_op("TensorListPushBack", [list_grad, item_grad], attrs), None]


define_op(
    "TensorListPopBack",
    inputs=["input_handle: variant", "element_shape: int32"],
    outputs=["output_handle: variant", "tensor: element_dtype"],
    attrs=[ELEMENT],
    doc="The list without its last element, and that element.",
    shape=_pop_shape,
    launch_inputs=("element_shape",),
    gradient=_pop_gradient,
)


def _resize_gradient(op: Any, grad: Any) -> list[Any]:
    return [apply_op("TensorListResize", [grad, length_of(op.inputs[0])]), None]


define_op(
    "TensorListResize",
    inputs=["input_handle: variant", "size: int32"],
    outputs=["output_handle: variant"],
    doc="The list with `size` elements: cut off, or with zeros at its end.",
    shape=same_list,
    gradient=_resize_gradient,
)


def _scatter_into_gradient(op: Any, grad: Any) -> list[Any]:
    tensor, indices = op.inputs[1:]
    rows = scattered_rows(op.outputs[0], indices, tensor, grad)
    zeros = apply_op("ZerosLike", [tensor])
    attrs = {"element_dtype": tensor.dtype}
    rest = apply_op("TensorListScatterIntoExistingList", [grad, zeros, indices], attrs)
    return [apply_op("TensorListResize", [rest, length_of(op.inputs[0])]), rows, None]


define_op(
    "TensorListScatterIntoExistingList",
    inputs=["input_handle: variant", "tensor: element_dtype", "indices: int32"],
    outputs=["output_handle: variant"],
    attrs=[ELEMENT],
    doc="The list with row i of the tensor as its element indices[i]; it grows where an index needs it.",
    shape=lambda c: joined(c, tail(c.shapes[1])),
    gradient=_scatter_into_gradient,
)


define_op(
    "TensorListConcatLists",
    inputs=["input_a: variant", "input_b: variant"],
    outputs=["output: variant"],
    attrs=[ELEMENT],
    doc="The elements of both lists in one.",
    shape=lambda c: joined(c, list_handle(c, 1)[1]),
    gradient=NotDifferentiable("TensorFlow has none for it either"),
)
