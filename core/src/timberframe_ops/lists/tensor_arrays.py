"""Arrays and stacks of tensors of TensorFlow 1's graphs (TensorArray*V3, Stack*V2): state that belongs to one run.

A handle means the array that its node makes; `flow`, a scalar without meaning, orders what is done to it. No device has
kernels for them: the executor keeps the arrays. New graphs use lists (TensorList*) instead.
"""

from __future__ import annotations

from typing import Any

from timberframe_core.ops.definition.gradients import apply_op, supplied
from timberframe_core.ops.definition.opdef import InferenceContext, MissingGradient, NotDifferentiable, define_op
from timberframe_core.shapes import Shape

_SOURCE = "gradients"  # arrays of gradients are found by the array and this name
_STATE = NotDifferentiable("it makes, measures or ends state")
_UNKNOWN_SHAPE = "shape = { unknown_rank: true }"


def _handle_and_flow(c: InferenceContext) -> list[Shape]:
    c.require_rank(0, 0)
    return [(), ()]


def _flow(c: InferenceContext) -> list[Shape]:
    c.require_rank(0, 0)
    return [()]


def _unknown(c: InferenceContext) -> list[Shape]:
    c.require_rank(0, 0)
    return [None]


def _gradient_array(op: Any, flow: Any) -> tuple[Any, Any]:
    """Handle and flow of the array that holds the gradients of an array's elements."""
    handle, _ = apply_op("TensorArrayGradV3", [op.inputs[0], flow], {"source": _SOURCE})
    with supplied.get_default_graph().control_dependencies([handle]):
        return handle, apply_op("Identity", [flow])


define_op(
    "TensorArrayV3",
    inputs=["size: int32"],
    outputs=["handle: resource", "flow: float"],
    attrs=[
        "dtype: type",
        f"element_shape: {_UNKNOWN_SHAPE}",
        "dynamic_size: bool = false",
        "clear_after_read: bool = true",
        "identical_element_shapes: bool = false",
        "tensor_array_name: string = ''",
    ],
    doc="An array of `size` tensors; with dynamic_size it grows, with clear_after_read an element is read once only.",
    shape=_handle_and_flow,
    role="make_array",
    gradient=_STATE,
    stateful=True,
)

for _name, _more in (("TensorArrayGradV3", []), ("TensorArrayGradWithShape", ["shape_to_prepend: int32"])):
    define_op(
        _name,
        inputs=["handle: resource", "flow_in: float", *_more],
        outputs=["grad_handle: resource", "flow_out: float"],
        attrs=["source: string"],
        doc="The array of the gradients, called `source`, of an array's elements; writing twice to one element adds up"
        + ("." if not _more else ". The elements have further dimensions, shape_to_prepend, in front."),
        shape=_handle_and_flow,
        role="make_gradient_array",
        gradient=_STATE,
        stateful=True,
    )


def _write_gradient(op: Any, flow_grad: Any) -> list[Any]:
    handle, flow = _gradient_array(op, flow_grad)
    value = apply_op("TensorArrayReadV3", [handle, op.inputs[1], flow], {"dtype": op.attrs["T"]})
    return [None, None, value, flow_grad]


define_op(
    "TensorArrayWriteV3",
    inputs=["handle: resource", "index: int32", "value: T", "flow_in: float"],
    outputs=["flow_out: float"],
    attrs=["T: type"],
    doc="Sets the element at `index`, which must not have been set before.",
    shape=_flow,
    role="use_array",
    gradient=_write_gradient,
    stateful=True,
)


def _read_gradient(op: Any, grad: Any) -> list[Any]:
    handle, flow = _gradient_array(op, op.inputs[2])
    written = apply_op("TensorArrayWriteV3", [handle, op.inputs[1], grad, flow])
    return [None, None, written]


define_op(
    "TensorArrayReadV3",
    inputs=["handle: resource", "index: int32", "flow_in: float"],
    outputs=["value: dtype"],
    attrs=["dtype: type"],
    doc="The element at `index`.",
    shape=_unknown,
    role="use_array",
    gradient=_read_gradient,
    stateful=True,
)


def _gather_shape(c: InferenceContext) -> list[Shape]:
    count, element = c.require_rank(1, 1)[0], c.attrs["element_shape"]
    return [None if element is None else (count, *element)]


def _gather_gradient(op: Any, grad: Any) -> list[Any]:
    handle, flow = _gradient_array(op, op.inputs[2])
    written = apply_op("TensorArrayScatterV3", [handle, op.inputs[1], grad, flow])
    return [None, None, written]


