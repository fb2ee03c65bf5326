"""The memory planner: where in one arena each intermediate tensor of a cluster lies.

Tensors that are never alive at the same time share bytes; an output takes over an input's bytes where the kernel allows
that and nobody reads the input afterwards. Each tensor gets the smallest free range that fits when it is made. Where
that leaves gaps, all are placed again, the largest first, as "greedy by size" of Pisarchyk and Lee does
(https://arxiv.org/abs/2001.03288), or those first that live longest.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable, Container, Sequence
from dataclasses import dataclass, field

from timberframe_core.plugin.contracts import Cluster, KernelNode, Memory, Value

InplacePairs = Callable[[KernelNode], Sequence[tuple[int, int]]]


@dataclass
class MemoryPlan:
    """Offsets in the arena by value id, and of workspaces by position of their node.

    live: bytes of the largest set of tensors and workspaces that are alive together, less than which no arena can have.
    """

    offsets: dict[int, int] = field(default_factory=dict)
    workspaces: dict[int, int] = field(default_factory=dict)
    arena: int = 0
    workspace: int = 0
    live: int = 0

    def memory(self, persistent: int = 0) -> Memory:
        """Returns the figures that an Executable states."""
        return Memory(persistent, self.arena, self.workspace)


_SLACK = 1.02
"""An arena of so many times the largest set of bytes that are alive together is as good as one without gaps."""
_MOST_PAIRS = 50_000
"""Of tensors that are alive together, in a cluster that is placed again: some 30 ms of planning."""


@dataclass(slots=True)
class _Block:
    """Memory of tensors that take it over from each other: in use from one node to another, both by position."""

    size: int
    first: int
    last: int
    offset: int = 0


_ORDERS: tuple[Callable[[_Block], tuple[int, int]], ...] = (
    lambda b: (-b.size, b.first - b.last),
    lambda b: (b.first - b.last, -b.size),
)
"""In which blocks are placed again: the first that leaves no gaps is taken, else the better one."""


class _Arena:
    """Free ranges by offset; best fit, neighbours joined when they are given back."""

    def __init__(self, alignment: int) -> None:
        self.alignment = alignment
        self.free: list[tuple[int, int]] = []
        self.blocks: list[_Block] = []
        self.top = self.used = self.live = 0

    def take(self, nbytes: int, position: int) -> _Block:
        """Memory that is in use from the node at this position on."""
        size = max(1, -(-nbytes // self.alignment)) * self.alignment
        block = _Block(size, position, position, self._take(size))
        self.blocks.append(block)
        self.used += size
        self.live = max(self.live, self.used)
        return block

    def _take(self, size: int) -> int:
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

    def give(self, block: _Block, position: int) -> None:
        """Ends the use of memory with the node at this position."""
        block.last = position
        self.used -= block.size
        offset, size = block.offset, block.size
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
    blocks: dict[int, _Block] = {}
    workspaces: dict[int, _Block] = {}
    for i, node in enumerate(cluster.nodes):
        taken_over: set[int] = set()
        pairs = inplace(node)
        for k, value in enumerate(node.outputs):
            if value.id in escaping:
                continue
            source = _reusable(node, k, value, pairs, last, i, blocks, kept | taken_over) if pairs else None
            if source is None:
                blocks[value.id] = arena.take(value.nbytes, i)
            else:
                blocks[value.id] = blocks[source.id]
                taken_over.add(source.id)
        if node.workspace_bytes:
            workspaces[i] = arena.take(node.workspace_bytes, i)
            plan.workspace = max(plan.workspace, node.workspace_bytes)
            arena.give(workspaces[i], i)
        for number in _dead(node, i, last):
            if number in blocks and number not in taken_over and number not in kept:
                arena.give(blocks[number], i)
    for number in kept & blocks.keys():
        blocks[number].last = len(cluster.nodes)
    plan.arena, plan.live = _without_gaps(arena), arena.live
    plan.offsets = {number: block.offset for number, block in blocks.items()}
    plan.workspaces = {i: block.offset for i, block in workspaces.items()}
    return plan


def _without_gaps(arena: _Arena) -> int:
    """Returns the size of the arena when its blocks, where they leave gaps, have been placed in the better order."""
    top, blocks = arena.top, arena.blocks
    together = _alive_together(blocks) if top > _SLACK * arena.live else None
    if together is None:
        return top
    for order in _ORDERS:
        keys = [(order(block), i) for i, block in enumerate(blocks)]
        offsets = _placed(blocks, [i for _, i in sorted(keys)], together)
        end = max(offset + block.size for offset, block in zip(offsets, blocks, strict=True))
        if end < top:
            top = end
            for offset, block in zip(offsets, blocks, strict=True):
                block.offset = offset
        if top <= _SLACK * arena.live:
            break
    return top


def _alive_together(blocks: Sequence[_Block]) -> list[list[int]] | None:
    """For each block the others that are in use when it is; None where these are too many to look at."""
    together: list[list[int]] = [[] for _ in blocks]
    alive: list[int] = []
    pairs = 0
    for i, block in enumerate(blocks):  # in the order of their first nodes
        alive = [k for k in alive if blocks[k].last >= block.first]
        pairs += len(alive)
        if pairs > _MOST_PAIRS:
            return None
        for k in alive:
            together[k].append(i)
        together[i] += alive
        alive.append(i)
    return together


def _placed(blocks: Sequence[_Block], order: Sequence[int], together: Sequence[Sequence[int]]) -> list[int]:
    """Offsets of the blocks: each, in this order, in the smallest gap between those placed before."""
    offsets = [-1] * len(blocks)
    for i in order:
        size, end, best, smallest = blocks[i].size, 0, -1, 0
        for offset, k in sorted((offsets[k], k) for k in together[i] if offsets[k] >= 0):
            gap = offset - end
            if gap >= size and (best < 0 or gap < smallest):
                best, smallest = end, gap
            end = max(end, offset + blocks[k].size)
        offsets[i] = end if best < 0 else best
    return offsets


def _last_uses(cluster: Cluster) -> dict[int, int]:
    """Position of the last node that reads each value."""
    last: dict[int, int] = {}
    for i, node in enumerate(cluster.nodes):
        for value in node.inputs:
            last[value.id] = i
    return last


def _dead(node: KernelNode, position: int, last: dict[int, int]) -> dict[int, None]:
    """Returns the values that nobody reads after the node at this position."""
    read = (v.id for v in node.inputs if last[v.id] == position)
    return dict.fromkeys((*read, *(v.id for v in node.outputs if v.id not in last)))


def _reusable(
    node: KernelNode,
    output: int,
    value: Value,
    pairs: Sequence[tuple[int, int]],
    last: dict[int, int],
    position: int,
    placed: Container[int],
    blocked: set[int],
) -> Value | None:
    """Returns the input whose memory this output may take over."""
    for o, i in pairs:
        if o != output:
            continue
        source = node.inputs[i]
        if (
            source.id in placed
            and source.id not in blocked
            and last[source.id] == position
            and source.nbytes == value.nbytes
            and not source.dynamic
            and not value.dynamic
            and node.inputs.count(source) == 1
        ):
            return source
    return None
