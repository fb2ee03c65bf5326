"""Clusters as bytes: the form in which they go to devices of other processes, and of which a hash identifies them.

It is a GraphDef, and nothing in it is code. Inputs are _Arg nodes in order, outputs _Retval nodes. A variable is a
VarHandleOp of its name; reads and new versions of it are ReadVariableOp and AssignVariableOp. Kernels that update
variables take and give versions. Bodies of loops and branches are functions, named in the attr `_inner`. Shapes stand
in `_output_shapes`, as TensorFlow writes them, floats that no float32 holds once more in `_doubles`. Why it is the
lowered cluster, and not the graph that this was made of: docs/internals.md, "Several devices".
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from timberframe_core.dtypes import as_dtype
from timberframe_core.graphdef import messages
from timberframe_core.graphdef.attributes import encode_attr, kind_of
from timberframe_core.graphdef.tensors import encode_array, encode_shape
from timberframe_core.ops.definition import registry

if TYPE_CHECKING:
    from timberframe_core.plugin.contracts import Cluster, KernelNode, Update, Value, Variable

VERSION = 1
"""Of the form itself, written as the GraphDef's `min_consumer`."""

_UNKNOWN_RANK = (-2,)


def write_cluster(cluster: Cluster) -> bytes:
    """Returns the cluster in its wire form, by which `read_cluster` makes an equal one: ids of values may differ."""
    return bytes(_Writer(cluster).message.SerializeToString(deterministic=True))


def fingerprint(cluster: Cluster) -> str:
    """See `Cluster.fingerprint`."""
    import hashlib  # here, since it loads OpenSSL, and few devices ask for fingerprints

    content = _Writer(cluster, anonymous=True).message.SerializeToString(deterministic=True)
    return hashlib.sha256(content).hexdigest()


class _Writer:
    """A cluster as a GraphDef; anonymous: numbers stand for names, and where nodes come from and run is left out."""

    def __init__(self, cluster: Cluster, anonymous: bool = False) -> None:
        self.message = messages.GraphDef()
        self.message.versions.min_consumer = VERSION
        self.device = "" if anonymous else cluster.device.name
        self.anonymous = anonymous
        nodes = _Nodes(self, self.message.node)
        nodes.write(cluster)
        nodes.write_updates(cluster.updates)

    def add_function(self, cluster: Cluster) -> str:
        """Writes the body of a loop or branch; returns the name that it gets."""
        name = f"body_{len(self.message.library.function)}"
        function = self.message.library.function.add()
        function.signature.name = name
        _Nodes(self, function.node_def).write(cluster)
        return name


