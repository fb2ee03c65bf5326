"""Exporters of branches, loops, calls and of lists in loops. A list is a tensor whose rows are the elements."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
from onnx import helper

from timberframe_core.graph.function import FuncGraph
from timberframe_core.graph.operation import Operation, Tensor
from timberframe_onnx.elements import element_of
from timberframe_onnx.exporting.writer import NotExportedError, Writer, exporter, exports


def write_all(w: Writer, tensors: list[Tensor]) -> None:
    """Writes all operations that tensors need and that have not been written, those before others first."""
    stack = [(t.op, False) for t in reversed(tensors) if t not in w.names]
    done: set[Operation] = set()
    while stack:
        op, ready = stack.pop()
        if op in done or all(t in w.names for t in op.outputs):
            continue
        if not ready:
            stack.append((op, True))
            stack.extend((t.op, False) for t in reversed(op.inputs) if t not in w.names)
            continue
        done.add(op)
        _write(w, op)


def _write(w: Writer, op: Operation) -> None:
    function = exporter(op.type)
    if any(t not in w.names for t in op.inputs):
        return  # what it needs has been reported
    if function is None:
        w.failures.append(f"{op.type} '{op.name}': no exporter has this op")
        return
    outer, w.writing = w.writing, op.name
    try:
        function(w, op)
    except NotExportedError as e:
        w.failures.append(f"{op.type} '{op.name}': {e}")
    finally:
        w.writing = outer


@exports("Const")
def _const(w: Writer, op: Operation) -> None:
    w.give(op, w.constant(op.attrs["value"], op.outputs[0].dtype.numpy, op.name))


@exports("VarHandleOp")
def _handle(w: Writer, op: Operation) -> None:
    w.give(op, "")


@exports("ReadVariableOp")
def _read(w: Writer, op: Operation) -> None:
    handle = op.inputs[0].op
    if handle not in w.variables:
        raise NotExportedError("its variable has no value here; a session is required")
    w.give(op, w.constant(w.variables[handle], op.outputs[0].dtype.numpy, handle.name))


@exports("VariableV2", "Variable")
def _variable(w: Writer, op: Operation) -> None:
    if op not in w.variables:
        raise NotExportedError("it has no value here; a session is required")
    w.give(op, w.constant(w.variables[op], op.outputs[0].dtype.base_dtype.numpy, op.name))


def _function(op: Operation, attribute: str) -> FuncGraph:
    """Returns the body that an attribute of an operation names."""
    body = op.graph.find_function(op.attrs[attribute])
    if body is None:
        raise NotExportedError(f"its graph has no function '{op.attrs[attribute]}'")
    return body


def _inlined(w: Writer, op: Operation, body: FuncGraph, inputs: list[str]) -> list[str]:
    """Returns the outputs of a body in the place of its call."""
    for tensor, name in zip(body.inputs, inputs, strict=True):
        w.names[tensor] = name
    write_all(w, body.outputs)
    if any(t not in w.names for t in body.outputs):
        raise NotExportedError("its body is not exported")
    return [w.value(t) for t in body.outputs]


@exports("PartitionedCall", "StatefulPartitionedCall")
def _call(w: Writer, op: Operation) -> None:
    w.give(op, *_inlined(w, op, _function(op, "f"), w.inputs(op)))


def _value_info(name: str, tensor: Tensor) -> onnx.ValueInfoProto:
    dtype, shape = _stored(tensor)
    return helper.make_tensor_value_info(name, element_of(dtype), shape)


def _stored(tensor: Tensor) -> tuple[Any, Any]:
    """Returns the dtype and shape of what stands for a tensor: of a list its rows, whose shape is left open."""
    if tensor.dtype.name == "variant":
        return _element_dtype(tensor), None
    known = tensor.shape.ndims is not None
    return tensor.dtype.base_dtype, tensor.shape.as_list() if known else None


def _element_dtype(tensor: Tensor) -> Any:
    """Returns the dtype of a list's elements."""
    handle: Any = tensor.handle
    if handle is None:
        raise NotExportedError(f"the elements of list '{tensor.name}' are not known")
    return handle[0]


def _subgraph(w: Writer, body: FuncGraph, inputs: list[str], name: str) -> onnx.GraphProto:
    """Returns a body as a graph without inputs: it sees the names around it."""
    inner = Writer(w.opset, w.variables, w)
    names = _inlined(inner, body.outputs[0].op, body, inputs)
    outputs = [inner.add("Identity", [n]) for n in names]
    infos = [_value_info(n, t) for n, t in zip(outputs, body.outputs, strict=True)]
    return helper.make_graph(inner.nodes, name, [], infos, inner.initializers)


