"""Graphs as GraphDef messages."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from timberframe_core.graph.function import FuncGraph
from timberframe_core.graph.graph import Graph
from timberframe_core.graph.inference import arg_ranges
from timberframe_core.graph.operation import Operation, Tensor
from timberframe_core.graphdef import messages
from timberframe_core.graphdef.attributes import encode_attr, kind_of
from timberframe_core.graphdef.tensors import encode_shape

PRODUCER = 2474
"""The GraphDef version whose semantics our ops have: TensorFlow 2.21's."""


def export_graph(graph: Graph, add_shapes: bool = False) -> Any:
    """Returns the GraphDef of a graph: nodes in creation order and the functions that they may call.

    add_shapes: also write each node's output shapes, as the attr `_output_shapes`.
    """
    message = messages.GraphDef()
    message.versions.producer = PRODUCER
    for op in graph.get_operations():
        _write_whole_node(message.node.add(), op, add_shapes)
    for name in sorted(graph.functions):
        message.library.function.append(export_function(graph.functions[name], add_shapes))
    return message


def export_node(op: Operation) -> Any:
    """Returns the NodeDef of an operation."""
    node = messages.NodeDef()
    _write_whole_node(node, op, add_shapes=False)
    return node


def _write_whole_node(node: Any, op: Operation, add_shapes: bool) -> None:
    _write_node(node, op, add_shapes)
    node.input.extend(t.op.name if t.value_index == 0 else t.name for t in op.inputs)
    node.input.extend(f"^{c.name}" for c in op.control_inputs)


def _write_node(node: Any, op: Operation, add_shapes: bool) -> None:
    """Writes everything of a node but its inputs, which read differently in functions."""
    node.name, node.op, node.device = op.name, op.type, op.device
    declared = op.op_def.attrs
    for key, value in op.attrs.items():
        if key in declared:
            kind = declared[key].kind
            if kind == "tensor" and value is None:  # left out, as its default says
                continue
            tensor_type = op.attrs.get("dtype") if kind == "tensor" else None
            node.attr[key].CopyFrom(encode_attr(value, kind, tensor_type))
        else:
            node.attr[key].CopyFrom(encode_attr(value, kind_of(value)))
    if op.colocation:
        node.attr["_class"].list.s.extend(f"loc:@{name}".encode() for name in op.colocation)
    if add_shapes and op.outputs:
        node.attr["_output_shapes"].list.shape.extend(encode_shape(t.static_shape) for t in op.outputs)


class _Names:
    """Argument names as TensorFlow wants them: lower case, letters first, no two alike."""

    def __init__(self, taken: Iterable[str] = ()) -> None:
        self._used = set(taken)

    def claim(self, name: str) -> str:
        base = re.sub(r"[^a-z0-9_]", "_", name.lower())
        base = base if base[:1].isalpha() else f"arg_{base}"
        chosen, number = base, 0
        while chosen in self._used:
            number += 1
            chosen = f"{base}_{number}"
        self._used.add(chosen)
        return chosen


def export_function(function: FuncGraph, add_shapes: bool = False) -> Any:
    """Returns the FunctionDef of a body; captured tensors are its last arguments."""
    message = messages.FunctionDef()
    signature = message.signature
    signature.name = function.name
    made = {t.op for t in function.inputs}
    nodes = [op for op in function.get_operations() if op not in made]
    arguments, results = _Names(op.name for op in nodes), _Names()
    references: dict[Tensor, str] = {}
    for i, tensor in enumerate(function.inputs):
        references[tensor] = arguments.claim(tensor.op.name)
        _write_argument(signature.input_arg.add(), tensor, references[tensor])
        message.arg_attr[i].attr["_output_shapes"].list.shape.append(encode_shape(tensor.static_shape))
    for op in nodes:
        _refer_to_outputs(op, references)
    for op in nodes:
        node = message.node_def.add()
        _write_node(node, op, add_shapes)
        node.input.extend(references[t] for t in op.inputs)
        node.input.extend(f"^{c.name}" for c in op.control_inputs if c not in made)
    for tensor in function.outputs:
        name = results.claim(tensor.op.name)
        _write_argument(signature.output_arg.add(), tensor, name)
        message.ret[name] = references[tensor]
    for op in function.control_outputs:
        name = results.claim(op.name)
        signature.control_output.append(name)
        message.control_ret[name] = op.name
    signature.is_stateful = any(op.op_def.stateful for op in nodes)
    return message


def _write_argument(argument: Any, tensor: Tensor, name: str) -> None:
    argument.name = name
    argument.type = tensor.dtype.number
    dtype, shape = tensor.handle or (None, None)
    if dtype is not None:
        argument.handle_data.add(dtype=dtype.number, shape=encode_shape(shape))


def _refer_to_outputs(op: Operation, references: dict[Tensor, str]) -> None:
    """In a function an output is named by its argument: ``node:output:0``."""
    for name, positions in arg_ranges(op.op_def.outputs, op.attrs).items():
        for i, position in enumerate(positions):
            references[op.outputs[position]] = f"{op.name}:{name}:{i}"