class _Nodes:
    """The nodes of one cluster: of the whole, or of a body in it."""

    def __init__(self, writer: _Writer, nodes: Any) -> None:
        self._writer = writer
        self._nodes = nodes
        self._references: dict[int, str] = {}
        self._handles: dict[int, str] = {}
        self._names: set[str] = set()

    def write(self, cluster: Cluster) -> None:
        """Inputs, versions of variables that are read, nodes, and outputs."""
        for i, value in enumerate(cluster.inputs):
            self._source(value, "_Arg", f"_arg_{i}", index=i)
        for value in cluster.resources:
            handle = self._handle(value.constant)
            node = self._source(value, "ReadVariableOp", f"_read{handle}")
            node.input.append(handle)
            if value.replaced:
                node.attr["_replaced"].b = True
        for kernel_node in cluster.nodes:
            self._write_node(kernel_node)
        for i, value in enumerate(cluster.outputs):
            reference = self._reference(value)  # first: a constant gets its node here, and readers go from above
            self._add("_Retval", f"_retval_{i}", {"index": i}).input.append(reference)

    def write_updates(self, updates: Iterable[Update]) -> None:
        """Writes the new versions of variables."""
        for i, update in enumerate(updates):
            inputs = [self._handle(update.variable), self._reference(update.new)]
            old = "" if update.old is None else self._reference(update.old)
            node = self._add("AssignVariableOp", f"_assign_{i}", {"_in_place": update.in_place})
            node.input.extend(inputs)
            if old:
                node.attr["_old"].s = old.encode()

    def _add(self, op: str, name: str, attrs: dict[str, Any] | None = None) -> Any:
        """Returns a node; a name that is taken gets a number after it, and the attr `_name`."""
        unique, number = name, 0
        while unique in self._names:
            number += 1
            unique = f"{name}_{number}"
        self._names.add(unique)
        node = self._nodes.add(op=op, name=unique, device=self._writer.device)
        for key, value in (attrs or {}).items():
            node.attr[key].CopyFrom(encode_attr(value, kind_of(value)))
        if unique != name:
            node.attr["_name"].s = name.encode()
        return node

    def _source(self, value: Value, op: str, name: str, **attrs: Any) -> Any:
        """Returns a node that gives one value, which no kernel makes."""
        node = self._add(op, name, attrs)
        self._write_outputs(node, [value])
        return node

    def _write_outputs(self, node: Any, values: list[Value]) -> None:
        node.attr["_output_shapes"].list.SetInParent()
        node.attr["_output_types"].list.SetInParent()
        for i, value in enumerate(values):
            shape = None if value.shape == _UNKNOWN_RANK else value.shape
            node.attr["_output_shapes"].list.shape.append(encode_shape(shape))
            node.attr["_output_types"].list.type.append(_type_number(value.dtype))
            self._references[value.id] = f"{node.name}:{i}" if i else node.name
        if any(v.dynamic for v in values):
            node.attr["_dynamic"].list.b.extend(v.dynamic for v in values)

    def _handle(self, variable: Variable) -> str:
        found = self._handles.get(id(variable))
        if found is None:
            name = f"_variable_{len(self._handles)}"
            node = self._add("VarHandleOp", name)
            node.attr["dtype"].type = variable.dtype.number
            if not self._writer.anonymous:
                node.attr["shared_name"].s = variable.name.encode()
            found = self._handles[id(variable)] = node.name
        return found

    def _reference(self, value: Value) -> str:
        """Returns the output that is the value; a constant gets its node when it is used first."""
        found = self._references.get(value.id)
        if found is None:
            kind = "Const" if value.kind == "const" else "Placeholder"  # of a node that is in no cluster yet
            node = self._source(value, kind, f"_{kind.lower()}_{len(self._references)}")
            if value.kind == "const":
                dtype = as_dtype(value.dtype) if not value.dtype.hasobject else as_dtype("string")
                node.attr["value"].tensor.CopyFrom(encode_array(np.asarray(value.constant), dtype))
            found = self._references[value.id]
        return found

    def _write_node(self, kernel_node: KernelNode) -> None:
        anonymous = self._writer.anonymous
        inputs = [self._reference(v) for v in kernel_node.inputs]
        node = self._add(kernel_node.op, f"_{len(self._names)}" if anonymous else kernel_node.name)
        node.input.extend(inputs)
        op = registry.find(kernel_node.op)
        declared = {} if op is None else op.attrs
        for key, value in kernel_node.attrs.items():
            kind = declared[key].kind if key in declared else kind_of(value)
            if not (anonymous and "func" in kind):  # bodies are there themselves; their names do not matter
                node.attr[key].CopyFrom(encode_attr(value, kind))
            if kind == "float" and node.attr[key].f != value:
                node.attr["_doubles"].list.s.append(f"{key}={float(value).hex()}".encode())
        self._write_outputs(node, kernel_node.outputs)
        if kernel_node.inner:
            names = [self._writer.add_function(body) for body in kernel_node.inner]
            node.attr["_inner"].list.s.extend(name.encode() for name in names)
        if kernel_node.placing:
            node.attr["_placing"].b = True
        if kernel_node.stream is not None:
            node.attr["_stream"].s = b"" if anonymous else kernel_node.stream.name.encode()
        if kernel_node.where and not anonymous:
            node.attr["_where"].s = kernel_node.where.encode()


def _type_number(dtype: np.dtype[Any]) -> int:
    """Returns the number of a dtype in GraphDefs; on the host resources and variants look like strings."""
    return as_dtype("string" if dtype.hasobject else dtype).number
