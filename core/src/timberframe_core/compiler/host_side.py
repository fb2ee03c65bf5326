"""What stays in the host's memory: small integers that the host has anyway, and what only the host can hold."""

from __future__ import annotations

import math
from collections.abc import Sequence

from timberframe_core.compiler.ir import VARIABLE_ACCESSES, Node, Output
from timberframe_core.dtypes import BY_NAME, DType
from timberframe_core.graph.inference import arg_ranges
from timberframe_core.plugin.contracts import Device
from timberframe_core.shapes import is_static

SMALL_ELEMENTS = 64
"""Most elements of a tensor for which the host is quicker than a copy; TensorFlow pins as many to it."""

_HANDLES = frozenset({"resource", "variant"})
_WHOLE_NUMBERS = frozenset({"int32", "int64", "bool"})


def is_small(x: Output) -> bool:
    """Returns whether the tensor is known to have few elements before anything is fed."""
    shape = x.static_shape
    return is_static(shape) and math.prod(d or 0 for d in shape or ()) <= SMALL_ELEMENTS


def follows_from_shapes(node: Node) -> bool:
    """Returns whether planning can compute the node since it computes its inputs anyway, so
    that no device need run it.
    """
    if not node.op.total_value or node.control or node.after or not all(map(is_small, node.outputs)):
        return False
    if any(x.dtype.name not in _WHOLE_NUMBERS for x in node.inputs):
        return False
    inputs = [x.node for x in node.inputs if x.node.op.role != "constant" or x.node.feed]
    return bool(inputs) and all(n.host_value for n in inputs)


def stays_on_host(node: Node) -> bool:
    """Returns whether a node that nobody placed is cheaper on the host: it is small, and the
    host has all that it needs.

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
    """Returns why the device's memory cannot hold what the node works on; None if it can.

    A device holds what it declares, if it declares anything. What a node is planned by stays on the host.
    """
    if node.bodies or node.on_lists or node.op.on_host:
        return None
    dtypes = {x.dtype.base_dtype for x in (*_moved_inputs(node), *node.outputs)}
    declared = node.attrs.get("dtype")
    if (node.op.role == "variable" or node.op.role in VARIABLE_ACCESSES) and isinstance(declared, DType):
        dtypes.add(declared)
    if BY_NAME["string"] in dtypes and not device.host_memory:
        return "strings live in the host's memory only"
    held = device.attributes.dtypes
    absent = [t.name for t in dtypes if not {t.name, t.numpy.name} & {*held, *_HANDLES}] if held else []
    return f"the device holds no {', '.join(sorted(absent))}; it holds {', '.join(held)}" if absent else None


def _moved_inputs(node: Node) -> Sequence[Output]:
    """Returns the inputs that a device gets, which are all but the op's `shape` inputs."""
    if not node.op.shape_inputs:
        return node.inputs
    ranges = arg_ranges(node.op.inputs, node.attrs)
    planned = {i for name in node.op.shape_inputs for i in ranges[name]}
    return [x for i, x in enumerate(node.inputs) if i not in planned]
