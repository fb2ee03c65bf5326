"""Session.explain: how a run goes, as data and as text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from timberframe_core.compiler.build import prune
from timberframe_core.compiler.ir import Node
from timberframe_core.compiler.passes.pipeline import PassReport, merged
from timberframe_core.compiler.place import Placement
from timberframe_core.compiler.plan import BoundStage, Level
from timberframe_core.compiler.stages import Schedule, Stage
from timberframe_core.graph.graph import Graph
from timberframe_core.plugin.contracts import Cluster, Device
from timberframe_core.plugin.fusion import FUSED
from timberframe_core.runtime.feeds import feed_counts, feed_tensors, flat_feeds, flat_keys
from timberframe_core.runtime.fetches import Fetches
from timberframe_core.runtime.host_steps import host_op_of
from timberframe_core.shapes import format_shape, is_static

if TYPE_CHECKING:
    from timberframe_core.runtime.runner import Runner


@dataclass(frozen=True)
class StageReport:
    """One cluster, or one node that the executor drives. Byte counts are None until its shapes are known.

    output_bytes: of its outputs, and of new versions of variables that are not written over the old ones. live_bytes:
    each node that runs, in running order, with the bytes of what nodes have made by then and others read, or the run.
    """

    device: str
    depth: int
    nodes: tuple[str, ...]
    kind: str
    receives: tuple[str, ...] = ()
    sends: tuple[str, ...] = ()
    arena_bytes: int | None = None
    workspace_bytes: int | None = None
    persistent_bytes: int | None = None
    output_bytes: int | None = None
    live_bytes: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True)
class KernelReport:
    """What runs a node of a cluster.

    kernel: module and name of the kernel's builder or of the host op, or what the device does in place of a kernel.
    plugin: the one that brought it. declined: kernels of the device that were not taken, each with the reason; those
    for several nodes are listed with the last of these. covers: the nodes that it runs, where it is one for several.
    """

    node: str
    op: str
    device: str
    kernel: str
    plugin: str = ""
    declined: tuple[str, ...] = ()
    covers: tuple[str, ...] = ()


@dataclass(frozen=True)
class LoopReport:
    """Who runs a loop or branch: a `kernel` of its device, with its bodies inside, or the `executor`, body by body.

    reason: why it is the executor; why not yet known, where `driver` is empty.
    """

    node: str
    op: str
    driver: str
    reason: str = ""


@dataclass(frozen=True)
class Explanation:
    """What the passes did, placement, stages and memory of a plan. as_dict() gives plain data, str() a report to read.

    as_svg() draws it, as_html() makes a page of it. passes: in running order; what a pass of phase `cluster` did is
    known where the shapes are, and so are the kernels. edges: (node, node that reads it, dtype and shape) between nodes
    of stages, and from what these get from outside, such as feeds and variables.
    """

    fetches: tuple[str, ...]
    placements: tuple[Placement, ...]
    stages: tuple[StageReport, ...]
    passes: tuple[PassReport, ...] = ()
    kernels: tuple[KernelReport, ...] = ()
    loops: tuple[LoopReport, ...] = ()
    host_values: tuple[str, ...] = ()
    peak_bytes: Mapping[str, int] = field(default_factory=dict)
    skipped_rewrites: tuple[str, ...] = ()
    edges: tuple[tuple[str, str, str], ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """Returns the explanation as dicts, lists, strings and numbers."""
        return asdict(self)

    def as_svg(self) -> str:
        """Returns the graph by device and cluster; what hovers over a node says why it is there and what runs it."""
        from timberframe_core.runtime.plan_picture import plan_svg

        return plan_svg(self)

    def as_html(self) -> str:
        """Returns a page that needs nothing else: the graph, memory along the run, passes, placement and kernels."""
        from timberframe_core.runtime.plan_page import plan_page

        return plan_page(self)

    def _repr_html_(self) -> str:
        """Returns what notebooks show: the graph, with the text below it."""
        from timberframe_core.runtime.plan_page import plan_fragment

        return plan_fragment(self)

    def rewritten(self, name: str) -> tuple[str, ...]:
        """Returns the nodes that the pass of this name erased or put others in place of."""
        return next((p.rewritten for p in self.passes if p.name == name), ())

    def __str__(self) -> str:
        lines = [f"plan for {', '.join(self.fetches)}", "", "stages, in running order:"]
        for i, s in enumerate(self.stages):
            lines.append(f"  {i}: {s.kind} on {s.device}: {_shortened(s.nodes)}")
            if s.receives:
                lines.append(f"     receives {_shortened(s.receives)}")
            if s.kind == "cluster" and s.arena_bytes is None:
                lines.append("     its kernels and memory are decided when its shapes are known")
            if s.arena_bytes is not None:
                lines.append(
                    f"     memory: arena {s.arena_bytes} bytes, workspace {s.workspace_bytes}, "
                    f"constants {s.persistent_bytes}, outputs {s.output_bytes}"
                )
        lines += [f"peak memory on {device}: {n} bytes" for device, n in self.peak_bytes.items()]
        if self.host_values:
            lines.append(f"computed on the host while planning: {_shortened(self.host_values)}")
        lines += self.skipped_rewrites
        lines += ["", "passes, and what they rewrote:"]
        found = {p.name: _shortened(p.rewritten) or p.failure for p in self.passes}
        lines += [f"  {name}: {what}" for name, what in found.items() if what]
        idle = [name for name, what in found.items() if not what]
        lines += [f"  nothing: {', '.join(idle)}"] if idle else []
        lines += ["", "placement:"]
        for p in self.placements:
            lines.append(f"  {p.node} ({p.op}): {p.device}, {p.reason}")
            lines += [f"     not {device}: {why}" for device, why in p.rejected if why not in p.reason]
        lines += ["", "loops and branches:"] if self.loops else []
        lines += [f"  {x.node} ({x.op}): {', '.join(filter(None, (x.driver, x.reason)))}" for x in self.loops]
        lines += ["", "kernels:"] if self.kernels else []
        for k in self.kernels:
            lines.append(f"  {k.node} ({k.op}): {k.kernel}" + (f" of plugin {k.plugin}" if k.plugin else ""))
            lines += [f"     covers {_shortened(k.covers)}"] if k.covers else []
            lines += [f"     not {why}" for why in k.declined]
        return "\n".join(lines)


def example_feeds(graph: Graph, fetches: Any, feed_dict: Mapping[Any, Any]) -> dict[Any, Any]:
    """Returns the feeds with an example for every placeholder that is missing: zeros of its static shape, or None."""
    counts = feed_counts(feed_dict)
    values = flat_feeds(counts, list(feed_dict.values())) if counts else feed_dict.values()
    feeds = dict(zip(flat_keys(feed_dict), values, strict=True))
    for op in prune(Fetches(graph, fetches).elements, feed_tensors(graph, feeds)):
        if op.op_def.role == "placeholder":
            x = op.outputs[0]
            sizes = [d for d in x.static_shape or () if d is not None]
            static = is_static(x.static_shape) and not x.dtype.numpy.hasobject
            feeds[x] = np.broadcast_to(np.zeros((), x.dtype.numpy), sizes) if static else None
    return feeds


def explain_plan(runner: Runner, feed_dict: Mapping[Any, Any]) -> Explanation:
    """Returns the report of a plan; where every feed has a value also what the shapes decide."""
    plan = runner.plan
    level: Level | None = None
    passes = list(plan.graph_passes)
    values = list(feed_dict.values())
    if all(v is not None for v in values):
        inputs = runner.located(values)
        if runner.fed is not None:
            passes += runner.fed.find(inputs).reports
        plan = runner.plan_for(inputs)
        level = plan.bind(inputs)
    schedule = plan.schedule if level is None else level.schedule
    homes = {n: s.device for s in schedule.stages for n in s.nodes}
    reports = [_report(stage, bound, homes) for stage, bound in _stages(schedule, level)]
    peak: dict[str, int] = {}
    for r in reports:
        if r.arena_bytes is not None:
            used = r.arena_bytes + (r.output_bytes or 0)
            peak[r.device] = max(peak.get(r.device, 0), used)
    return Explanation(
        tuple(e.name for e in runner.fetches.elements),
        (*plan.placements, *(level.placements if level is not None else ())),
        tuple(reports),
        merged([*passes, *plan.passes, *plan.bodies.reports, *(r for b in _bound(level) for r in b.passes)]),
        (
            *(k for bound in _bound(level) if bound.cluster is not None for k in _kernels(bound.cluster, bound.passes)),
            *_host_ops(schedule),
        ),
        tuple(_driver(n, level, passes) for n in plan.program.nodes if n.bodies),
        tuple(n.name for n in plan.program.nodes if n.host_value),
        peak,
        tuple(dict.fromkeys([*runner.plan.skipped_rewrites, *plan.skipped_rewrites])),
        _edges(stage.nodes for stage, _ in _stages(schedule, level)),
    )


def _bound(level: Level | None) -> Iterator[BoundStage]:
    """Yields the stages whose shapes are known, and the parts of those that were cut."""
    for stage in () if level is None else level.stages.values():
        yield from stage.parts or (stage,)


def _kernels(cluster: Cluster, passes: Sequence[PassReport]) -> Iterator[KernelReport]:
    """Yields what runs each node of a cluster and of the bodies in it. passes: what passes did with these."""
    for node in cluster.nodes:
        spec, registry = node.device.spec, node.device.kernels
        kernel = None if node.op == FUSED else node.device.kernel(node)
        if node.op == FUSED:
            members = [n.name for n in node.inner[0].nodes]
            what = f"one kernel for the chain {', '.join(members)}"
            yield KernelReport(node.name, node.op, spec, what, declined=_declined(members, passes))
        elif node.inner and (kernel is None or not kernel.covers):
            yield KernelReport(node.name, node.op, spec, "runs its bodies:")
            for inner in node.inner:
                yield from _kernels(inner, passes)
        else:
            origin = "the device itself" if kernel is None else kernel.origin()
            plugin = "" if kernel is None else registry.plugin_of(kernel)
            declined = (*_declined([node.name], passes), *registry.rejections(node))
            covers = tuple(n.name for n in node.inner[0].nodes) if node.inner else ()
            yield KernelReport(node.name, node.op, spec, origin, plugin, declined, covers)


def _declined(names: Sequence[str], passes: Sequence[PassReport]) -> tuple[str, ...]:
    """Returns why passes left nodes of these names as they are."""
    return tuple(why for report in passes for name, why in report.declined if name in names)


def _host_ops(schedule: Schedule) -> Iterator[KernelReport]:
    """Yields what the executor calls for nodes that no device runs."""
    for stage in schedule.stages:
        for node in stage.nodes if stage.driven else ():
            if not node.bodies:
                yield KernelReport(node.name, node.op.name, stage.device.spec, f"host op {host_op_of(node).origin()}")


def _driver(node: Node, level: Level | None, passes: Sequence[PassReport]) -> LoopReport:
    why = node.driven_because if node.host_driven else None
    if level is not None and node in level.facts.driven:
        why = level.facts.driven[node]
    if why is not None:
        declined = (f"{r.name}: {what}" for r in passes for name, what in r.declined if name == node.name)
        return LoopReport(node.name, node.op.name, "executor", "; ".join([why, *declined]))
    if level is not None:
        return LoopReport(node.name, node.op.name, "kernel")
    return LoopReport(node.name, node.op.name, "", "decided when shapes are known")


def _stages(schedule: Schedule, level: Level | None) -> Iterator[tuple[Stage, BoundStage | None]]:
    """Yields the stages in running order, those that were cut in their parts."""
    for stage in schedule.stages:
        bound = None if level is None else level.stages.get(id(stage))
        if bound is not None and bound.parts:
            yield from ((part.stage, part) for part in bound.parts)
        else:
            yield stage, bound


def _edges(stages: Iterable[Iterable[Node]]) -> tuple[tuple[str, str, str], ...]:
    """Returns what goes from node to node: each pair once."""
    found: dict[tuple[str, str], str] = {}
    for node in (n for nodes in stages for n in nodes):
        for x in node.inputs:
            text = f"{x.dtype.name} {format_shape(x.static_shape)}"
            found.setdefault((x.node.name, node.name), text)
    return tuple((source, target, text) for (source, target), text in found.items())


def _report(stage: Stage, bound: BoundStage | None, homes: Mapping[Node, Device]) -> StageReport:
    """homes: the devices of all nodes that stages have."""
    names = tuple(n.name for n in stage.nodes)
    own = set(stage.nodes)
    receives = tuple(
        dict.fromkeys(
            f"{x.name} from {homes[x.node].spec}"
            for n in stage.nodes
            for x in n.inputs
            if x.node in homes and x.node not in own
        )
    )
    sends = tuple(f"{x.name} {format_shape(x.static_shape)}" for x in stage.outputs)
    kind = "driven by the executor" if stage.driven else "cluster"
    report = StageReport(stage.device.spec, stage.depth, names, kind, receives, sends)
    if bound is None or bound.executable is None or bound.cluster is None:
        return report
    memory = bound.executable.memory
    outputs = sum(v.nbytes for v in bound.cluster.outputs)
    outputs += sum(u.new.nbytes for u in bound.cluster.updates if not u.in_place)
    return StageReport(
        stage.device.spec, stage.depth, names, kind, receives, sends,
        memory.arena, memory.workspace, memory.persistent, outputs, tuple(_live_bytes(bound.cluster)),
    )  # fmt: skip


def _live_bytes(cluster: Cluster) -> Iterator[tuple[str, int]]:
    """See `StageReport`; what a node writes over an input counts beside that."""
    last = {v.id: i for i, n in enumerate(cluster.nodes) for v in n.inputs}
    in_place = {u.new.id for u in cluster.updates if u.in_place}
    kept = {v.id for v in cluster.outputs} | {u.new.id for u in cluster.updates}
    made: dict[int, int] = {}
    live = 0
    for i, node in enumerate(cluster.nodes):
        for v in node.outputs:
            made[v.id] = 0 if v.id in in_place else v.nbytes
            live += made[v.id]
        yield node.name, live
        for v in {v.id: v for v in (*node.inputs, *node.outputs)}.values():
            if v.id in made and v.id not in kept and last.get(v.id, i) == i:
                live -= made.pop(v.id)


def _shortened(names: tuple[str, ...], most: int = 8) -> str:
    text = ", ".join(names[:most])
    return text if len(names) <= most else f"{text}, ... ({len(names)} in all)"
