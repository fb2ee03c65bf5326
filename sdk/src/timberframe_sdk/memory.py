"""The memory planner: where in one arena each intermediate tensor of a cluster lies.

Tensors that are never alive at the same time share bytes; an output takes over an input's bytes where the kernel allows
that and nobody reads the input afterwards.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from timberframe_core.plugin.contracts import Cluster, KernelNode, Memory, Value

InplacePairs = Callable[[KernelNode], Sequence[tuple[int, int]]]


@dataclass
class MemoryPlan:
    """Offsets in the arena by value id, and of workspaces by position of their node."""

    offsets: dict[int, int] = field(default_factory=dict)
    workspaces: dict[int, int] = field(default_factory=dict)
    arena: int = 0
    workspace: int = 0

    def memory(self, persistent: int = 0) -> Memory:
        """The figures that an Executable states."""
        return Memory(persistent, self.arena, self.workspace)


class _Arena:
    """Free ranges by offset; best fit, neighbours joined when they are given back."""

    def __init__(self, alignment: int) -> None:
        self.alignment = alignment
        self.free: list[tuple[int, int]] = []
        self.top = 0

    def round(self, nbytes: int) -> int:
        return max(1, -(-nbytes // self.alignment)) * self.alignment

    def take(self, nbytes: int) -> int:
        size = self.round(nbytes)
        best = -1
        for i, (_, length) in enumerate(self.free):
            if length >= size and (best < 0 or length < self.free[best][1]):
                best = i
                if length == size:
                    break
        if best >= 0:
            offset, length = self.free.pop(best)
            if length > size:
                insort(self.free, (offset + size, length - size))
            return offset
        if self.free and sum(self.free[-1]) == self.top:
            offset = self.free.pop()[0]
        else:
            offset = self.top
        self.top = offset + size
        return offset

    def give(self, offset: int, nbytes: int) -> None:
        size = self.round(nbytes)
        i = bisect_left(self.free, (offset, size))
        self.free.insert(i, (offset, size))
        if i + 1 < len(self.free) and self.free[i + 1][0] == offset + size:
            size += self.free.pop(i + 1)[1]
            self.free[i] = (offset, size)
        if i and sum(self.free[i - 1]) == offset:
            start, length = self.free[i - 1]
            self.free[i - 1 : i + 1] = [(start, length + size)]


def plan_memory(cluster: Cluster, inplace: InplacePairs, alignment: int) -> MemoryPlan:
    """Places every value that a node of the cluster makes and that does not escape it.

    inplace(node) gives the (output, input) pairs that may share memory. Values that escape (fetched outputs and new
    versions of variables) own their memory and are not in the plan, but for those with a size that only the kernel
    knows: they are made in the arena at their bound and their true part is copied out.
    """
    last = _last_uses(cluster)
    escaping = {v.id for v in cluster.outputs if not v.dynamic} | {u.new.id for u in cluster.updates}
    kept = {v.id for v in cluster.outputs if v.dynamic}
    plan, arena = MemoryPlan(), _Arena(alignment)
    offsets = plan.offsets
    for i, node in enumerate(cluster.nodes):
        taken_over: set[int] = set()
        pairs = inplace(node)
        for k, value in enumerate(node.outputs):
            if value.id in escaping:
                continue
            source = _reusable(node, k, value, pairs, last, i, offsets, kept | taken_over) if pairs else None
            if source is None:
                offsets[value.id] = arena.take(value.nbytes)
            else:
                offsets[value.id] = offsets[source.id]
                taken_over.add(source.id)
        if node.workspace_bytes:
            plan.workspaces[i] = arena.take(node.workspace_bytes)
            plan.workspace = max(plan.workspace, node.workspace_bytes)
            arena.give(plan.workspaces[i], node.workspace_bytes)
        dead = {v.id: v for v in node.inputs if last.get(v.id) == i}
        dead |= {v.id: v for v in node.outputs if v.id not in last}
        for value in dead.values():
            if value.id in offsets and value.id not in taken_over and value.id not in kept:
                arena.give(offsets[value.id], value.nbytes)
    plan.arena = arena.top
    return plan


def _last_uses(cluster: Cluster) -> dict[int, int]:
    """Position of the last node that reads each value."""
    last: dict[int, int] = {}
    for i, node in enumerate(cluster.nodes):
        for value in node.inputs:
            last[value.id] = i
    return last


def _reusable(
    node: KernelNode,
    output: int,
    value: Value,
    pairs: Sequence[tuple[int, int]],
    last: dict[int, int],
    position: int,
    offsets: dict[int, int],
    blocked: set[int],
) -> Value | None:
    """The input whose memory this output may take over."""
    for o, i in pairs:
        if o != output:
            continue
        source = node.inputs[i]
        if (
            source.id in offsets
            and source.id not in blocked
            and last[source.id] == position
            and source.nbytes == value.nbytes
            and not source.dynamic
            and not value.dynamic
            and node.inputs.count(source) == 1
        ):
            return source
    return None
