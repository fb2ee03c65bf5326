"""Fusion: chains of elementwise nodes of a cluster become one node, which reads and writes memory once.

A fused node has the op `FUSED`; its only inner cluster holds the nodes that it stands for, whose inputs and outputs
line up with its own. The last of them may be a reduction, whose result is then the only one; its axes are no input. A
device says which nodes it can fuse and runs the fused node its own way: block by block, or as generated source.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace

from timberframe_core.ops.definition import registry
from timberframe_core.ops.definition.opdef import Reduction
from timberframe_core.plugin.contracts import Cluster, KernelNode, Value

FUSED = "_Fused"

MOST_NODES = 32


def is_elementwise(node: KernelNode) -> bool:
    """Whether the node's op is elementwise: only such nodes are fused."""
    op = registry.find(node.op)
    return op is not None and op.elementwise


def reduction(node: KernelNode) -> Reduction | None:
    """How the node's op reduces its first input along axes, with which it may end a chain; None for other ops."""
    op = registry.find(node.op)
    return None if op is None else op.reduction


Dim = tuple[int, tuple[int, ...]]  # size, and each operand's stride in elements


def merged_dims(shapes: Sequence[tuple[int, ...]], out_shape: tuple[int, ...]) -> list[Dim]:
    """The dimensions of a result that operands broadcast to, innermost first, with as few as describe the walk.

    Dimensions of size 1 are left out; neighbours that all operands walk alike are one.
    """
    rank = len(out_shape)
    padded = [(1,) * (rank - len(s)) + tuple(s) for s in shapes]
    steps = [1] * len(shapes)
    dims: list[Dim] = []
    for axis in reversed(range(rank)):
        size = out_shape[axis]
        if size == 1:
            continue
        strides = tuple(0 if s[axis] == 1 else step for s, step in zip(padded, steps, strict=True))
        steps = [step * s[axis] for s, step in zip(padded, steps, strict=True)]
        if dims and all(s == t * dims[-1][0] for s, t in zip(strides, dims[-1][1], strict=True)):
            dims[-1] = dims[-1][0] * size, dims[-1][1]
        else:
            dims.append((size, strides))
    return dims


@dataclass
class _Group:
    """Nodes that will be one. members: bits of the group and those merged into it; before: of those it depends on."""

    nodes: list[KernelNode]
    shape: tuple[int, ...]
    members: int
    before: int = 0
    last: int = 0
    inputs: dict[int, Value] = field(default_factory=dict)


def fuse(
    cluster: Cluster,
    accepts: Callable[[KernelNode], bool],
    run: int = 1,
    reduces: Callable[[KernelNode], bool] = lambda node: False,
) -> Cluster:
    """The cluster with elementwise nodes fused as far as no path leaves a group and returns to it.

    accepts: whether the device can fuse a node; it is asked of elementwise nodes of fixed shape alone. run: fewest
    elements that all operands of a group walk at a time; shorter inner dimensions are not worth it to some devices.
    reduces: whether the device can end a chain with a reduction, whose axes are constant.
    """
    found = _Grouping(cluster, accepts, run).groups(reduces)
    if not found:
        return cluster
    member = {id(n): g for g in found for n in g.nodes}
    read = _read_outside(cluster, member)
    nodes: list[tuple[int, KernelNode]] = []
    for position, node in enumerate(cluster.nodes):
        group = member.get(id(node))
        if group is None:
            nodes.append((position, node))
        elif group.last == position:
            nodes.append((position, _fused(group, read)))
    return replace(cluster, nodes=_in_order(nodes))


