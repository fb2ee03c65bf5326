"""Bodies of ops that ONNX defines by other ops."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import onnx
from onnx import defs, helper

from timberframe_onnx.translation.node import Node
from timberframe_onnx.translation.values import Optional, Value, contents, element_type
from timberframe_onnx.translation.values import Sequence as ListValue


def body_of(node: Node, inputs: Sequence[Value]) -> onnx.FunctionProto | None:
    """Returns the function that ONNX defines the op of a node by, for its opset; None where it defines none."""
    try:
        schema = defs.get_schema(node.op, node.opset, node.domain)
    except defs.SchemaError:
        return None
    version = _newest(schema.function_opset_versions, node.opset)
    if version is not None:
        return _parsed(schema.get_function_with_opset_version(version))
    version = _newest(schema.context_dependent_function_opset_versions, node.opset)
    if version is None or node.proto is None:
        return None
    types = [_type_of(v).SerializeToString() for v in inputs]
    proto = onnx.NodeProto()
    proto.CopyFrom(node.proto)
    del proto.attribute[:]
    proto.attribute.extend(node.scope.attributes_of(node.proto))
    return _parsed(schema.get_context_dependent_function_with_opset_version(version, proto.SerializeToString(), types))


def defaults_of(node: Node) -> dict[str, onnx.AttributeProto]:
    """Returns the values that attributes of a node's op have where they are left out."""
    try:
        schema = defs.get_schema(node.op, node.opset, node.domain)
    except defs.SchemaError:
        return {}
    return {name: a.default_value for name, a in schema.attributes.items() if a.default_value.name}


def _newest(versions: Sequence[int], opset: int) -> int | None:
    """Returns the newest of the versions of a body that an opset may use; the oldest where all are newer."""
    fitting = [v for v in versions if v <= opset]
    return max(fitting) if fitting else min(versions, default=None)


def _parsed(data: bytes) -> onnx.FunctionProto | None:
    body = onnx.FunctionProto()
    body.ParseFromString(data)
    return body if body.node else None


def _type_of(value: Value) -> onnx.TypeProto:
    """Returns the type of a value in ONNX; the empty one for an input that is left out."""
    if value is None:
        return onnx.TypeProto()
    if isinstance(value, Optional):
        return helper.make_optional_type_proto(_type_of(value.value))
    if isinstance(value, ListValue):
        return helper.make_sequence_type_proto(helper.make_tensor_type_proto(value.element, None))
    shape: Any = contents(value).shape
    return helper.make_tensor_type_proto(element_type(value), None if shape.ndims is None else shape.as_list())
