"""Stages: numbers nodes so that nodes of one device and one depth form a convex cluster.

A node's depth goes up where a tensor crosses devices, where a shape becomes known only by running a kernel, and where
planning needs a value that must be computed first. So no path leaves a cluster and comes back, and each cluster's
shapes are known before it starts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from timberframe_core.compiler.ir import Node, Output, Program
from timberframe_core.compiler.planned_values import planned_inputs
from timberframe_core.plugin.contracts import Device
from timberframe_core.plugin.host_ops import find_host_op
from timberframe_core.shapes import is_static

_GIVEN = frozenset({"constant", "variable"})
"""Roles of ops that need nothing but what planning knows."""

_DRIVEN = frozenset({"inspect_variable", "destroy_variable"})
"""Roles of ops that the executor carries out."""

_LISTS = object()  # where all nodes are that work on lists

_Home = Any  # the device of a node, _LISTS, or the node itself where the executor drives it alone


@dataclass
class Stage:
    """One cluster to be: nodes of one device and depth, or what the executor does: one node, or several on lists.

    level: depth at which all its shapes are known; 0 means with those of the feeds. driven: the executor carries out
    the nodes itself. outputs: what others need from it.
    sends: the part of that which leaves its device, with the device that it goes to (None: the host, to plan or for an
    op that the executor carries out there).
    """

    device: Device
    depth: int
    nodes: list[Node]
    level: int = 0
    driven: bool = False
    outputs: list[Output] = field(default_factory=list)
    sends: list[tuple[Output, Device | None]] = field(default_factory=list)


@dataclass(frozen=True)
class Schedule:
    """The stages in running order, which never change: where other ones are needed, another schedule is made.

    inference[k]: nodes whose shapes (and host values) are found before depth k runs. host_feeds: feeds whose values
    planning needs. fetched_values: for each depth, computed values that planning needs. runs_bodies: the executor
    drives a loop or branch. endless: nobody knows a limit for the time that a node takes.
    """

    stages: Sequence[Stage]
    inference: Mapping[int, Sequence[Node]]
    host_feeds: Sequence[Output]
    fetched_values: Mapping[int, Sequence[Output]]
    runs_bodies: bool
    endless: bool

    @cached_property
    def static(self) -> bool:
        """Whether all shapes are known with those of the feeds."""
        return not any(self.inference.keys() - {0}) and all(s.level == 0 for s in self.stages)

    @cached_property
    def one_call(self) -> bool:
        """Whether one call of one device may compute everything, in a time that nobody would cut short."""
        return self.static and len(self.stages) == 1 and not self.host_feeds and not self.endless

    @cached_property
    def deeper_at(self) -> frozenset[int]:
        """The depths at which shapes or values are found out."""
        return frozenset({*self.inference, *self.fetched_values, *(s.level for s in self.stages)} - {0})

    @cached_property
    def depths(self) -> Sequence[int]:
        """All depths, in order."""
        return sorted({s.depth for s in self.stages} | self.deeper_at | {0})


def make_schedule(program: Program, needed: set[Output]) -> Schedule:
    """Returns numbers the nodes and groups them into stages."""
    numbering = _Numbering(program, needed)
    for node in program.nodes:
        numbering.add(node)
    stages = _split_for_overlap(_group(program, numbering), numbering)
    _find_outputs(program, stages)
    _find_sends(stages, numbering.fetched)
    host_feeds = [f for f in program.feeds if f in needed]
    runs_bodies = any(n.bodies for s in stages if s.driven for n in s.nodes)
    endless = any(n.endless for n in program.nodes)
    return Schedule(stages, numbering.inference, host_feeds, numbering.fetched, runs_bodies, endless)


class _Numbering:
    """Depths of nodes, and at which depth the shapes (`shape_at`) and host values (`value_at`) of outputs are known."""

    def __init__(self, program: Program, needed: set[Output]) -> None:
        self.needed = needed
        self.depth: dict[Node, int] = {}
        self.level: dict[Node, int] = {}
        self.shape_at: dict[Output, int] = {}
        self.value_at: dict[Output, int] = {}
        self.barrier: dict[Node, dict[_Home, int]] = {}
        self.inference: dict[int, list[Node]] = {}
        self.fetched: dict[int, list[Output]] = {}

    def add(self, node: Node) -> None:
        if node.feed or node.op.role in _GIVEN:
            for x in node.outputs:
                self.shape_at[x] = 0
                if not node.feed or x in self.needed:
                    self.value_at[x] = 0
            if not node.feed:
                self.inference.setdefault(0, []).append(node)
            return
        if node.op.role in _DRIVEN or node.op.on_host:
            node.host_driven = True
        if node.op.role == "no_op":
            self._add_barrier(node)
        elif node.host_value:
            self._add_host_value(node)
        else:
            self._add_kernel(node)

    def _add_barrier(self, node: Node) -> None:
        """Adds a NoOp, which runs nothing: who waits for it waits for what it waits for."""
        reached: dict[_Home, int] = {}
        for before in (*node.control, *node.after):
            if before in self.barrier:
                homes = self.barrier[before]
            elif before in self.depth:
                homes = {home(before): self.depth[before]}
            else:
                continue
            for h, depth in homes.items():
                reached[h] = max(reached.get(h, 0), depth)
        self.barrier[node] = reached

    def _when_value(self, x: Output) -> int:
        """Returns the depth at which the host value of x is there; a computed one is fetched after its stage."""
        at = self.value_at.get(x)
        if at is None:
            at = self.value_at[x] = (self.depth[x.node] + 1) if x.node in self.depth else 0
            self.fetched.setdefault(at, []).append(x)
        return at

    def _add_host_value(self, node: Node) -> None:
        if node.op.shape_only:
            at = max((self.shape_at[x] for x in node.inputs), default=0)
        else:
            at = max((max(self._when_value(x), self.shape_at[x]) for x in node.inputs), default=0)
        for x in node.outputs:
            self.shape_at[x] = self.value_at[x] = at
        self.inference.setdefault(at, []).append(node)

    def _add_kernel(self, node: Node) -> None:
        if node.bodies and not node.host_driven and any(self.shape_at[x] for x in node.inputs):
            # Whether one kernel node can do it would show too late, in the middle of a run.
            node.give_to_executor("the shapes of its inputs are known only when other nodes have run")
        mine, depth, level = home(node), 0, 0
        for x in node.inputs:
            if x.node.host_value or x.node.op.role in _GIVEN or x.node.feed:
                level = max(level, self.shape_at[x])
                depth = max(depth, self.value_at.get(x, 0))
            else:
                level = max(level, self.shape_at[x])
                depth = max(depth, self.depth[x.node] + (home(x.node) is not mine))
        for x in planned_inputs(node):
            level = max(level, self._when_value(x))
        if level and node.on_lists and not all(is_static(x.static_shape) for x in node.outputs):
            node.late = True  # else binding would fail for want of its shapes, in the middle of a run
        depth = max(depth, level)
        for before in (*node.control, *node.after):
            depth = max(depth, self._after(before, mine))
        known = level
        if (node.host_driven and not has_static_shapes(node)) or node.late or node.op.bound is not None:
            known = depth + 1
        for x in node.outputs:
            self.shape_at[x] = known
        self.depth[node] = node.depth = depth
        self.level[node] = level
        self.inference.setdefault(level, []).append(node)

    def _after(self, before: Node, mine: _Home) -> int:
        """Returns the least depth of a node at `mine` that must run after `before`."""
        if before in self.depth:
            return self.depth[before] + (home(before) is not mine)
        return max((d + (h is not mine) for h, d in self.barrier.get(before, {}).items()), default=0)


def has_static_shapes(node: Node) -> bool:
    """Returns whether the graph says which shapes a host op gives, so that planning need not wait for it to run."""
    return node.op.on_host and all(is_static(x.static_shape) for x in node.outputs)


def home(node: Node) -> _Home:
    """Returns what nodes of one cluster have in common."""
    return _LISTS if node.on_lists else node if node.host_driven else node.device


def _group(program: Program, numbering: _Numbering) -> list[Stage]:
    groups: dict[tuple[int, int], Stage] = {}
    for node in program.nodes:
        depth = numbering.depth.get(node)
        if depth is None:
            continue
        assert node.device is not None
        stage = groups.get((depth, id(home(node))))
        if stage is None:
            stage = groups[depth, id(home(node))] = Stage(node.device, depth, [])
            stage.driven = node.host_driven or node.on_lists
        stage.nodes.append(node)
        stage.level = max(stage.level, numbering.level[node])
    return sorted(groups.values(), key=lambda s: s.depth)


def _split_for_overlap(stages: list[Stage], numbering: _Numbering) -> list[Stage]:
    """Cuts what another device waits for off the front of each stage, so that the two can overlap."""
    if len({id(s.device) for s in stages}) < 2:
        return stages
    crossing: set[Node] = set()
    for stage in stages:
        for node in stage.nodes:
            crossing.update(x.node for x in node.inputs if home(x.node) is not home(node))
    result = []
    for stage in stages:
        urgent: set[Node] = set()
        own = set(stage.nodes)
        for node in reversed(stage.nodes):
            if node in urgent or node in crossing:
                urgent.add(node)
                urgent.update(x.node for x in node.inputs if x.node in own)
                urgent.update(c for c in (*node.control, *node.after) if c in own)
        first = [n for n in stage.nodes if n in urgent]
        rest = [n for n in stage.nodes if n not in urgent]
        for nodes in (first, rest):
            if nodes:
                level = max(numbering.level[n] for n in nodes)
                result.append(Stage(stage.device, stage.depth, nodes, level, stage.driven))
    return result


def _find_outputs(program: Program, stages: list[Stage]) -> None:
    """Lists, for each stage, the values that other stages, fetches and planning read."""
    stage_of = {n: s for s in stages for n in s.nodes}
    outputs: dict[Output, None] = {}
    for node in program.nodes:
        mine = stage_of.get(node)
        for x in node.inputs:
            if x.node in stage_of and stage_of[x.node] is not mine and _needs_array(node, x):
                outputs[x] = None
    for fetch in program.fetches:
        if isinstance(fetch, Output):
            outputs[fetch] = None
    for x in outputs:
        stage = stage_of.get(x.node)
        if stage is not None:
            stage.outputs.append(x)


def _find_sends(stages: list[Stage], fetched: dict[int, list[Output]]) -> None:
    """Lists what leaves the device of each stage, once for each device that it goes to."""
    if all(s.device is stages[0].device for s in stages) and not fetched:
        return
    stage_of = {n: s for s in stages for n in s.nodes}
    sends: dict[tuple[Output, int], tuple[Output, Device | None]] = {}
    for stage in stages:
        for node in stage.nodes:
            target = None if node.op.on_host else stage.device
            if node.host_driven and not node.op.on_host:
                continue  # its inputs stay where they are
            located = _taken_where_they_are(node)
            for i, x in enumerate(node.inputs):
                if i not in located and x.node in stage_of and stage_of[x.node].device is not target:
                    sends.setdefault((x, id(target)), (x, target))
    for x in (x for found in fetched.values() for x in found):
        sends.setdefault((x, id(None)), (x, None))
    for x, target in sends.values():
        if x.node in stage_of and not stage_of[x.node].driven:
            stage_of[x.node].sends.append((x, target))


def _taken_where_they_are(node: Node) -> frozenset[int]:
    """Returns positions of the inputs that the node's host op takes on whatever device they are."""
    host_op = find_host_op(node.op.name) if node.op.on_host else None
    return frozenset() if host_op is None else host_op.located_inputs(node.op, node.attrs)


def _needs_array(node: Node, x: Output) -> bool:
    """Returns whether a node needs an input's array: for the shape alone only where a kernel decides it."""
    return not (node.host_value and node.op.shape_only) or x.node.op.bound is not None
