"""Runs a plan: stages in order, device copies between them, threads only where stages of different devices overlap."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import numpy as np

from timberframe.compiler import specialise
from timberframe.compiler.ir import Output
from timberframe.compiler.plan import BoundStage, Located, Plan
from timberframe.compiler.state import uninitialized
from timberframe.errors import FailedPreconditionError, InternalError, OpError, UnknownError
from timberframe.plugin.contracts import Array, Device, RunContext

if TYPE_CHECKING:
    from timberframe.runtime.session import Runtime


def execute(plan: Plan, inputs: Sequence[Located], runtime: Runtime, context: RunContext) -> list[Located]:
    """Runs once and returns the plan's results, each with its device (None: on the host)."""
    return Run(plan, inputs, runtime, context).results()


class Run:
    """One run in flight: `found` holds the arrays made so far."""

    def __init__(self, plan: Plan, inputs: Sequence[Located], runtime: Runtime, context: RunContext) -> None:
        self.plan = plan
        self.runtime = runtime
        self.context = context
        self.found: dict[Output, Located] = dict(zip(plan.feeds, inputs, strict=True))
        self._copies: dict[tuple[Output, int], Array] = {}
        self.level = plan.bind(inputs)

    def results(self) -> list[Located]:
        """Runs all stages."""
        plan = self.plan
        if plan.static:
            stages = [self.level.stages[id(s)] for s in plan.schedule.stages]
            if self.level.overlaps is None:
                self.level.overlaps = len(stages) > 1 and overlapping(stages)
            if self.level.overlaps:
                _Overlapped(self, stages).run()
            else:
                for stage in stages:
                    self.run_stage(stage)
        else:
            self._run_by_depth()
        return [self._result(x) for x in plan.results]

    def _run_by_depth(self) -> None:
        plan, bound = self.plan, dict(self.level.stages)
        for depth in plan.depths:
            if depth and (depth in plan.schedule.inference or any(s.level == depth for s in plan.schedule.stages)):
                self.level = plan.deeper(self.level, depth, self.found)
                bound.update(self.level.stages)
            for stage in plan.schedule.stages:
                if stage.depth == depth:
                    self.run_stage(bound[id(stage)])

    def run_stage(self, bound: BoundStage) -> None:
        """Copies the inputs to the stage's device, runs it, and notes what it made."""
        self.context.cancel.check()
        if bound.nodes:
            from timberframe.runtime.drivers import drive

            for node in bound.nodes:
                arrays = [self._located(x) for x in node.inputs if x.dtype.name != "resource"]
                try:
                    made = drive(node, arrays, bound.device, self)
                except OpError as e:
                    raise specialise.located_on(e, (node,), bound.device) from e.__cause__
                self.found.update(zip(node.outputs, made, strict=True))
            return
        assert bound.executable is not None
        device = bound.device
        inputs = [self.on_device(x, device) for x in bound.inputs]
        start = time.perf_counter_ns() if self.context.trace is not None else 0
        try:
            outputs = bound.executable.run(inputs, self.context)
        except FailedPreconditionError as e:
            raise _at_its_reader(e, bound) from None
        except OpError as e:
            raise specialise.located_on(e, bound.stage.nodes, device) from e.__cause__
        except (KeyboardInterrupt, SystemExit):
            raise
        except Exception as e:
            raise UnknownError(f"device {device.spec} failed: {type(e).__name__}: {e}") from e
        if self.context.trace is not None:
            names = [n.name for n in bound.stage.nodes]
            self.context.trace.event(
                f"cluster of {len(names)} nodes", "cluster", start, time.perf_counter_ns(), device.spec, nodes=names
            )
        for x, array in zip(bound.outputs, outputs, strict=True):
            self.found[x] = array, device

    def _located(self, x: Output) -> Located:
        known = self.level.facts.values.get(x)
        return (known, None) if known is not None else self.found[x]

    def on_device(self, x: Output, device: Device) -> Array:
        """The array of x on a device, copied there once."""
        array, home = self._located(x)
        if home is device:
            return array
        key = x, id(device)
        copied = self._copies.get(key)
        if copied is None:
            start = time.perf_counter_ns() if self.context.trace is not None else 0
            copied = move((array, home), device)
            self._copies[key] = copied
            if self.context.trace is not None and home is not None:
                end = time.perf_counter_ns()
                self.context.trace.event(f"_Recv {x.name}", "copy", start, end, device.spec, source=home.spec)
        return copied

    def _result(self, x: Output) -> Located:
        known = self.level.facts.values.get(x)
        if known is not None:
            return known.copy(), None
        array, device = self.found[x]
        if device is None:
            return array.copy(), None  # a feed that is fetched
        if x.node.on_lists and device.host_memory:
            return np.array(array), None  # an element that its list goes on to hold
        return array, device