class _Grouping:
    """One walk over the nodes in order, which puts each into a group of its producers where that closes no cycle."""

    def __init__(self, cluster: Cluster, accepts: Callable[[KernelNode], bool], run: int) -> None:
        self.cluster = cluster
        self.accepts = accepts
        self.run = run
        self.written = {id(u.new) for u in cluster.updates}  # updates stay last, where they may work in place
        self.made_in: dict[int, _Group] = {}
        self.before: dict[int, int] = {}
        self.all: list[_Group] = []

    def groups(self, reduces: Callable[[KernelNode], bool]) -> list[_Group]:
        for position, node in enumerate(self.cluster.nodes):
            if self._is_candidate(node):
                self._assign(position, node)
            else:
                before = self._before(node, ())
                for value in node.outputs:
                    self.before[value.id] = before
        alive = {id(g): g for g in self.made_in.values()}
        self._add_reductions(reduces)
        return [g for g in alive.values() if len(g.nodes) > 1]

    def _add_reductions(self, reduces: Callable[[KernelNode], bool]) -> None:
        """Ends groups by the reductions that alone read their results. No path leaves such a group but from its end."""
        readers: dict[int, list[KernelNode]] = {}
        for node in self.cluster.nodes:
            for value in {v.id: v for v in node.inputs}.values():
                readers.setdefault(value.id, []).append(node)
        fetched = {v.id for v in self.cluster.outputs} | {u.new.id for u in self.cluster.updates}
        for position, node in enumerate(self.cluster.nodes):
            group = self.made_in.get(node.inputs[0].id) if reduction(node) else None
            if group is None or node.inputs[1].kind != "const" or id(node.outputs[0]) in self.written:
                continue
            allowed = {id(n) for n in (*group.nodes, node)}
            made = [n.outputs[0].id for n in group.nodes]
            if any(i in fetched or any(id(n) not in allowed for n in readers.get(i, ())) for i in made):
                continue
            if reduces(node):
                group.nodes.append(node)
                group.last = max(group.last, position)

    def _is_candidate(self, node: KernelNode) -> bool:
        if not is_elementwise(node) or id(node.outputs[0]) in self.written or not node.outputs[0].size:
            return False
        if any(v.dynamic or v.dtype.hasobject for v in (*node.inputs, *node.outputs)):
            return False
        return self.accepts(node)

    def _before(self, node: KernelNode, inside: Sequence[_Group]) -> int:
        """The groups that a node depends on at once, apart from values made in the groups `inside`."""
        mask = 0
        for value in node.inputs:
            group = self.made_in.get(value.id)
            if group is None:
                mask |= self.before.get(value.id, 0)
            elif not any(group is g for g in inside):
                mask |= group.members
        return mask

    def _all_before(self, mask: int) -> int:
        """These groups and all that they depend on by now: groups go on growing after others have read from them."""
        known, fresh = mask, mask
        while fresh:
            lowest = fresh & -fresh
            fresh &= ~lowest
            added = self.all[lowest.bit_length() - 1].before & ~known
            known |= added
            fresh |= added
        return known

    def _assign(self, position: int, node: KernelNode) -> None:
        shape = node.outputs[0].shape
        chosen: list[_Group] = []
        for value in node.inputs:
            group = self.made_in.get(value.id)
            if group is None or group in chosen or group.shape != shape:
                continue
            trial = [*chosen, group]
            members, outside = 0, self._before(node, trial)
            for g in trial:
                members |= g.members
                outside |= g.before
            if not members & self._all_before(outside) and self._fits(node, trial):
                chosen = trial
        group = chosen[0] if chosen else _Group([], shape, 1 << len(self.all))
        if not chosen:
            self.all.append(group)
        group.before |= self._before(node, chosen)
        for other in chosen[1:]:
            group.nodes += other.nodes
            group.members |= other.members
            group.before |= other.before
            other.before = group.members  # what depends on the old group depends on the new one
            group.inputs |= other.inputs
            for made in other.nodes:
                self.made_in[made.outputs[0].id] = group
        group.nodes.append(node)
        group.inputs |= {v.id: v for v in node.inputs}
        group.last = position
        self.made_in[node.outputs[0].id] = group

    def _fits(self, node: KernelNode, groups: Sequence[_Group]) -> bool:
        """Whether the node and these groups are few enough nodes, and their operands walk far enough at a time."""
        if sum(len(g.nodes) for g in groups) >= MOST_NODES:
            return False
        shapes = {v.shape for v in node.inputs} | {v.shape for g in groups for v in g.inputs.values()}
        dims = merged_dims(sorted(shapes), groups[0].shape)
        return not dims or dims[0][0] >= self.run


def _read_outside(cluster: Cluster, member: dict[int, _Group]) -> set[int]:
    """Ids of the values that are read outside the group that makes them."""
    made_in = {n.outputs[0].id: member[id(n)] for n in cluster.nodes if id(n) in member}
    read = {v.id for v in cluster.outputs} | {u.new.id for u in cluster.updates}
    for node in cluster.nodes:
        own = member.get(id(node))
        read |= {v.id for v in node.inputs if made_in.get(v.id) is not own}
    return read


def _fused(group: _Group, read: set[int]) -> KernelNode:
    made = [n.outputs[0] for n in group.nodes]
    ids = {v.id for v in made}
    inputs = [v for v in group.inputs.values() if v.id not in ids]
    outputs = [v for v in made if v.id in read] or made[-1:]  # a gradient may leave results that nothing reads
    last = group.nodes[-1]
    inner = Cluster(last.device, list(group.nodes), inputs, outputs)
    return KernelNode(FUSED, last.name, {}, inputs, outputs, last.device, last.where, (inner,))


def _in_order(nodes: Iterable[tuple[int, KernelNode]]) -> list[KernelNode]:
    """The nodes, each after what it reads, and otherwise by position."""
    listed = list(nodes)
    maker = {v.id: i for i, (_, n) in enumerate(listed) for v in n.outputs}
    waits = [len({maker[v.id] for v in n.inputs if v.id in maker}) for _, n in listed]
    readers: list[list[int]] = [[] for _ in listed]
    for i, (_, node) in enumerate(listed):
        for before in {maker[v.id] for v in node.inputs if v.id in maker}:
            readers[before].append(i)
    ready = [i for i, count in enumerate(waits) if not count]  # indices rise with positions
    ordered = []
    while ready:
        i = heapq.heappop(ready)
        ordered.append(listed[i][1])
        for reader in readers[i]:
            waits[reader] -= 1
            if not waits[reader]:
                heapq.heappush(ready, reader)
    return ordered
