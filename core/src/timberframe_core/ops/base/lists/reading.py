"""Ops that read lists of tensors: elements, all of them in one tensor, their number and shape."""

from __future__ import annotations

from typing import Any

from timberframe_core.ops.base.lists.functions import (
    ELEMENT,
    SHAPE_TYPE,
    are_unique,
    element,
    element_shape_value,
    first_size,
    length_of,
    list_handle,
    reserve_like,
    rows,
    shape_of_elements,
    taken,
)
from timberframe_core.ops.definition.gradients import apply_op
from timberframe_core.ops.definition.opdef import InferenceContext, NotDifferentiable, define_op
from timberframe_core.shapes import Shape, compatible, merge


def _get_item_gradient(op: Any, grad: Any) -> list[Any]:
    handle, index, _ = op.inputs
    dtype = op.attrs["element_dtype"]
    return [
        apply_op("TensorListSetItem", [reserve_like(handle, dtype), index, grad], {"element_dtype": dtype}),
        None,
        None,
    ]


define_op(
    "TensorListGetItem",
    inputs=["input_handle: variant", "index: int32", "element_shape: Tshape"],
    outputs=["item: element_dtype"],
    attrs=[ELEMENT, "Tshape: {int32, int64} = DT_INT32"],
    doc="The element at `index`.",
    shape=lambda c: [taken(c, 2, 0)],
    launch_inputs=("element_shape",),
    gradient=_get_item_gradient,
)


def _stack_shape(c: InferenceContext) -> list[Shape]:
    count = c.attrs["num_elements"]
    return [rows(None if count < 0 else count, element(c, 1))]


def _stack_gradient(op: Any, grad: Any) -> list[Any]:
    attrs = {"element_dtype": grad.dtype, "shape_type": "int32"}
    return [apply_op("TensorListFromTensor", [grad, shape_of_elements(op.inputs[0])], attrs), None]


define_op(
    "TensorListStack",
    inputs=["input_handle: variant", "element_shape: int32"],
    outputs=["tensor: element_dtype"],
    attrs=[ELEMENT, "num_elements: int = -1"],
    doc="The elements, all of one shape, as the rows of one tensor.",
    shape=_stack_shape,
    launch_inputs=("element_shape",),
    gradient=_stack_gradient,
)


def _gather_gradient(op: Any, grad: Any) -> list[Any]:
    handle, indices, _ = op.inputs
    attrs = {"element_dtype": grad.dtype, "shape_type": "int32"}
    length = length_of(handle)
    if not are_unique(indices):
        # Every row of an element that was gathered twice gets the sum, so that it does not matter which one is written
        # last. TensorFlow takes the last one alone, which is less than the gradient.
        total = apply_op("UnsortedSegmentSum", [grad, indices, length])
        grad = apply_op("GatherV2", [total, indices, 0])
    return [apply_op("TensorListScatterV2", [grad, indices, shape_of_elements(handle), length], attrs), None, None]


define_op(
    "TensorListGather",
    inputs=["input_handle: variant", "indices: int32", "element_shape: int32"],
    outputs=["values: element_dtype"],
    attrs=[ELEMENT],
    doc="The elements at `indices`, all of one shape, as the rows of one tensor.",
    shape=lambda c: [rows(first_size(c.shapes[1]), element(c, 2))],
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
    made = apply_op("TensorListSplit", [grad, shape_of_elements(op.inputs[0]), op.outputs[1]], attrs)
    return [made, *[None] * (len(op.inputs) - 1)]


define_op(
    "TensorListConcat",
    inputs=["input_handle: variant"],
    outputs=["tensor: element_dtype", "lengths: int64"],
    attrs=[ELEMENT, "element_shape: shape = { unknown_rank: true }"],
    doc="The elements one after the other along their first dimension, and how long each is.",
    shape=lambda c: _concat_shape(c, c.attrs["element_shape"] or list_handle(c)[1]),
    gradient=_concat_gradient,
)

define_op(
    "TensorListConcatV2",
    inputs=["input_handle: variant", "element_shape: shape_type", "leading_dims: int64"],
    outputs=["tensor: element_dtype", "lengths: int64"],
    attrs=[ELEMENT, SHAPE_TYPE],
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
    shape_only=True,
    gradient=NotDifferentiable("a count does not change with the values"),
)


define_op(
    "TensorListElementShape",
    inputs=["input_handle: variant"],
    outputs=["element_shape: shape_type"],
    attrs=[SHAPE_TYPE],
    doc="The shape that all elements suit, with -1 for unknown sizes; the scalar -1 where the rank is unknown.",
    shape=lambda c: [None],  # a list may be declared with less than is known of it, or with nothing: a scalar
    shape_only=True,
    gradient=NotDifferentiable("shapes do not change with the values"),
)
