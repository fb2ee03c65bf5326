"""Plan: how one set of fetches and feeds runs; made once without shapes, then bound to each set of shapes."""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any

import numpy as np

from timberframe_core.compiler.bodies import Bodies
from timberframe_core.compiler.build import Rewrite
from timberframe_core.compiler.ir import Node, Output, Program
from timberframe_core.compiler.kept import Kept
from timberframe_core.compiler.lower import Variables, lower_stage
from timberframe_core.compiler.passes.pipeline import PassReport, Pipeline
from timberframe_core.compiler.place import Placement, Placer
from timberframe_core.compiler.place_bound import joints, place_declined, split
from timberframe_core.compiler.specialise import Facts, NeedsDriverError, infer, located_on
from timberframe_core.compiler.stages import Schedule, Stage, make_schedule
from timberframe_core.dtypes import variant
from timberframe_core.errors import InvalidArgumentError, OpError, ResourceExhaustedError
from timberframe_core.fallback import failures_noted, report_failure
from timberframe_core.graph.growth import INITIAL_SHAPE
from timberframe_core.plugin.contracts import Array, Cluster, Device, Executable
from timberframe_core.plugin.device_defaults import DeviceDefaults
from timberframe_core.shapes import format_shape, is_static

_HERE = DeviceDefaults.incarnation
_BOUND_PLANS = 64  # shapes that one plan is kept for, whatever they take
_BOUND_BYTES = 32 << 20  # what these and further shapes may take
_NODE_BYTES = 4096  # Python's objects for a node with its shapes, about
_CHILDREN = 16  # outcomes of one data-dependent shape that are kept

Located = tuple[Array, "Device | None"]  # an array and its device; None is a host array


@dataclass
class BoundStage:
    """A stage with its shapes: an executable, or the nodes that the executor carries out."""

    stage: Stage
    device: Device
    inputs: list[Output]
    outputs: list[Output]
    executable: Executable | None = None
    cluster: Cluster | None = None
    nodes: list[Node] = field(default_factory=list)
    parts: list[BoundStage] = field(default_factory=list)
    """Where nodes were declined for these shapes: the stage in parts, on other devices or driven, run in order."""
    passes: list[PassReport] = field(default_factory=list)


@dataclass
class Level:
    """What is bound once the shapes of one depth are known; `children` by the shapes and values that running gave.

    schedule: the stages that it is for, whatever schedule the plan makes for others meanwhile. devices: those that a
    run of it works on, as far as it is known.
    """

    facts: Facts
    schedule: Schedule
    devices: list[Device]
    stages: dict[int, BoundStage] = field(default_factory=dict)
    children: dict[Any, Level] = field(default_factory=dict)
    placements: list[Placement] = field(default_factory=list)
    """Of nodes that their devices declined for these shapes."""
    overlaps: bool | None = None  # whether stages gain from threads, found out by the first run
    direct: tuple[Callable[..., Any] | None] | None = None
    """The call that skips the executor, or that there is none; None until that is found out."""

    @cached_property
    def asynchronous(self) -> list[Device]:
        """The devices that may still be at work when all stages have run."""
        return [d for d in self.devices if d.asynchronous]

    @property
    def nbytes(self) -> int:
        """About how much memory it keeps: that of its executables, and Python's objects for its nodes."""
        bound = [part for stage in self.stages.values() for part in stage.parts or (stage,)]
        memories = [b.executable.memory for b in bound if b.executable is not None]
        nodes = sum(len(b.stage.nodes) for b in bound)
        return sum(m.persistent + m.arena for m in memories) + _NODE_BYTES * (nodes + len(self.facts.shapes))

    @property
    def only_stage(self) -> BoundStage:
        """The one stage of a schedule that has one."""
        (stage,) = self.schedule.stages
        return self.stages[id(stage)]


