"""What the compiler asks devices about nodes before they are lowered."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from timberframe_core.compiler.ir import Node, Output
from timberframe_core.graph.operation import Operation
from timberframe_core.ops.definition.opdef import OpDef
from timberframe_core.plugin.contracts import UNKNOWN_RANK, Device, KernelNode, Support, Value

if TYPE_CHECKING:
    from timberframe_core.compiler.specialise import Facts


def refused(answer: Support) -> str | None:
    """Returns why not; None also where shapes will decide."""
    return answer if isinstance(answer, str) else None


def kernel_node(op: OpDef, name: str, attrs: Mapping[str, Any], shaped: Any, device: Device) -> KernelNode:
    """Returns the node as a device's `supports` sees it; see KernelNode.placing."""
    held = attrs.get("dtype", attrs.get("T")) if op.reads or op.updates else None  # of the handles' variables

    def value(i: int, x: Any) -> Value:
        known = None if x.dtype.name == "resource" else x.static_shape
        shape = UNKNOWN_RANK if known is None else tuple(-1 if d is None else d for d in known)
        dtype = held if x.dtype.name == "resource" and held is not None else x.dtype
        return Value(i, dtype.numpy, shape, "temp")

    inputs = [value(i, x) for i, x in enumerate(shaped.inputs)]
    outputs = [value(len(inputs) + i, x) for i, x in enumerate(shaped.outputs)]
    return KernelNode(op.name, name, attrs, inputs, outputs, device, shaped.where, placing=True)


def support(node: Node | Operation, device: Device) -> Support:
    """Returns what a device, which need not be the node's own, says of a node before its shapes are known."""
    op = node.op if isinstance(node, Node) else node.op_def
    return device.supports(kernel_node(op, node.name, node.attrs, node, device))


def has_kernel(node: Node) -> bool:
    """Returns whether the device of a node that a pass made can run it, whatever the shapes will be."""
    assert node.device is not None
    return support(node, node.device) is None


def bound_node(node: Node, facts: Facts, device: Device) -> KernelNode:
    """Returns the node as a device gets it when it compiles a cluster, all shapes being known."""

    def value(i: int, x: Output) -> Value:
        known = facts.values.get(x)
        return Value(i, x.dtype.numpy, facts.shapes[x], "temp" if known is None else "const", known)

    inputs = [value(i, x) for i, x in enumerate(node.inputs)]
    outputs = [value(len(inputs) + i, x) for i, x in enumerate(node.outputs)]
    return KernelNode(node.op.name, node.name, node.attrs, inputs, outputs, device, node.where)
