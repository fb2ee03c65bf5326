"""Facts about kernel nodes that every device needs."""

from __future__ import annotations

from functools import lru_cache

from timberframe_core.graph.inference import arg_ranges
from timberframe_core.ops.definition import registry
from timberframe_core.ops.definition.opdef import Role
from timberframe_core.plugin.contracts import KernelNode

UNIT_KERNELS = frozenset({"Identity"})
"""Ops that the compiler itself inserts (a copy of a tensor): every device runs them, with its own copy if need be."""


@lru_cache(maxsize=4096)
def role(op: str) -> Role | None:
    """Returns the role of an op, such as "loop" for those that run their `inner` clusters as While does."""
    definition = registry.find(op)
    return None if definition is None else definition.role


@lru_cache(maxsize=4096)
def _positions(op: str, count: int) -> tuple[int, ...] | None:
    """Flat positions without the `shape` inputs, for ops without list inputs."""
    definition = registry.find(op)
    if definition is None or not definition.shape_inputs:
        return tuple(range(count))
    if any(a.is_list for a in definition.inputs):
        return None
    return tuple(i for i, a in enumerate(definition.inputs) if a.name not in definition.shape_inputs)


def passed_inputs(node: KernelNode) -> tuple[int, ...]:
    """Returns positions of the inputs that a launcher receives: all but the op's `shape` inputs."""
    positions = _positions(node.op, len(node.inputs))
    if positions is not None:
        return positions
    definition = registry.get(node.op)
    ranges = arg_ranges(definition.inputs, node.attrs)
    planned = {i for name in definition.shape_inputs for i in ranges[name]}
    return tuple(i for i in range(len(node.inputs)) if i not in planned)