def _at_its_reader(error: FailedPreconditionError, bound: BoundStage) -> OpError:
    """What a device says of a variable without a value, at the first node that needs the value."""
    for node in bound.stage.nodes:
        for handle in node.inputs if node.op.name != "AssignVariableOp" else ():
            if handle.node.variable is not None and handle.node.variable == error.node:
                return specialise.located(uninitialized(node, handle), node)
    return error


def move(located: Located, device: Device) -> Array:
    """The array on a device; the same object where it is there already."""
    array, home = located
    if home is device:
        return array
    if home is None:
        return device.copy_in(array)
    return device.copy_from(home, array)


def overlapping(stages: Sequence[BoundStage]) -> bool:
    """Whether stages of different devices could run at the same time and gain from threads of their own."""
    waits = dependencies(stages)
    reach: list[set[int]] = []
    for before in waits:
        reach.append(set(before).union(*(reach[b] for b in before)))
    for j, stage in enumerate(stages):
        for i in range(j):
            other = stages[i]
            both_enqueue = other.device.asynchronous and stage.device.asynchronous
            if other.device is not stage.device and i not in reach[j] and not both_enqueue:
                return True
    return False


def dependencies(stages: Sequence[BoundStage]) -> list[set[int]]:
    """For each stage, the positions of the stages that must end before it starts."""
    maker = {x: i for i, s in enumerate(stages) for x in s.outputs}
    stage_of = {n: i for i, s in enumerate(stages) for n in s.stage.nodes}
    waits: list[set[int]] = []
    last_on: dict[int, int] = {}
    for i, stage in enumerate(stages):
        before = {maker[x] for x in stage.inputs if x in maker}
        for node in stage.stage.nodes:
            before.update(stage_of[c] for c in _ordered_before(node) if c in stage_of)
        if id(stage.device) in last_on:
            before.add(last_on[id(stage.device)])  # one device runs its stages in order
        last_on[id(stage.device)] = i
        waits.append({b for b in before if b != i})
    return waits


def _ordered_before(node: Any) -> list[Any]:
    """The nodes that must run before, looking through NoOps."""
    result, stack, seen = [], [*node.control, *node.after], set()
    while stack:
        before = stack.pop()
        if before in seen:
            continue
        seen.add(before)
        result.append(before)
        if before.op.name == "NoOp":
            stack.extend((*before.control, *before.after))
    return result


class _Overlapped:
    """Runs stages as soon as what they wait for is done; the caller's thread takes its share."""

    def __init__(self, run: Run, stages: list[BoundStage]) -> None:
        self.run_ = run
        self.stages = stages
        self.waits = dependencies(stages)
        self.left = [len(w) for w in self.waits]
        self.followers: list[list[int]] = [[] for _ in stages]
        for i, before in enumerate(self.waits):
            for b in before:
                self.followers[b].append(i)
        self.ready = [i for i, n in enumerate(self.left) if n == 0]
        self.condition = threading.Condition()
        self.unfinished = len(stages)
        self.failure: BaseException | None = None
        self.running = 0

    def run(self) -> None:
        """Runs all stages; raises the first failure when nothing of the run is at work any more."""
        with self.condition:
            try:
                self._schedule()
            except BaseException as e:  # Ctrl-C, which comes to the thread that waits here
                self._fail(e)
            self._drain()
        if self.failure is not None:
            raise self.failure

    def _schedule(self) -> None:
        pool: ThreadPoolExecutor = self.run_.runtime.pool
        while self.unfinished and self.failure is None:
            while len(self.ready) > 1:
                pool.submit(self._one, self.ready.pop())
            if self.ready:
                mine = self.ready.pop()
                self.condition.release()
                try:
                    self._one(mine)
                finally:
                    self.condition.acquire()
            else:
                self.condition.wait(0.1)  # a bounded wait lets Ctrl-C through

    def _fail(self, error: BaseException) -> None:
        """Notes the first failure and stops the other stages."""
        if self.failure is None:
            self.failure = error
            self.run_.context.cancel.cancel(
                error if isinstance(error, OpError) else InternalError(f"a peer stage failed: {error!r}")
            )

    def _drain(self) -> None:
        """After a failure, waits until no stage of this run is at work, so that nothing of it outlives the call."""
        while self.failure is not None and self.running:
            self.condition.wait(0.1)

    def _one(self, i: int) -> None:
        with self.condition:
            if self.failure is not None:
                return
            self.running += 1
        error: BaseException | None = None
        try:
            self.run_.run_stage(self.stages[i])
        except BaseException as e:
            error = e
        with self.condition:
            self.running -= 1
            if error is not None:
                self._fail(error)
            else:
                self.unfinished -= 1
                for follower in self.followers[i]:
                    self.left[follower] -= 1
                    if not self.left[follower]:
                        self.ready.append(follower)
            self.condition.notify_all()
