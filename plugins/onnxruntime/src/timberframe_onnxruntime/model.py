"""Writes a cluster as an ONNX model, by the exporter of timberframe-onnx."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import onnx

from timberframe_core.dtypes import as_dtype
from timberframe_core.graph.graph import Graph
from timberframe_core.graph.operation import Tensor
from timberframe_core.ops.definition import registry
from timberframe_onnx.elements import NATIVE
from timberframe_onnx.exporting import export_model
from timberframe_onnx.exporting.writer import exporter, written_by
from timberframe_sdk import ClusterFunction, KernelNode, apply_op, arg_ranges, role

DTYPES = (
    "float32", "float64", "float16", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "bool",
)  # fmt: skip
"""Of the tensors that a model may have: those that NumPy's arrays and ONNX both hold."""
_HELD = {dtype.name for dtype in NATIVE.values()} & set(DTYPES)


@dataclass(frozen=True)
class ClusterModel:
    """A cluster as an ONNX model, with the names of what stands for its parameters and results.

    ops: by the name of a node's operation its op, as the cluster has it.
    """

    proto: onnx.ModelProto
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    ops: Mapping[str, str]

    def op_of(self, node: str) -> str:
        """Returns the op that a node of the model stands for, by the node's name; "" for one that stands for none."""
        return self.ops.get(written_by(node), "")


@dataclass(frozen=True)
class _Held:
    """A tensor of the graph that is exported, while a cluster is walked."""

    tensor: Tensor


def refusal(node: KernelNode) -> str | None:
    """Returns why a node cannot be part of a model, whatever the provider; None if it may be."""
    if role(node.op) is not None:
        return "loops, branches and calls are driven from outside of the model"
    if "_kernel" in node.attrs:
        return f"there is no kernel with the label {node.attrs['_kernel']!r}"
    if exporter(node.op) is None:
        return f"{node.op} has no form in ONNX that timberframe-onnx writes"
    for value in (*node.inputs, *node.outputs):
        if value.dtype.name not in _HELD:
            return f"{value.dtype.name} is not one of {', '.join(DTYPES)}"
    return None


def write_model(function: ClusterFunction, opset: int) -> ClusterModel:
    """Returns the model of a cluster, all of whose shapes are known.

    NotExportedError names all nodes that ONNX, or the exporter, has no form of.
    """
    graph = Graph()
    with graph.as_default():
        fed = [
            apply_op("Placeholder", (), {"dtype": as_dtype(v.dtype), "shape": v.shape}, name=f"input_{i}")
            for i, v in enumerate(function.parameters)
        ]
        made = function(_rebuild, [_Held(t) for t in fed])
        results = [x.tensor if isinstance(x, _Held) else _constant(x) for x in made]
    inputs = {f"input_{i}": t for i, t in enumerate(fed)}
    outputs = {f"output_{i}": t for i, t in enumerate(results)}
    proto = export_model(outputs, opset, inputs)
    _name_results(proto)
    ops = {operation.name: operation.type for operation in graph.get_operations()}
    return ClusterModel(proto, tuple(inputs), tuple(outputs), ops)


def _name_results(proto: onnx.ModelProto) -> None:
    """Gives results the names of outputs where they are made, so that a provider needs no Identity for that."""
    made = {name: node for node in proto.graph.node for name in node.output}
    outputs = {o.name for o in proto.graph.output}
    for node in [n for n in proto.graph.node if n.op_type == "Identity" and n.output[0] in outputs]:
        result, name = node.input[0], node.output[0]
        if result not in made or result in outputs:
            continue  # an input, a constant, or what is another output, too
        for other in proto.graph.node:
            other.input[:] = [name if x == result else x for x in other.input]
            other.output[:] = [name if x == result else x for x in other.output]
        proto.graph.node.remove(node)
        made[name] = made.pop(result)


def _rebuild(node: KernelNode, inputs: Sequence[Any]) -> list[_Held]:
    """Returns a node once more, as an operation of the graph that is exported."""
    definition = registry.get(node.op)
    tensors = [x.tensor if isinstance(x, _Held) else _constant(x) for x in inputs]
    ranges = arg_ranges(definition.inputs, node.attrs)
    arguments: list[Any] = []
    for arg in definition.inputs:
        own = [tensors[i] for i in ranges[arg.name]]
        arguments.append(own if arg.is_list else own[0])
    attrs = {name: value for name, value in node.attrs.items() if name in definition.attrs}
    made = apply_op(node.op, arguments, attrs, name=_valid(node.name))
    return [_Held(t) for t in (made if isinstance(made, list | tuple) else [made])]


def _constant(x: Any) -> Tensor:
    tensor: Tensor = apply_op("Const", (), {"value": x, "dtype": as_dtype(x.dtype)})
    return tensor


def _valid(name: str) -> str:
    """Returns a name that a graph takes: nodes that passes made have others."""
    plain = "".join(c if c.isalnum() or c in "_.-/" else "_" for c in name).strip("/_-") or "node"
    return plain if plain[0].isalnum() else f"n{plain}"


_MOVES = ("Identity", "Reshape", "Transpose", "Unsqueeze")
"""What the exporter puts between an input and the node that computes with it."""


def weights_of(proto: onnx.ModelProto) -> list[str]:
    """Returns the inputs of a model that no node that computes takes as its first: the weights, in models of others.

    Where that are all inputs, the first is none of them.
    """
    names = [i.name for i in proto.graph.input]
    found = [n for n in names if not _is_data(proto, n)]
    return found if len(found) < len(names) else found[1:]


def _is_data(proto: onnx.ModelProto, name: str) -> bool:
    """Returns whether an input, perhaps moved, is the first input of a node that computes, or an output."""
    forms = {name}
    for node in proto.graph.node:
        if not node.input or node.input[0] not in forms:
            continue
        if node.op_type not in _MOVES:
            return True
        forms.update(node.output)
    return any(o.name in forms for o in proto.graph.output)
