"""Runs a plan: stages in order, device copies between them, threads only where stages of different devices overlap."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from timberframe_core.compiler import specialise
from timberframe_core.compiler.ir import Node, Output
from timberframe_core.compiler.plan import BoundStage, Level, Located, Plan
from timberframe_core.dtypes import variant
from timberframe_core.errors import OpError, ResourceExhaustedError
from timberframe_core.plugin.contracts import (
    Array,
    Deferred,
    Device,
    LateError,
    LateErrors,
    Pending,
    RunContext,
)
from timberframe_core.plugin.device_defaults import DeviceDefaults
from timberframe_core.runtime.device_array import DeviceArray
from timberframe_core.runtime.device_errors import DeviceWork, cause, of_device, raise_late_errors
from timberframe_core.runtime.drivers import prepare
from timberframe_core.runtime.located import copied, to_host
from timberframe_core.runtime.overlap import Overlapped, overlapping, wait_for_each_other
from timberframe_core.wording import counted

if TYPE_CHECKING:
    from timberframe_core.runtime.runtime import Runtime

_HERE = DeviceDefaults.incarnation


def run_to_end(run: Run, on_device: bool = False) -> list[Any]:
    """Runs and returns the results when every device has done its part and has reported no error.

    They are arrays of the host; with on_device, those in another memory stay there as DeviceArrays.
    """
    plan, context = run.plan, run.context
    if run.level.asynchronous and len(run.level.devices) > 1:
        context.cancel.poll()
    results = run.results()
    if not run.level.asynchronous and not on_device:
        if context.trace is not None:
            return [_traced_copy(x, output, context) for x, output in zip(results, plan.results, strict=True)]
        return [to_host(x, context.cancel) for x in results]
    works = [_start_fetch(x, plan, context, on_device) for x in results]
    ends = [DeviceWork(device.marker(), device, plan, context) for device in run.level.asynchronous]
    if context.late is not None:
        raise_late_errors(context.late.of(), plan, context)
    found = context.cancel.wait_all([*works, *ends])[: len(works)]
    if context.trace is not None:
        for output, work, x in zip(plan.results, works, found, strict=True):
            if isinstance(work, DeviceWork):
                _trace_fetch(output, work.start, work.device, x, context)
    return found


def run_in_place(run: Run) -> list[Located]:
    """Runs, like `run_to_end`, and leaves each result where it is; values of dtype variant are as they are."""
    results, context = run.results(), run.context
    if run.level.asynchronous:
        ends = [DeviceWork(device.marker(), device, run.plan, context) for device in run.level.asynchronous]
        if context.late is not None:
            raise_late_errors(context.late.of(), run.plan, context)
        context.cancel.wait_all(ends)
    return results


def _traced_copy(located: Located, output: Output, context: RunContext) -> np.ndarray:
    """Returns what `to_host` gives, with its time in the trace where it is a copy."""
    start, device = time.perf_counter_ns(), located[1]
    found = to_host(located, context.cancel)
    if device is not None and not device.host_memory:
        _trace_fetch(output, start, device, found, context)
    return found


def _trace_fetch(output: Output, start: int, device: Device, found: np.ndarray, context: RunContext) -> None:
    assert context.trace is not None
    end = time.perf_counter_ns()
    context.trace.event(f"fetch {output.name}", "copy", start, end, _copies(device), target="host", bytes=found.nbytes)


def _copies(device: Device) -> str:
    """Returns the track of copies to and from a device: one of their own where another process
    runs the nodes meanwhile.
    """
    return device.spec if device.incarnation == _HERE else f"{device.spec}/memcpy"


def _start_fetch(located: Located, plan: Plan, context: RunContext, on_device: bool) -> Pending:
    """Starts the copy of a result that must go to the host, and returns what gives it to the caller."""
    array, device = located
    if device is None or device.host_memory:
        return Deferred(lambda: to_host(located, context.cancel))
    if on_device:
        return Deferred(lambda: DeviceArray(array, device))
    return DeviceWork(device.start_copy_out(array), device, plan, context)


class Run:
    """One run in flight: `found` holds the arrays made so far, `sent` what is on its way to the host.

    An array that leaves its device is used only when none of its `_pending_errors` has come true.
    """

    def __init__(
        self,
        plan: Plan,
        inputs: Sequence[Located],
        runtime: Runtime,
        context: RunContext,
        state: dict[Any, Any] | None = None,
    ) -> None:
        self.plan = plan
        self.runtime = runtime
        self.context = context
        self.state: dict[Any, Any] = {} if state is None else state
        """Arrays and stacks of tensors of this run and of the bodies that it calls, by the names of their handles."""
        self.found: dict[Output, Located] = dict(zip(plan.feeds, inputs, strict=True))
        self.sent: dict[Output, DeviceWork] = {}
        self._pending_errors: dict[Output, list[LateError]] = {}
        self._copies: dict[tuple[Output, int], Array] = {}
        self._enter(plan.bind(inputs))

    def _enter(self, level: Level) -> None:
        """Goes on with a level, and collects the errors of its devices from now on if they report them late."""
        self.level = level
        if level.asynchronous and self.context.late is None:
            self.context.late = LateErrors()

    def call(self, plan: Plan, inputs: Sequence[Located]) -> list[Located]:
        """Runs the plan of a body as part of this run."""
        return Run(plan, inputs, self.runtime, self.context, self.state).results(own=False)

    @staticmethod
    def separately(plan: Plan, inputs: Sequence[Located], runtime: Runtime, context: RunContext) -> list[Any]:
        """Runs the plan of a function that is part of no other run; results are on the host, values as they are."""
        made = Run(plan, inputs, runtime, context).results(own=False)
        if context.late is not None:
            raise_late_errors(context.late.of(), plan, context)
        return [
            array if x.dtype is variant else to_host((array, device), context.cancel)
            for x, (array, device) in zip(plan.results, made, strict=True)
        ]

    def results(self, own: bool = True) -> list[Located]:
        """Runs all stages and returns the plan's results, each with its device (None: on the host).

        own: none of them is an array that was fed.
        """
        schedule = self.level.schedule
        if schedule.static:
            stages = [self.level.stages[id(s)] for s in schedule.stages]
            if self.level.overlaps is None:
                self.level.overlaps = len(stages) > 1 and overlapping(stages)
            if self.level.overlaps:
                Overlapped(self, stages).run()
            else:
                for stage in stages:
                    self.run_stage(stage)
        else:
            self._run_by_depth()
        return [self._result(x, own) for x in self.plan.results]

    def _run_by_depth(self) -> None:
        schedule, bound = self.level.schedule, dict(self.level.stages)
        for depth in schedule.depths:
            if depth in schedule.deeper_at:
                found = {x: (self.on_host(x), None) for x in schedule.fetched_values.get(depth, ())}
                self._enter(self.plan.deeper(self.level, depth, {**self.found, **found} if found else self.found))
                bound.update(self.level.stages)
            stages = [bound[id(s)] for s in schedule.stages if s.depth == depth]
            if len(stages) > 1 and wait_for_each_other(stages):
                Overlapped(self, stages).run()
            else:
                for stage in stages:
                    self.run_stage(stage)

    def run_stage(self, bound: BoundStage) -> None:
        """Copies the inputs to the stage's device, runs it, and notes what it made."""
        self.context.cancel.check()
        if bound.cluster is None or bound.cluster.updates:
            self._raise_late_errors(
                None if bound.cluster is None else bound.device
            )  # what is written must not rest on results that an error has spoilt
        if bound.nodes:
            self._carry_out(bound.nodes, bound.device)
            return
        if bound.parts:
            self._raise_late_errors(bound.device)  # nodes that moved read what planning took for the device's own
            for part in bound.parts:
                self.run_stage(part)
            return
        assert bound.executable is not None
        device = bound.device
        try:
            inputs = [self.on_device(x, device) for x in bound.inputs]
            start = time.perf_counter_ns() if self.context.trace is not None else 0
            outputs = bound.executable.run(inputs, self.context)
        except Exception as e:
            raise of_device(e, bound.stage.nodes, device, self.context) from cause(e)
        if self.context.trace is not None and device.incarnation == _HERE:  # another process reports its own
            names = [n.name for n in bound.stage.nodes]
            title, end = f"cluster of {counted(len(names), 'node')}", time.perf_counter_ns()
            self.context.trace.event(title, "cluster", start, end, device.spec, nodes=names)
        for x, array in zip(bound.outputs, outputs, strict=True):
            self.found[x] = array, device
        self._send(bound)

    def _carry_out(self, nodes: Sequence[Node], device: Device) -> None:
        """Runs nodes that no device runs: host ops, and loops and branches by their bodies."""
        trace, found = self.context.trace, self.found
        for node in nodes:
            start = 0 if trace is None else time.perf_counter_ns()
            try:
                made = (node.step or prepare(node)).call(self)
            except OpError as e:
                raise specialise.located_on(e, (node,), device) from e.__cause__
            except MemoryError as e:
                error = ResourceExhaustedError(
                    f"{node.op.name} '{node.name}': the host's memory does not suffice ({e})", node.name
                )
                raise specialise.located_on(error, (node,), device) from None
            if trace is not None:
                trace.event(
                    f"{node.op.name} {node.name}", "host", start, time.perf_counter_ns(), device.spec,
                    op=node.op.name, node=node.name,
                )  # fmt: skip
            for x, value in zip(node.outputs, made, strict=True):
                found[x] = value

    def _send(self, bound: BoundStage) -> None:
        """Starts the copies of what other devices wait for, so that they overlap later work."""
        for x, target in bound.stage.sends:
            array, home = self.located(x)
            if home is None:  # planning has found the value, so no kernel made it: it goes from the host
                continue
            if self.context.late is not None:
                self._pending_errors[x] = self.context.late.of(home)
            start = time.perf_counter_ns()
            direct = None if target is None else target.copy_from(home, array)
            if direct is not None:
                assert target is not None
                self._received(x, target, direct, start)
            elif home.asynchronous and x not in self.sent:
                self.sent[x] = DeviceWork(home.start_copy_out(array), home, self.plan, self.context)

    def _raise_late_errors(self, device: Device | None) -> None:
        """Waits for the errors of a device's work, or of all, that are not known yet."""
        if self.context.late is not None:
            raise_late_errors(self.context.late.of(device), self.plan, self.context)

    def raise_known_errors(self) -> None:
        """Raises what is known by now of errors in copies and launches that are under way."""
        for sent in list(self.sent.values()):
            if sent.done():
                sent.result()
        if self.context.late is not None:
            raise_late_errors(self.context.late.of(), self.plan, self.context, wait=False)

    def arrived(self, bound: BoundStage) -> bool:
        """Returns whether everything that the stage needs from other devices is there, so that it need not wait."""
        return all(self.sent[x].done() for x in bound.inputs if x in self.sent)

    def located(self, x: Output) -> Located:
        """Returns the value of x, wherever it is."""
        known = self.level.facts.values.get(x)
        return (known, None) if known is not None else self.found[x]

    def on_device(self, x: Output, device: Device) -> Array:
        """Returns the array of x on a device, copied there once."""
        array, home = self.located(x)
        if home is device:
            return array
        known = self._copies.get((x, id(device)))
        if known is not None:
            raise_late_errors(self._pending_errors.get(x, ()), self.plan, self.context)
            return known
        start = time.perf_counter_ns()
        if home is None:
            try:
                made = self._copies[x, id(device)] = device.copy_in(array)
            except ResourceExhaustedError as e:
                named = ResourceExhaustedError(f"{x.node.op.name} '{x.node.name}': {e}", x.node.name)
                raise specialise.located_on(named, (x.node,), device) from e.__cause__
            if self.context.trace is not None and not device.host_memory:
                end, nbytes = time.perf_counter_ns(), np.asarray(array).nbytes
                track = _copies(device)
                self.context.trace.event(f"feed {x.name}", "copy", start, end, track, source="host", bytes=nbytes)
            return made
        if x in self.sent:
            start = self.sent[x].start
        elif (direct := device.copy_from(home, array)) is not None:
            return self._received(x, device, direct, start)
        return self._received(x, device, device.copy_in(self.on_host(x)), start)

    def on_host(self, x: Output) -> np.ndarray:
        """Returns the value of x on the host, waiting for the copy that was started when x was made."""
        located = self.located(x)
        sent = self.sent.get(x)
        host: np.ndarray = to_host(located, self.context.cancel) if sent is None else self.context.cancel.wait(sent)
        if x in self._pending_errors:
            raise_late_errors(self._pending_errors[x], self.plan, self.context)
        return host

    def _received(self, x: Output, device: Device, array: Array, start: int) -> Array:
        self._copies[x, id(device)] = array
        if self.context.trace is not None:
            source = self.found[x][1]
            assert source is not None
            end = time.perf_counter_ns()
            nbytes = np.dtype(array.dtype).itemsize * math.prod(array.shape)
            self.context.trace.event(
                f"_Recv {x.name}", "copy", start, end, _copies(device), source=source.spec, bytes=nbytes
            )
        return array

    def _result(self, x: Output, own: bool) -> Located:
        known = self.level.facts.values.get(x)
        if known is not None:
            return known.copy(), None
        array, device = self.found[x]
        if device is None:
            return (array.copy() if own else array), None  # a feed that is fetched
        if x.node.feed:
            return copied(array, device) if own and x.dtype is not variant else (array, device)
        if x.node.on_lists and device.host_memory:
            return np.array(array), None  # an element that its list goes on to hold
        return array, device
