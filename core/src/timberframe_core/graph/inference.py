"""Dtypes, shapes and small host values of a node's outputs, inferred while a graph is built."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from timberframe_core.dtypes import DType, variant
from timberframe_core.errors import InvalidArgumentError, InvalidTypeError, UnimplementedError
from timberframe_core.graph.operation import Operation, Tensor
from timberframe_core.ops.definition.host_values import infer_values
from timberframe_core.ops.definition.opdef import InferenceContext, OpDef
from timberframe_core.ops.definition.signature import ArgDef
from timberframe_core.shapes import Shape, in_common, num_elements

HOST_VALUE_ELEMENTS = 1024  # larger tensors are data, not shape arithmetic


def arg_dtypes(args: Sequence[ArgDef], attrs: Mapping[str, Any]) -> list[DType]:
    """Returns the flat list of dtypes that a node's inputs or outputs have."""
    flat: list[DType] = []
    for arg in args:
        if arg.type_list_attr is not None:
            flat.extend(attrs[arg.type_list_attr])
        else:
            dtype = arg.dtype if arg.dtype is not None else attrs[arg.type_attr or ""]
            flat.extend([dtype] * (attrs[arg.number_attr] if arg.number_attr else 1))
    return flat


def output_dtypes(op: OpDef, name: str, attrs: Mapping[str, Any]) -> list[DType]:
    """Returns the dtype of each output."""
    return arg_dtypes(op.outputs, attrs)


def arg_ranges(args: Sequence[ArgDef], attrs: Mapping[str, Any]) -> dict[str, range]:
    """Returns which flat positions belong to each named input or output."""
    ranges, at = {}, 0
    for arg in args:
        if arg.type_list_attr is not None:
            size = len(attrs[arg.type_list_attr])
        else:
            size = attrs[arg.number_attr] if arg.number_attr else 1
        ranges[arg.name] = range(at, at + size)
        at += size
    return ranges


def value_positions(op: OpDef, attrs: Mapping[str, Any]) -> tuple[int, ...]:
    """Flat positions of the inputs whose values the shape function may read."""
    if not op.shape_inputs and not op.launch_inputs:
        return ()
    ranges = arg_ranges(op.inputs, attrs)
    return tuple(i for n in (*op.shape_inputs, *op.launch_inputs) for i in ranges[n])


def check_inputs(op: Operation) -> None:
    """Raises InvalidArgumentError unless number and dtypes of the inputs are what the op and its attrs say."""
    wanted = arg_dtypes(op.op_def.inputs, op.attrs)
    if len(wanted) != len(op.inputs):
        raise InvalidArgumentError(
            f"{op.type} '{op.name}': has {len(op.inputs)} inputs; {len(wanted)} are required", op.name
        )
    for i, (t, dtype) in enumerate(zip(op.inputs, wanted, strict=True)):
        if t.dtype is not dtype and t.dtype.base_dtype is not dtype.base_dtype:
            raise InvalidTypeError(
                f"{op.type} '{op.name}': input {i} ('{t.name}') has dtype {t.dtype.name}; it must be {dtype.name}",
                op.name,
            )


def infer_outputs(op: Operation, defer_errors: bool = False) -> None:
    """Checks the inputs, then sets shape, handle and host value of each output.

    defer_errors: wrong values and unsupported attrs are left to be found when the node runs, if it ever does.
    """
    check_inputs(op)
    if not defer_errors:
        _infer(op, with_values=True)
        return
    try:
        _infer(op, with_values=True)
    except UnimplementedError as error:
        op.unsupported = error
    except InvalidArgumentError:
        try:
            _infer(op, with_values=False)
        except InvalidArgumentError as error:
            if not error.late:
                raise


def _infer(op: Operation, with_values: bool) -> None:
    op_def, inputs = op.op_def, op.inputs
    positions = value_positions(op_def, op.attrs)
    values: list[np.ndarray | None] = [None] * len(inputs)
    if with_values:
        for i in range(len(inputs)) if op_def.value is not None else positions:
            values[i] = inputs[i].host_value
    context = InferenceContext(
        op_def,
        op.name,
        op.attrs,
        [t.static_shape for t in inputs],
        values,
        [t.dtype for t in inputs],
        [t.handle for t in inputs],
    )
    for tensor, shape in zip(op.outputs, run_shape_function(context, len(op.outputs)), strict=True):
        tensor._shape = shape
    for i, tensor in enumerate(op.outputs):
        if tensor.dtype is variant or i in context.output_handles:
            tensor.handle = element_handle(context, i)
    if with_values and op_def.value is not None and _worth_a_value(op.outputs):
        for tensor, value in zip(op.outputs, infer_values(context, [t.dtype for t in op.outputs]), strict=True):
            tensor.host_value = value


def element_handle(context: InferenceContext, i: int) -> tuple[DType | None, Shape] | None:
    """Returns the handle of output i. A list that its op says nothing about is like the lists that the op was given.

    Functions may return any list, so what an op's functions return is checked by the caller.
    """
    if i in context.output_handles:
        return context.output_handles[i]
    if context.op.function_attrs:
        return None
    return common_handle(h for t, h in zip(context.dtypes, context.handles, strict=False) if t is variant and h)


def common_handle(handles: Iterable[tuple[DType | None, Shape] | None]) -> tuple[DType | None, Shape] | None:
    """Returns what is known of the elements of a list that may be any of several."""
    known = [(None, None) if h is None else h for h in handles]
    dtypes = {dtype for dtype, _ in known}
    if len(dtypes) != 1 or None in dtypes:
        return None
    return dtypes.pop(), in_common(shape for _, shape in known)


def run_shape_function(context: InferenceContext, outputs: int) -> Sequence[Shape]:
    """Returns the op's shape function, with the errors of shape arithmetic put into the usual form."""
    try:
        result = context.op.shape(context)
    except InvalidArgumentError:
        raise
    except ValueError as e:
        raise context.error(str(e)) from None
    if len(result) != outputs:
        raise context.error(f"its shape function gave {len(result)} shapes; {outputs} are required")
    return result


def _worth_a_value(outputs: Sequence[Tensor]) -> bool:
    for t in outputs:
        shape = t.static_shape
        if shape is None or None in shape or num_elements(shape) > HOST_VALUE_ELEMENTS:  # type: ignore[arg-type]  # no None left
            return False
        if not (t.dtype.is_integer or t.dtype.is_bool or t.op.type == "Const"):
            return False
    return True
