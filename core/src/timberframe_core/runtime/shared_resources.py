"""Resources of a worker that all sessions on it share: queues and accumulators with a `shared_name`.

Their ops are carried out where they are: a node goes there as a NodeDef, beside its inputs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from timberframe_core.dtypes import DType, as_dtype
from timberframe_core.errors import UnimplementedError
from timberframe_core.graphdef import messages
from timberframe_core.graphdef.attributes import decode_attr, encode_attr
from timberframe_core.ops.definition import registry
from timberframe_core.ops.definition.opdef import Attrs, OpDef
from timberframe_core.plugin.contracts import CancelToken, Device
from timberframe_core.plugin.host_ops import HostCall, HostOp, find_host_op
from timberframe_core.runtime.resources import ResourceStore

if TYPE_CHECKING:
    from timberframe_core.compiler.ir import Node


class Elsewhere(NamedTuple):
    """Stands in a session's store for a resource of a worker. device: of the worker; container: that it is in there."""

    device: Device
    container: str


def write_node(node: Node, op: HostOp, handles: Sequence[str], made: str, container: str) -> bytes:
    """A node as `carry_out` reads it. handles, made: keys of the resources, which are in the container."""
    message = messages.NodeDef(op=node.op.name, name=node.name)
    for key, attr in node.op.attrs.items():
        message.attr[key].CopyFrom(encode_attr(node.attrs[key], attr.kind))
    hidden = {
        "_module": (op.run.__module__, "string"),
        "_handles": (list(handles), "list(string)"),
        "_made": (made, "string"),
        "_container": (container, "string"),
        "_dtypes": ([x.dtype for x in node.outputs][made != "" :], "list(type)"),
    }
    for key, (value, kind) in hidden.items():
        message.attr[key].CopyFrom(encode_attr(value, kind))
    return bytes(message.SerializeToString())


def carry_out(
    data: bytes,
    inputs: Sequence[np.ndarray],
    store: Callable[[str], ResourceStore],
    device: Device,
    cancel: CancelToken,
) -> list[np.ndarray]:
    """Carries out a node with the resources of this process; store: by the name of a container."""
    message = messages.NodeDef()
    message.ParseFromString(data)
    definition = registry.get(message.op)
    found = find_host_op(message.op)
    if found is None:
        import_module(message.attr["_module"].s.decode())  # which registers it
        found = find_host_op(message.op)
    if found is None:
        raise UnimplementedError(f"{message.op} '{message.name}': no host op is registered for it in this process")
    call = _SharedCall(message, definition, inputs, store, device, cancel)
    return [
        np.asarray(x, None if dtype.numpy.hasobject else dtype.numpy)
        for x, dtype in zip(found.run(call), call.dtypes, strict=True)
    ]


class _SharedCall(HostCall):
    """A HostCall of a node that came from another process."""

    def __init__(
        self,
        message: Any,
        definition: OpDef,
        inputs: Sequence[np.ndarray],
        store: Callable[[str], ResourceStore],
        device: Device,
        cancel: CancelToken,
    ) -> None:
        self.inputs = inputs
        self._message, self._definition, self._device, self._cancel = message, definition, device, cancel
        self._store = store(message.attr["_container"].s.decode())

    @property
    def attrs(self) -> Attrs:
        where = f"of '{self.name}'"
        return {
            key: decode_attr(self._message.attr[key], attr.kind, f"attr '{key}' {where}")
            for key, attr in self._definition.attrs.items()
        }

    @property
    def device(self) -> Device:
        return self._device

    @property
    def op(self) -> str:
        return self._definition.name

    @property
    def definition(self) -> OpDef:
        return self._definition

    @property
    def name(self) -> str:
        found: str = self._message.name
        return found

    @property
    def path(self) -> str:
        return self.name

    @property
    def dtypes(self) -> list[DType]:
        return [as_dtype(number) for number in self._message.attr["_dtypes"].list.type]

    @property
    def cancel(self) -> CancelToken:
        return self._cancel

    @property
    def resources(self) -> ResourceStore:
        return self._store

    @property
    def made(self) -> str:
        found: str = self._message.attr["_made"].s.decode()
        return found

    def handle(self, index: int = 0) -> str:
        found: str = self._message.attr["_handles"].list.s[index].decode()
        return found
