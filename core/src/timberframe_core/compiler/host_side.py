"""What stays in the host's memory: small integers that the host has anyway, and what only the host can hold."""

from __future__ import annotations

import math

from timberframe_core.compiler.ir import VARIABLE_ACCESSES, Node, Output
from timberframe_core.dtypes import BY_NAME, DType
from timberframe_core.plugin.contracts import Device
from timberframe_core.shapes import is_static

SMALL_ELEMENTS = 64
"""Most elements of a tensor for which the host is quicker than a copy; TensorFlow pins as many to it."""

_WHOLE_NUMBERS = frozenset({"int32", "int64", "bool"})


def is_small(x: Output) -> bool:
    """Whether the tensor is known to have few elements before anything is fed."""
    shape = x.static_shape
    return is_static(shape) and math.prod(d or 0 for d in shape or ()) <= SMALL_ELEMENTS


def follows_from_shapes(node: Node) -> bool:
    """Whether planning can compute the node since it computes its inputs anyway, so that no device need run it."""
    if not node.op.total_value or node.control or node.after or not all(map(is_small, node.outputs)):
        return False
    if any(x.dtype.name not in _WHOLE_NUMBERS for x in node.inputs):
        return False
    inputs = [x.node for x in node.inputs if x.node.op.role != "constant" or x.node.feed]
    return bool(inputs) and all(n.host_value for n in inputs)


def stays_on_host(node: Node) -> bool:
    """Whether a node that nobody placed is cheaper on the host: it is small, and the host has all that it needs.

    So are integers, which steer more often than they count; numbers only if the host made one of them, since they may
    as well go to the device with their reader.
    """
    if not node.inputs or not node.outputs or node.bodies or node.on_lists or node.op.stateful:
        return False
    if not all(map(is_small, node.outputs)) or not all(_on_host(x) for x in node.inputs):
        return False
    integers = all(x.dtype.name in _WHOLE_NUMBERS for x in node.outputs)
    return integers or any(x.node.device is not None for x in node.inputs)


def _on_host(x: Output) -> bool:
    node = x.node
    if node.feed or node.host_value or node.op.role == "constant":
        return is_small(x)
    return node.device is not None and node.device.host_memory


def cannot_hold(node: Node, device: Device) -> str | None:
    """Why the device's memory cannot hold what the node works on; None if it can."""
    if device.host_memory or node.bodies or node.on_lists or node.op.on_host:
        return None
    dtypes = {x.dtype.base_dtype for x in (*node.inputs, *node.outputs)}
    kept = node.op.role == "variable" or node.op.role in VARIABLE_ACCESSES
    declared = node.attrs.get("dtype")
    if kept and isinstance(declared, DType):
        dtypes.add(declared)
    if BY_NAME["string"] in dtypes:
        return "strings live in the host's memory only"
    held = device.attributes.dtypes
    if kept and held and isinstance(declared, DType) and declared.name not in held:
        return f"the device does not hold {declared.name}"
    return None