@exports("If", "StatelessIf")
def _if(w: Writer, op: Operation) -> None:
    inputs = w.inputs(op)
    condition = inputs[0]
    if op.inputs[0].dtype.name != "bool":
        condition = w.add("Cast", [condition], to=onnx.TensorProto.BOOL)
    branches = {key: _subgraph(w, _function(op, key), inputs[1:], key) for key in ("then_branch", "else_branch")}
    made = w.add("If", [condition], len(op.outputs), **branches)
    w.give(op, *([made] if isinstance(made, str) else made))


@exports("While", "StatelessWhile")
def _while(w: Writer, op: Operation) -> None:
    condition, body = (_function(op, key) for key in ("cond", "body"))
    start = w.inputs(op)
    first = _inlined_copy(w, condition, start)
    inner = Writer(w.opset, w.variables, w)
    names = [inner.fresh("state") for _ in start]
    step, going = inner.fresh("iteration"), inner.fresh("going")
    made = _inlined(inner, op, body, names)
    again = inner.add("Identity", [_inlined_copy(inner, condition, made)])
    outputs = [inner.add("Identity", [n]) for n in made]
    inputs = [
        helper.make_tensor_value_info(step, onnx.TensorProto.INT64, []),
        helper.make_tensor_value_info(going, onnx.TensorProto.BOOL, []),
        *(_loose(n, t) for n, t in zip(names, op.inputs, strict=True)),
    ]
    results = [helper.make_tensor_value_info(again, onnx.TensorProto.BOOL, [])]
    results += [_loose(n, t) for n, t in zip(outputs, op.inputs, strict=True)]
    graph = helper.make_graph(inner.nodes, "body", inputs, results, inner.initializers)
    finals = w.add("Loop", ["", first, *start], len(start), body=graph)
    w.give(op, *([finals] if isinstance(finals, str) else finals))


def _loose(name: str, tensor: Tensor) -> onnx.ValueInfoProto:
    """Returns a loop's value, whose sizes may change: the rank alone is said, and nothing of lists."""
    dtype, shape = _stored(tensor)
    return helper.make_tensor_value_info(name, element_of(dtype), None if shape is None else [None] * len(shape))


def _inlined_copy(w: Writer, body: FuncGraph, inputs: list[str]) -> str:
    """Returns the condition of a loop, written once more: its tensors have other names each time."""
    known = {t for op in body.get_operations() for t in op.outputs}
    kept = {t: w.names.pop(t) for t in known if t in w.names}
    made = _inlined(w, body.outputs[0].op, body, inputs)[0]
    for t in known:
        w.names.pop(t, None)
    w.names.update(kept)
    return made


@exports("TensorListFromTensor", "TensorListStack")
def _rows(w: Writer, op: Operation) -> None:
    w.give(op, w.add("Identity", [w.value(op.inputs[0])]))


@exports("TensorListReserve")
def _reserve(w: Writer, op: Operation) -> None:
    """Rows of zeros, which an element that was never set reads as."""
    shape = w.known(op.inputs[0])
    if shape is None or shape.ndim == 0 or np.any(shape < 0):
        raise NotExportedError("the shape of its elements is not known before it runs")
    count = w.add("Reshape", [w.as_int64(op.inputs[1]), w.constant([1])])
    whole = w.add("Concat", [count, w.constant(shape)], axis=0)
    zero = onnx.numpy_helper.from_array(np.zeros(1, op.attrs["element_dtype"].numpy))
    w.give(op, w.add("ConstantOfShape", [whole], value=zero))


@exports("TensorListGetItem")
def _get_item(w: Writer, op: Operation) -> None:
    w.give(op, w.add("Gather", [w.value(op.inputs[0]), w.value(op.inputs[1])], axis=0))


@exports("TensorListSetItem")
def _set_item(w: Writer, op: Operation) -> None:
    rows, _, item = w.inputs(op)
    place = w.add("Reshape", [w.as_int64(op.inputs[1]), w.constant([1, 1])])
    w.give(op, w.add("ScatterND", [rows, place, w.add("Unsqueeze", [item, w.constant([0])])]))


@exports("TensorListLength")
def _length(w: Writer, op: Operation) -> None:
    shape = w.add("Shape", w.inputs(op), end=1)
    w.give(op, w.cast(w.add("Squeeze", [shape, w.constant([0])]), op.outputs[0].dtype))
