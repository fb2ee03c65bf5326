"""Pass `fuse`: chains of elementwise nodes of a cluster become one node, which reads and writes memory once.

What a fused node is, and how a device says what it can fuse: `timberframe_core.plugin.fusion`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from timberframe_core.compiler.passes.rewriter import ClusterRewriter
from timberframe_core.plugin.contracts import Cluster, KernelNode, Value
from timberframe_core.plugin.fusion import FUSED, Fusion, is_elementwise, merged_dims, reduction
from timberframe_core.plugin.passes import Pass

_MOST_NODES = 32


@dataclass
class _Group:
    """Nodes that will be one.

    members: bit mask of this group and of those merged into it; before: that of the groups that it depends on.
    """

    nodes: list[KernelNode]
    shape: tuple[int, ...]
    members: int
    before: int = 0
    inputs: dict[int, Value] = field(default_factory=dict)


def run(rewriter: ClusterRewriter) -> None:
    """Fuses elementwise nodes as far as the device can and no path leaves a group and returns to it."""
    fusion = rewriter.device.fusion
    if fusion is None:
        return
    for group in _Grouping(rewriter, fusion).groups():
        rewriter.substitute(group.nodes, _fused(group, rewriter))


class _Grouping:
    """One walk over the nodes in order, which puts each into a group of its producers where that closes no cycle."""

    def __init__(self, rewriter: ClusterRewriter, fusion: Fusion) -> None:
        self.rewriter = rewriter
        self.fusion = fusion
        self.written = {u.new for u in rewriter.cluster.updates}  # updates stay last, where they may work in place
        self.made_in: dict[int, _Group] = {}
        self.before: dict[int, int] = {}
        self.all: list[_Group] = []

    def groups(self) -> list[_Group]:
        for node in self.rewriter.nodes:
            if self._is_candidate(node):
                self._assign(node)
            else:
                before = self._before(node, ())
                for value in node.outputs:
                    self.before[value.id] = before
        alive = {id(g): g for g in self.made_in.values()}
        self._add_reductions()
        return [g for g in alive.values() if len(g.nodes) > 1]

    def _add_reductions(self) -> None:
        """Ends groups by the reductions that alone read their results. No path leaves such a group but from its end."""
        for node in self.rewriter.nodes:
            group = self.made_in.get(node.inputs[0].id) if reduction(node) else None
            if group is None or node.inputs[1].kind != "const" or node.outputs[0] in self.written:
                continue
            allowed = {id(n) for n in (*group.nodes, node)}
            if not any(self._is_read_outside(n.outputs[0], allowed) for n in group.nodes) and self.fusion.reduces(node):
                group.nodes.append(node)

    def _is_read_outside(self, value: Value, allowed: set[int]) -> bool:
        return self.rewriter.is_result(value) or any(id(n) not in allowed for n in self.rewriter.readers(value))

    def _is_candidate(self, node: KernelNode) -> bool:
        if not is_elementwise(node) or node.outputs[0] in self.written or not node.outputs[0].size:
            return False
        if any(v.dynamic or v.dtype.hasobject for v in (*node.inputs, *node.outputs)):
            return False
        return self.fusion.accepts(node)

    def _before(self, node: KernelNode, inside: Sequence[_Group]) -> int:
        """Returns the groups that a node depends on at once, apart from values made in the groups `inside`."""
        mask = 0
        for value in node.inputs:
            group = self.made_in.get(value.id)
            if group is None:
                mask |= self.before.get(value.id, 0)
            elif not any(group is g for g in inside):
                mask |= group.members
        return mask

    def _all_before(self, mask: int) -> int:
        """Returns these groups and all that they depend on by now: groups go on growing after
        others have read from them.
        """
        known, fresh = mask, mask
        while fresh:
            lowest = fresh & -fresh
            fresh &= ~lowest
            added = self.all[lowest.bit_length() - 1].before & ~known
            known |= added
            fresh |= added
        return known

    def _assign(self, node: KernelNode) -> None:
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
        self.made_in[node.outputs[0].id] = group

    def _fits(self, node: KernelNode, groups: Sequence[_Group]) -> bool:
        """Returns whether the node and these groups are few enough nodes, and their operands
        walk far enough at a time.
        """
        if sum(len(g.nodes) for g in groups) >= _MOST_NODES:
            return False
        shapes = {v.shape for v in node.inputs} | {v.shape for g in groups for v in g.inputs.values()}
        dims = merged_dims(sorted(shapes), groups[0].shape)
        return not dims or dims[0][0] >= self.fusion.run


def _fused(group: _Group, rewriter: ClusterRewriter) -> KernelNode:
    made = [n.outputs[0] for n in group.nodes]
    ids = {v.id for v in made}
    own = {id(n) for n in group.nodes}
    inputs = [v for v in group.inputs.values() if v.id not in ids]
    read = [v for v in made if rewriter.is_result(v) or any(id(n) not in own for n in rewriter.readers(v))]
    outputs = read or made[-1:]  # a gradient may leave results that nothing reads
    last = group.nodes[-1]
    inner = Cluster(last.device, list(group.nodes), inputs, outputs)
    return KernelNode(FUSED, last.name, {}, inputs, outputs, last.device, last.where, (inner,))


FUSE = Pass("fuse", "cluster", run, "runs chains of elementwise nodes as one, where the device can", ("cover",))
