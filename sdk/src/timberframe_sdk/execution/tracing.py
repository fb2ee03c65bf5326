"""What a trace says of a node besides its time: the kernel that ran, the bytes it moved, the operations it did."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from timberframe_core.ops.definition import registry
from timberframe_core.ops.definition.work import floating_operations
from timberframe_core.plugin.contracts import KernelDef, KernelNode, Value
from timberframe_core.plugin.nodes import passed_inputs


def work_of(node: KernelNode, kernel: KernelDef | None = None) -> dict[str, Any]:
    """Details of a trace event: `kernel` (module and name), `bytes` read and written, `flops` where they follow.

    flops: floating operations by the op's definition: a multiplication and an addition for each product that is summed,
    one for each element of elementwise ops; of a kernel that covers several nodes, the sum of theirs.
    """
    details: dict[str, Any] = {"op": node.op}
    if kernel is not None:
        details["kernel"] = kernel.origin()
    details["bytes"] = sum(v.nbytes for v in (*(node.inputs[i] for i in passed_inputs(node)), *node.outputs))
    covered = node.inner[0].nodes if kernel is not None and kernel.covers else (node,)
    flops = sum(map(_flops, covered))
    if flops:
        details["flops"] = flops
    return details


def _flops(node: KernelNode) -> int:
    op = registry.find(node.op)
    written = sum(math.prod(v.shape) for v in node.outputs if v.dtype.kind in "fcV")
    return 0 if op is None else floating_operations(op, node.attrs, [_stand_in(v) for v in node.inputs], written)


def _stand_in(value: Value) -> np.ndarray:
    """Returns an array of the value's shape that needs no memory; the host's value where it is known."""
    if value.kind == "const" and value.constant is not None:
        return np.asarray(value.constant)
    return np.broadcast_to(np.zeros((), value.dtype), value.shape)
