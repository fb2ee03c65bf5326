"""Small models for tests."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import onnx
from onnx import TensorProto, helper

NAMES = {"float": TensorProto.FLOAT, "int64": TensorProto.INT64, "string": TensorProto.STRING, "bool": TensorProto.BOOL}


def port(text: str) -> onnx.ValueInfoProto:
    """Returns an input or output by its name, element type and sizes, as "x: float[n,3]"."""
    name, _, kind = text.partition(": ")
    element, _, sizes = kind.partition("[")
    shape = [int(s) if s.isdigit() else s for s in sizes.rstrip("]").split(",") if s]
    number = NAMES[element] if element in NAMES else TensorProto.DataType.Value(element.upper())
    return helper.make_tensor_value_info(name, number, shape)


def model(
    nodes: Sequence[onnx.NodeProto], inputs: Sequence[str], outputs: Sequence[str], opset: int = 21, **parts: Any
) -> onnx.ModelProto:
    """Returns a model of nodes; parts: more of the graph's, as `initializer`."""
    graph = helper.make_graph(list(nodes), "test", [port(i) for i in inputs], [port(o) for o in outputs], **parts)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])
