"""Resources of a worker that all sessions on it share: queues and accumulators with a `shared_name`.

Their ops are carried out where they are: a node goes there as a NodeDef, beside its inputs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from timberframe_core.errors import UnimplementedError
from timberframe_core.graphdef import messages
from timberframe_core.graphdef.attributes import encode_attr
from timberframe_core.ops.definition import registry
from timberframe_core.plugin.contracts import CancelToken, Device
from timberframe_core.plugin.host_ops import HostOp, find_host_op
from timberframe_core.runtime.host_calls import WorkerCall
from timberframe_core.runtime.resources import ResourceStore

if TYPE_CHECKING:
    from timberframe_core.compiler.ir import Node


class Elsewhere(NamedTuple):
    """Stands in a session's store for a resource of a worker. device: of the worker; container: that it is in there."""

    device: Device
    container: str


def write_node(node: Node, op: HostOp, handles: Sequence[str], made: str, container: str) -> bytes:
    """Returns a node as `carry_out` reads it. handles, made: keys of the resources, which are in the container."""
    message = messages.NodeDef(op=node.op.name, name=node.name)
    for key, attr in node.op.attrs.items():
        message.attr[key].CopyFrom(encode_attr(node.attrs[key], attr.kind))
    hidden = {
        "_module": (op.run.__module__, "string"),
        "_handles": (list(handles), "list(string)"),
        "_made": (made, "string"),
        "_container": (container, "string"),
        "_where": (node.where or "", "string"),
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
    call = WorkerCall(message, definition, inputs, store, device, cancel)
    return [
        np.asarray(x, None if dtype.numpy.hasobject else dtype.numpy)
        for x, dtype in zip(found.run(call), call.dtypes, strict=True)
    ]