class Plan:
    """A program, placed and cut into stages.

    bind() gives its executables for the shapes of some feeds, and keeps them within a bound. build: makes the program,
    given what rewrites graphs. scope: which body it is, by `body_scope`; "" for what a Session is asked to run.
    """

    def __init__(
        self,
        build: Callable[[Rewrite], Program],
        placer: Placer,
        variables: Variables,
        pipeline: Pipeline,
        scope: str = "",
    ) -> None:
        self.variables = variables
        self.scope = scope
        self.placements: list[Placement] = []
        self.graph_passes: list[PassReport] = []
        """What the passes did that see the graph."""
        self.passes: list[PassReport] = []
        """What the passes did that see the whole program."""
        self.skipped_rewrites: list[str] = []
        """Rewrites that failed, and why."""
        self._lock = threading.RLock()
        self._bound: Kept[Any, Level] = Kept(_BOUND_PLANS, _BOUND_BYTES)
        self._placer = placer
        self._pipeline = pipeline
        self.bodies = Bodies(pipeline, placer.place_body)
        with failures_noted(self.skipped_rewrites):
            self.program = build(partial(pipeline.rewrite_graph, reports=self.graph_passes))
            self._prepare(placer)

    @property
    def feeds(self) -> list[Output]:
        return self.program.feeds

    def _prepare(self, placer: Placer) -> None:
        program = self.program
        _check_fed(program)

        def place(_: Program) -> None:
            self.placements = placer.place(program, self._homes())

        self._needed = self._pipeline.prepare(program, place, self.passes)
        self._make_variables()
        self.results = [f for f in program.fetches if isinstance(f, Output)]
        self.schedule: Schedule = make_schedule(program, self._needed)
        """The stages for shapes that are bound from now on."""
        named = {n.variable for n in program.nodes if n.variable is not None}
        declared = {n.variable for n in program.nodes if n.op.role == "variable" and is_static(n.attrs["shape"])}
        self._list_feeds = [i for i, f in enumerate(program.feeds) if f.dtype is variant]
        self._open_variables = sorted(named - declared)  # their shapes are part of what a plan is bound to

    def _make_variables(self) -> None:
        """Makes the variables that may have a value which no run of this session gave them: those of other processes,
        and those that begin with no elements and stand for TensorFlow's reference variables, which have that value.
        """
        for node in self.program.nodes:
            if node.op.role != "variable" or node.device is None:
                continue
            shape = node.attrs.get(INITIAL_SHAPE, ())
            empty = 0 in shape
            if empty or node.device.incarnation != _HERE:
                variable = self.variables.get(node.variable or "", node.device, node.attrs["dtype"])
                if empty:
                    variable.make_empty(tuple(shape))

    def _homes(self) -> dict[str, Device]:
        names = {n.variable for n in self.program.nodes if n.variable is not None}
        return {name: device for name in names if (device := self.variables.device(name)) is not None}

    # Binding

    def bind(self, inputs: Sequence[Located]) -> Level:
        """Returns the executables for these feeds, as far as their shapes are known before anything runs."""
        key = self._key(inputs)
        with self._lock:
            found = self._bound.get(key)
            if found is not None:
                return found
            with collection_paused(), failures_noted(self.skipped_rewrites):
                level = self._bind_level(self._analyse(inputs), self.schedule, 0)
            self._bound.add(key, level, level.nbytes)
            return level

    def _analyse(self, inputs: Sequence[Located]) -> Facts:
        """Returns what follows from the shapes of these feeds, and who drives each loop and branch: both show together.

        Those whose shapes only a run gives are the executor's from now on, with others that rest on them, and the
        stages are made again. Others of the executor's are so for these shapes alone: `Facts.driven`.
        """
        facts = self._facts(inputs)
        nodes = self.schedule.inference.get(0, [])
        given, unknown, waiting = 0, set[Output](), nodes
        try:
            while waiting:
                try:
                    infer(waiting, facts, self.variables.shape, self.bodies.result_shapes)
                    break
                except NeedsDriverError as e:
                    e.node.give_to_executor(e.why)
                    unknown.update(e.node.outputs)
                    given += 1
                    waiting = _independent(nodes[nodes.index(e.node) + 1 :], unknown)
        finally:
            if given:
                self._bound.clear()
                self.schedule = make_schedule(self.program, self._needed)
        return facts

    def _key(self, inputs: Sequence[Located]) -> Any:
        shapes: Any = tuple([a.shape for a, _ in inputs])
        if self._list_feeds:
            shapes = shapes, tuple([known_of_list(inputs[i][0]) for i in self._list_feeds])
        if not self.schedule.host_feeds and not self._open_variables:
            return shapes
        values = tuple(host_array(x).tobytes() for x in self._host_inputs(inputs).values())
        return shapes, values, tuple(self.variables.shape(name) for name in self._open_variables)

    def _host_inputs(self, inputs: Sequence[Located]) -> dict[Output, Located]:
        by_feed = dict(zip(self.feeds, inputs, strict=True))
        return {f: by_feed[f] for f in self.schedule.host_feeds}

    def _facts(self, inputs: Sequence[Located]) -> Facts:
        facts = Facts()
        for feed, (array, _) in zip(self.feeds, inputs, strict=True):
            facts.shapes[feed] = tuple(array.shape)
            if feed.dtype is variant:
                facts.lists[feed] = known_of_list(array)
        for feed, located in self._host_inputs(inputs).items():
            facts.values[feed] = np.array(host_array(located))
        return facts

    def _bind_level(self, facts: Facts, schedule: Schedule, depth: int, devices: Iterable[Device] = ()) -> Level:
        """Returns the stages of a schedule whose shapes are known at a depth.

        devices: those that earlier depths work on.
        """
        level = Level(facts, schedule, [])
        for stage in schedule.stages:
            if stage.level == depth:
                level.stages[id(stage)] = self._bind_stage(stage, facts, level.placements)
        used = [*devices, *(s.device for s in schedule.stages)]
        used += [part.device for bound in level.stages.values() for part in bound.parts]
        if schedule.runs_bodies or facts.driven:
            used += self._placer.devices.devices  # whatever the bodies use
        level.devices.extend({id(d): d for d in used}.values())
        return level

    def _bind_stage(self, stage: Stage, facts: Facts, placements: list[Placement]) -> BoundStage:
        if stage.driven:
            inputs = [x for node in stage.nodes for x in node.inputs if x.dtype.name != "resource"]
            outputs = [x for node in stage.nodes for x in node.outputs]
            return BoundStage(stage, stage.device, inputs, outputs, nodes=stage.nodes)
        if not facts.driven.keys().isdisjoint(stage.nodes):
            return self._bind_parts(stage, facts, {}, placements)
        loops = [n for n in stage.nodes if n.bodies]
        passes: list[PassReport] = []
        try:
            lowered = lower_stage(stage, facts, self.variables, self.bodies, self.scope)
            homes = place_declined(self._placer, stage.nodes, lowered.cluster, placements)
            if homes:
                return self._bind_parts(stage, facts, homes, [])
            cluster, executable = self._pipeline.compile(lowered.cluster, passes)
            check_memory(stage.device, cluster, executable)
        except OpError as e:
            raise located_on(e, stage.nodes, stage.device) from e.__cause__
        except Exception as e:
            if not loops:
                raise
            report_failure("running loops and branches as kernels", e)
            facts.driven.update(dict.fromkeys(loops, f"running it as a kernel failed: {type(e).__name__}: {e}"))
            return self._bind_parts(stage, facts, {}, placements)
        return BoundStage(stage, stage.device, lowered.inputs, lowered.outputs, executable, cluster, passes=passes)

    def _bind_parts(
        self, stage: Stage, facts: Facts, homes: Mapping[Node, str], placements: list[Placement]
    ) -> BoundStage:
        """Returns a stage in parts: nodes in `homes` on the devices there, what the executor drives apart."""
        pieces = split(stage, homes, self._placer.devices, facts.driven)
        bound = [self._bind_stage(piece, facts, placements) for piece in pieces]
        parts = [part for b in bound for part in b.parts or (b,)]
        return BoundStage(stage, stage.device, *joints(parts), parts=parts, passes=[r for p in parts for r in p.passes])

    def release(self) -> None:
        """Drops all executables, and with them their memory."""
        with self._lock:
            self._bound.clear()

    def deeper(self, level: Level, depth: int, found: dict[Output, Located]) -> Level:
        """Returns the level after `level`, given the arrays that ran until now: shapes and
        values that planning waits for.
        """
        shapes = {
            x: tuple(a.shape)
            for x, (a, _) in found.items()
            if x not in level.facts.shapes  # made by a kernel that decides the size, or by a driven loop
        }
        lists = {x: known_of_list(found[x][0]) for x in shapes if x.dtype is variant}
        schedule = level.schedule
        values = {x: host_array(found[x]) for x in schedule.fetched_values.get(depth, ())}
        key = (
            depth,
            tuple(sorted((x.name, s) for x, s in shapes.items())),
            tuple(v.tobytes() for v in values.values()),
            tuple(lists.values()),
        )
        with self._lock:
            child = level.children.get(key)
            if child is None:
                facts = Facts(level.facts)
                facts.shapes.update(shapes)
                facts.lists.update(lists)
                for x in shapes:
                    facts.bounds.pop(x, None)
                facts.values.update({x: np.array(v) for x, v in values.items()})
                infer(schedule.inference.get(depth, ()), facts, self.variables.shape, self.bodies.result_shapes)
                child = self._bind_level(facts, schedule, depth, level.devices)
                if len(level.children) >= _CHILDREN:
                    level.children.clear()
                level.children[key] = child
            return child