define_op(
    "TensorArrayGatherV3",
    inputs=["handle: resource", "indices: int32", "flow_in: float"],
    outputs=["value: dtype"],
    attrs=["dtype: type", f"element_shape: {_UNKNOWN_SHAPE}"],
    doc="The elements at `indices`, all of one shape, as the rows of one tensor.",
    shape=_gather_shape,
    role="use_array",
    gradient=_gather_gradient,
    stateful=True,
)


def _scatter_gradient(op: Any, flow_grad: Any) -> list[Any]:
    handle, flow = _gradient_array(op, flow_grad)
    rows = apply_op("TensorArrayGatherV3", [handle, op.inputs[1], flow], {"dtype": op.attrs["T"]})
    return [None, None, rows, flow_grad]


define_op(
    "TensorArrayScatterV3",
    inputs=["handle: resource", "indices: int32", "value: T", "flow_in: float"],
    outputs=["flow_out: float"],
    attrs=["T: type"],
    doc="Sets the elements at `indices` to the rows of `value`.",
    shape=_flow,
    role="use_array",
    gradient=_scatter_gradient,
    stateful=True,
)


def _concat_shape(c: InferenceContext) -> list[Shape]:
    rest = c.attrs["element_shape_except0"]
    return [None if rest is None else (None, *rest), (None,)]


def _concat_gradient(op: Any, grad: Any, _: Any) -> list[Any]:
    handle, flow = _gradient_array(op, op.inputs[1])
    return [None, apply_op("TensorArraySplitV3", [handle, grad, op.outputs[1], flow])]


define_op(
    "TensorArrayConcatV3",
    inputs=["handle: resource", "flow_in: float"],
    outputs=["value: dtype", "lengths: int64"],
    attrs=["dtype: type", f"element_shape_except0: {_UNKNOWN_SHAPE}"],
    doc="The elements one after the other along their first dimension, and how long each is.",
    shape=_concat_shape,
    role="use_array",
    gradient=_concat_gradient,
    stateful=True,
)


def _split_gradient(op: Any, flow_grad: Any) -> list[Any]:
    handle, flow = _gradient_array(op, flow_grad)
    joined, _ = apply_op("TensorArrayConcatV3", [handle, flow], {"dtype": op.attrs["T"]})
    return [None, joined, None, flow_grad]


define_op(
    "TensorArraySplitV3",
    inputs=["handle: resource", "value: T", "lengths: int64", "flow_in: float"],
    outputs=["flow_out: float"],
    attrs=["T: type"],
    doc="Sets the elements to consecutive pieces of `value`, piece i of lengths[i] rows.",
    shape=_flow,
    role="use_array",
    gradient=_split_gradient,
    stateful=True,
)

define_op(
    "TensorArraySizeV3",
    inputs=["handle: resource", "flow_in: float"],
    outputs=["size: int32"],
    doc="How many elements the array has.",
    shape=_flow,
    role="use_array",
    gradient=_STATE,
    stateful=True,
)

define_op(
    "TensorArrayCloseV3",
    inputs=["handle: resource"],
    doc="Drops the elements; the array cannot be used after.",
    shape=lambda c: [],
    role="use_array",
    gradient=_STATE,
    stateful=True,
)

define_op(
    "StackV2",
    inputs=["max_size: int32"],
    outputs=["handle: resource"],
    attrs=["elem_type: type", "stack_name: string = ''"],
    doc="An empty stack of tensors, of at most max_size where that is not negative.",
    shape=_flow,
    role="make_array",
    gradient=_STATE,
    stateful=True,
)

define_op(
    "StackPushV2",
    inputs=["handle: resource", "elem: T"],
    outputs=["output: T"],
    attrs=["T: type", "swap_memory: bool = false"],
    doc="Puts `elem` on the stack, and returns it.",
    shape=lambda c: [c.shapes[1]],
    role="use_array",
    gradient=MissingGradient("through what is on a stack"),
    stateful=True,
)

define_op(
    "StackPopV2",
    inputs=["handle: resource"],
    outputs=["elem: elem_type"],
    attrs=["elem_type: type"],
    doc="Takes the tensor on top off the stack.",
    shape=_unknown,
    role="use_array",
    gradient=_STATE,
    stateful=True,
)

define_op(
    "StackCloseV2",
    inputs=["handle: resource"],
    doc="Drops the tensors; the stack cannot be used after.",
    shape=lambda c: [],
    role="use_array",
    gradient=_STATE,
    stateful=True,
)
