"""Writes what fetches need as an ONNX model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx
from onnx import helper

from timberframe_core.errors import InvalidArgumentError
from timberframe_core.graph.operation import Operation, Tensor
from timberframe_onnx.elements import Array, element_of
from timberframe_onnx.exporting import elementwise, movement, networks
from timberframe_onnx.exporting.control_flow import write_all
from timberframe_onnx.exporting.writer import OLDEST_OPSET, NotExportedError, Writer

DEFAULT_OPSET = 21
_FAMILIES = (elementwise, movement, networks)  # their exporters are entered when they are imported


def export_model(
    fetches: Any, opset: int = DEFAULT_OPSET, inputs: Mapping[str, Tensor] | None = None, session: Any = None
) -> onnx.ModelProto:
    """Returns the ONNX model of what fetches need.

    fetches: a tensor, a list of tensors, or a dict of them, whose keys are the outputs' names. inputs: by name the
    tensors that are fed; if None the placeholders that the fetches need, by their own names. session: where variables
    have their values, which become constants. Raises NotExportedError with all operations that ONNX or this exporter
    lack.
    """
    newest = onnx.defs.onnx_opset_version()
    if not OLDEST_OPSET <= opset <= newest:
        raise InvalidArgumentError(f"opset is {opset}; {OLDEST_OPSET} to {newest} are written")
    outputs = _named(fetches)
    fed = dict(inputs) if inputs is not None else _placeholders(list(outputs.values()))
    w = Writer(opset, _variables(outputs.values(), session))
    w.used.update([*fed, *outputs])
    for name, tensor in fed.items():
        w.names[tensor] = name
    write_all(w, list(outputs.values()))
    if w.failures:
        listed = "\n".join(f"  {line}" for line in w.failures)
        raise NotExportedError(f"{len(w.failures)} operation(s) cannot be exported:\n{listed}")
    for name, tensor in outputs.items():
        w.add("Identity", [w.value(tensor)], [name])
    return _model(w, fed, outputs)


def _model(w: Writer, fed: Mapping[str, Tensor], outputs: Mapping[str, Tensor]) -> onnx.ModelProto:
    graph = helper.make_graph(
        w.nodes,
        "timberframe",
        [_info(name, tensor) for name, tensor in fed.items()],
        [_info(name, tensor) for name, tensor in outputs.items()],
        w.initializers,
    )
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", w.opset)], producer_name="timberframe")
    made.ir_version = helper.find_min_ir_version_for([helper.make_opsetid("", w.opset)])
    return made


def _info(name: str, tensor: Tensor) -> onnx.ValueInfoProto:
    shape = None if tensor.shape.ndims is None else tensor.shape.as_list()
    return helper.make_tensor_value_info(name, element_of(tensor.dtype), shape)


def _named(fetches: Any) -> dict[str, Tensor]:
    """Returns the fetches by the names of outputs."""
    if isinstance(fetches, Mapping):
        return dict(fetches)
    items = list(fetches) if isinstance(fetches, Sequence) else [fetches]
    for item in items:
        if not isinstance(item, Tensor):
            raise InvalidArgumentError(f"a fetch is {type(item).__name__}; a tensor is required")
    named: dict[str, Tensor] = {}
    for tensor in items:
        name = tensor.op.name if tensor.value_index == 0 else f"{tensor.op.name}_{tensor.value_index}"
        named[f"{name}_output" if tensor.op.type == "Placeholder" else name] = tensor
    return named


def _needed(tensors: Sequence[Tensor]) -> list[Operation]:
    """Returns all operations that tensors need, in the order in which the graph has them."""
    found: dict[Operation, None] = {}
    stack = [t.op for t in tensors]
    while stack:
        op = stack.pop()
        if op not in found:
            found[op] = None
            stack.extend(t.op for t in op.inputs)
    place = {op: i for i, op in enumerate(tensors[0].graph.get_operations())} if tensors else {}
    return sorted(found, key=lambda op: place.get(op, 0))


def _placeholders(tensors: list[Tensor]) -> dict[str, Tensor]:
    kinds = ("Placeholder", "PlaceholderV2", "PlaceholderWithDefault")
    return {op.name: op.outputs[0] for op in _needed(tensors) if op.type in kinds}


def _variables(tensors: Any, session: Any) -> dict[Operation, Array]:
    """Returns the values of the variables that tensors need, by the operations that name them."""
    needed = _needed(list(tensors))
    handles = [op for op in needed if op.type in ("VarHandleOp", "VariableV2", "Variable")]
    if session is None or not handles:
        return {}
    reads: dict[Operation, Tensor] = {op: op.outputs[0] for op in handles if op.type != "VarHandleOp"}
    for op in handles[0].graph.get_operations():
        if op.type == "ReadVariableOp" and op.inputs[0].op in handles:
            reads.setdefault(op.inputs[0].op, op.outputs[0])
    values = session.run(list(reads.values()))
    return {op: np.asarray(value) for op, value in zip(reads, values, strict=True)}