def _independent(nodes: Sequence[Node], unknown: set[Output]) -> list[Node]:
    """Returns those of the nodes that do not rest on unknown outputs, to which those of the others are added."""
    found = []
    for node in nodes:
        if unknown.isdisjoint((*node.inputs, *node.outputs)):
            found.append(node)
        else:
            unknown.update(node.outputs)
    return found


def known_of_list(value: Any) -> tuple[Any, Any]:
    """Dtype and shape of the elements of a list that a run made; nothing for any other value."""
    return getattr(value, "dtype", None), getattr(value, "element_shape", None)


@contextmanager
def collection_paused() -> Iterator[None]:
    """Keeps the garbage collector from looking through a large graph again and again while a plan is made of it."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def host_array(located: Located) -> np.ndarray:
    """Returns the value on the host."""
    array, device = located
    return np.asarray(array) if device is None else device.copy_out(array)


def check_memory(device: Device, cluster: Cluster, executable: Executable) -> None:
    """Raises ResourceExhaustedError when a cluster can never fit its device's limit."""
    limit = device.allocator.statistics().limit
    if limit is None:
        return
    memory = executable.memory
    outputs = sum(v.nbytes for v in cluster.outputs if v.kind == "temp")
    total = memory.arena + outputs
    if total > limit:
        largest = max((v for n in cluster.nodes for v in n.outputs), key=lambda v: v.nbytes)
        owner = next(n for n in cluster.nodes if any(v is largest for v in n.outputs))
        raise ResourceExhaustedError(
            f"{owner.op} '{owner.name}': the run needs {total} bytes on {device.spec} ({memory.arena} for intermediate "
            f"tensors, {outputs} for results; this node's output of shape {format_shape(largest.shape)} alone is "
            f"{largest.nbytes}); the limit is {limit} bytes",
            owner.name,
        )


def _check_fed(program: Program) -> None:
    for node in program.nodes:
        if node.op.role == "placeholder" and not node.feed:
            where = f"  [{node.where}]" if node.where else ""
            shape = format_shape(node.outputs[0].static_shape)
            raise InvalidArgumentError(
                f"{node.op.name} '{node.name}': no value was fed; "
                f"a feed of dtype {node.outputs[0].dtype.name} and shape {shape} is required{where}",
                node.name,
            )
