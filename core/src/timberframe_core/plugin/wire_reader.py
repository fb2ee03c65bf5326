"""Reads clusters from their wire form."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from timberframe_core.dtypes import DType, as_dtype
from timberframe_core.errors import InvalidArgumentError, UnimplementedError
from timberframe_core.graphdef import messages
from timberframe_core.graphdef.attributes import decode_attr
from timberframe_core.graphdef.tensors import decode_shape, make_ndarray
from timberframe_core.ops.definition import registry
from timberframe_core.plugin.contracts import UNKNOWN_RANK, Cluster, Device, KernelNode, Update, Value
from timberframe_core.plugin.state import RandomStream, Variable
from timberframe_core.plugin.wire import VERSION

VariableOf = Callable[[str, DType], Variable]
StreamOf = Callable[[str], RandomStream]

_KINDS = {
    "i": "int", "f": "float", "b": "bool", "s": "string", "type": "type", "shape": "shape", "tensor": "tensor",
    "func": "func",
}  # fmt: skip


def read_cluster(data: bytes, device: Device, variable: VariableOf, stream: StreamOf) -> Cluster:
    """Returns the cluster that `write_cluster` wrote, for a device of this process.

    variable(name, dtype), stream(name): what the names in it mean here; a variable's container stands before its name,
    ``container:name``. Raises InvalidArgumentError where the bytes are no cluster, UnimplementedError where they are
    of a later version.
    """
    message = messages.GraphDef()
    try:
        message.ParseFromString(data)
    except Exception as e:  # DecodeError, which would need an import of protobuf
        raise InvalidArgumentError(f"wire form of a cluster: {e}; a GraphDef is required") from None
    if message.versions.min_consumer != VERSION:
        raise UnimplementedError(
            f"wire form of a cluster: is of version {message.versions.min_consumer}; this process reads {VERSION}"
        )
    try:
        return _Reader(message, device, variable, stream).read(message.node)
    except (KeyError, IndexError, ValueError) as e:
        raise InvalidArgumentError(f"wire form of a cluster: {type(e).__name__}: {e}; it is damaged") from None


class _Reader:
    def __init__(self, message: Any, device: Device, variable: VariableOf, stream: StreamOf) -> None:
        self.device, self.variable, self.stream = device, variable, stream
        self.functions = {f.signature.name: f.node_def for f in message.library.function}

    def read(self, nodes: Any) -> Cluster:
        cluster = Cluster(self.device, [], [], [])
        values: dict[str, list[Value]] = {}
        handles: dict[str, Variable] = {}
        count = 0
        for node in nodes:
            made = []
            for value in _outputs(node):
                value.id, count = count, count + 1
                made.append(value)
            values[node.name] = made
            self._read_node(node, made, values, handles, cluster)
        return cluster

    def _read_node(
        self,
        node: Any,
        made: list[Value],
        values: Mapping[str, list[Value]],
        handles: dict[str, Variable],
        cluster: Cluster,
    ) -> None:
        op = node.op
        if op == "_Arg":
            made[0].kind = "input"
            cluster.inputs.append(made[0])
        elif op == "_Retval":
            cluster.outputs.append(_value(node.input[0], values))
        elif op == "VarHandleOp":
            handles[node.name] = self.variable(node.attr["shared_name"].s.decode(), as_dtype(node.attr["dtype"].type))
        elif op == "ReadVariableOp":
            made[0].kind, made[0].constant = "resource", handles[node.input[0]]
            made[0].replaced = node.attr["_replaced"].b
            cluster.resources.append(made[0])
        elif op == "AssignVariableOp":
            old = node.attr["_old"].s.decode()
            new = _value(node.input[1], values)
            before = _value(old, values) if old else None
            cluster.updates.append(Update(handles[node.input[0]], before, new, node.attr["_in_place"].b))
        elif op == "Const" and node.name.startswith("_const_"):
            made[0].kind, made[0].constant = "const", make_ndarray(node.attr["value"].tensor)
        elif not (op == "Placeholder" and node.name.startswith("_placeholder_")):
            cluster.nodes.append(self._kernel_node(node, made, values))

    def _kernel_node(self, node: Any, made: list[Value], values: Mapping[str, list[Value]]) -> KernelNode:
        op = registry.find(node.op)
        attrs: dict[str, Any] = {}
        hidden = {}
        for key, proto in node.attr.items():
            if key in _HIDDEN:
                hidden[key] = proto
            elif op is not None and key in op.attrs:
                attrs[key] = decode_attr(proto, op.attrs[key].kind, f"attr '{key}' of '{node.name}'")
            else:
                attrs[key] = decode_attr(proto, _kind(proto), f"attr '{key}' of '{node.name}'")
        for text in node.attr["_doubles"].list.s:
            key, _, digits = text.decode().partition("=")
            attrs[key] = float.fromhex(digits)
        inner = [self.read(self.functions[name.decode()]) for name in node.attr["_inner"].list.s]
        found = KernelNode(
            node.op,
            hidden["_name"].s.decode() if "_name" in hidden else node.name,
            attrs,
            [_value(name, values) for name in node.input],
            made,
            self.device,
            node.attr["_where"].s.decode(),
            tuple(inner),
        )
        found.placing = node.attr["_placing"].b
        if "_stream" in hidden:
            found.stream = self.stream(hidden["_stream"].s.decode())
        return found


_HIDDEN = {
    "_output_shapes", "_output_types", "_dynamic", "_doubles", "_inner", "_stream", "_where", "_name", "_placing",
}  # fmt: skip
"""Attrs that belong to the wire form, not to the op."""


def _outputs(node: Any) -> list[Value]:
    shapes, types = node.attr["_output_shapes"].list.shape, node.attr["_output_types"].list.type
    dynamic = node.attr["_dynamic"].list.b or [False] * len(types)
    return [
        Value(0, as_dtype(number).numpy, _shape(shape), dynamic=bound)
        for shape, number, bound in zip(shapes, types, dynamic, strict=True)
    ]


def _shape(proto: Any) -> tuple[int, ...]:
    """Returns a shape as values have it while nodes are placed: -1 for an unknown size."""
    shape = decode_shape(proto)
    return UNKNOWN_RANK if shape is None else tuple(-1 if n is None else n for n in shape)


def _value(reference: str, values: Mapping[str, list[Value]]) -> Value:
    name, _, index = reference.partition(":")
    return values[name][int(index or 0)]


def _kind(proto: Any) -> str:
    """Returns the kind of an attr that no OpDef declares, from what it holds."""
    held = proto.WhichOneof("value")
    if held != "list":
        return _KINDS[held]
    found = next((field.name for field, _ in proto.list.ListFields()), "s")
    return f"list({_KINDS[found]})"
