"""Functions of the graph that host ops run: on any thread, and as often as they want, also after the run that began it.

What the executor runs by itself, the bodies of loops and branches, is in `drivers.py`.
"""

from __future__ import annotations

import copy
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from timberframe_core.compiler.kept import Kept
from timberframe_core.compiler.lower import Variables
from timberframe_core.compiler.plan import Located, Plan
from timberframe_core.dtypes import DType, resource
from timberframe_core.graph.function import FuncGraph
from timberframe_core.plugin.contracts import CancelToken, Device, RandomStream, RunContext, Variable
from timberframe_core.runtime.small_functions import SmallFunction
from timberframe_core.shapes import StaticShape

if TYPE_CHECKING:
    from timberframe_core.runtime.executor import Run
    from timberframe_core.runtime.runtime import Runtime

Execute = Callable[[Plan, Sequence[Located], "Runtime", RunContext], list[Any]]
"""Runs a plan: `Run.separately`."""

_DIRECT_CALLS = 16
"""Shapes for which a function keeps its shortest way."""

_HANDLE: Located = (np.empty((), object), None)
"""Stands for a handle: what it means is known from planning."""


class Streams:
    """The random streams of the functions that one resource runs; they live as long as it, not as the session.

    Functions are planned for them once: who drops them calls `close`.
    """

    def __init__(self) -> None:
        self._streams: dict[str, RandomStream] = {}
        self._lock = threading.Lock()
        self._variables: _Variables | None = None

    def variables(self, runtime: Runtime) -> Variables:
        """Returns the variables of the session, with these streams."""
        with self._lock:
            if self._variables is None:
                self._variables = _Variables(runtime, self)
            return self._variables

    def close(self) -> None:
        """Drops the plans of functions that draw from these streams."""
        if self._variables is not None:
            self._variables.runtime.forget_plans(self._variables)

    def get(self, name: str) -> RandomStream:
        """Returns the stream of a node, from its start when it is asked for first."""
        with self._lock:
            return self._streams.setdefault(name, RandomStream(name))

    def restart(self) -> None:
        """Makes the numbers of ops with a seed begin again; those of others go on."""
        for stream in list(self._streams.values()):
            stream.restart()

    def items(self) -> list[tuple[str, RandomStream]]:
        """Returns all streams that were asked for, by name."""
        with self._lock:
            return sorted(self._streams.items())


class _Variables:
    """The variables of a session, with random streams of others."""

    def __init__(self, runtime: Runtime, streams: Streams) -> None:
        self.runtime = runtime
        self._store, self._streams = runtime.variables, streams

    def get(self, name: str, device: Device, dtype: DType) -> Variable:
        return self._store.get(name, device, dtype)

    def shape(self, name: str) -> StaticShape | None:
        return self._store.shape(name)

    def device(self, name: str) -> Device | None:
        return self._store.device(name)

    def destroy(self, name: str) -> bool:
        return self._store.destroy(name)

    def stream(self, op: str, name: str, seeded: bool) -> RandomStream:
        self._store.check_seed(op, name, seeded)
        return self._streams.get(name)


class HostFunction:
    """A function that a host op's node names. handles: what its inputs that are handles mean, by their positions."""

    def __init__(self, run: Run, function: FuncGraph, handles: Mapping[int, str], scope: str) -> None:
        self.function = function
        self.scope = scope
        """The way to it, which is another one for each node of a session."""
        self._runtime = run.runtime
        self._handles = dict(handles)
        self._context = replace(run.context, trace=None, late=None)
        self._execute = run.separately

    @property
    def key(self) -> tuple[Any, ...]:
        """What two of the same function, at the same place and with handles of the same meaning, have in common."""
        return self.function, self.scope, tuple(self._handles.items())

    def like(self, function: FuncGraph) -> HostFunction:
        """Returns another function, with inputs that mean the same, in place of this one."""
        made = copy.copy(self)
        made.function = function
        return made

    def prepare(self, scope: str = "", streams: Streams | None = None) -> PreparedFunction:
        """Returns the function ready to be called. scope: the way to it, where several resources run it.

        streams: where its random streams are kept; by default they are the session's.
        """
        runtime = self._runtime
        variables = None if streams is None else streams.variables(runtime)
        host = runtime.devices.host
        plan = runtime.function_plan(
            self.function, self._handles, scope or self.scope, variables, "" if host is None else host.spec
        )
        return PreparedFunction(runtime, plan, self._context, self._execute)


class PreparedFunction:
    """A function ready to be called, with arrays of the host and values of dtype variant; handles have no part."""

    def __init__(self, runtime: Runtime, plan: Plan, context: RunContext, execute: Execute) -> None:
        self._runtime, self._plan, self._context, self._execute = runtime, plan, context, execute
        self._feeds = [i for i, x in enumerate(plan.feeds) if x.dtype is not resource]
        self._results = [i for i, x in enumerate(plan.results) if x.dtype is not resource]
        self._one = len(self._results) == 1
        self._direct: Callable[..., Any] | None = None
        self._direct_calls: Kept[Any, tuple[Callable[..., Any] | None]] = Kept(_DIRECT_CALLS, _DIRECT_CALLS)
        self._may_be_direct = (
            _is_one_cluster(plan) and context.mode == "fast" and len(self._feeds) == len(plan.feeds) and self._results
        )

        whole = len(self._feeds) == len(plan.feeds) and len(self._results) == len(plan.results)
        self._small = SmallFunction.of(plan) if context.mode == "fast" and whole else None

    @property
    def plan(self) -> Plan:
        """How it runs."""
        return self._plan

    def __call__(self, inputs: Sequence[Any], cancel: CancelToken) -> Sequence[Any]:
        """Returns what the function returns; its errors name the node of the function and the user's line."""
        direct = self._direct
        if direct is not None:
            found = direct(*inputs)
            return (found,) if self._one else found
        if self._small is not None and (made := self._small(inputs)) is not None:
            return made
        return self._general(inputs, cancel)

    def _general(self, inputs: Sequence[Any], cancel: CancelToken) -> list[Any]:
        plan = self._plan
        given: list[Located] = [_HANDLE] * len(plan.feeds)
        for i, x in zip(self._feeds, inputs, strict=True):
            given[i] = (x, None)
        made = self._execute(plan, given, self._runtime, replace(self._context, cancel=cancel))
        found = [made[i] for i in self._results]
        if self._may_be_direct:
            self._remember_direct(given)
        return found

    def _remember_direct(self, inputs: Sequence[Located]) -> None:
        """Makes later calls with these shapes take the shortest way."""
        shapes = tuple([a.shape for a, _ in inputs])
        found = self._direct_calls.get(shapes)
        if found is None:
            found = (self._direct_call(inputs),)
            self._direct_calls.add(shapes, found, 1)
        self._direct = found[0]

    def _direct_call(self, inputs: Sequence[Located]) -> Callable[..., Any] | None:
        """Returns a call that skips the executor, on a device of the host's memory that offers one."""
        plan = self._plan
        level = plan.bind(inputs)
        if not level.schedule.one_call:
            return None
        bound = level.only_stage
        exact = bound.inputs == plan.feeds and bound.outputs == plan.results
        if bound.executable is None or not bound.device.host_memory or not exact:
            return None

        def general(*values: Any) -> Any:
            found = self._general(values, CancelToken())
            return found[0] if self._one else found

        return bound.device.direct_call(bound.executable, general)


def _is_one_cluster(plan: Plan) -> bool:
    """Returns whether one call of one device computes everything, and nothing can make it wait."""
    return plan.schedule.one_call and not any(n.variable for n in plan.program.nodes)
