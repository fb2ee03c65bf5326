"""Runtime: what all runs of a session share."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from timberframe_core.compiler.build import Rewrite, build_function
from timberframe_core.compiler.ir import Program
from timberframe_core.compiler.lower import Variables
from timberframe_core.compiler.passes import standard as _standard_passes  # noqa: F401  # registers them
from timberframe_core.compiler.passes.pipeline import Pipeline
from timberframe_core.compiler.place import Devices, Placer
from timberframe_core.compiler.plan import Plan
from timberframe_core.config import SessionConfig
from timberframe_core.graph.function import FuncGraph
from timberframe_core.plugin import loader
from timberframe_core.plugin.state import Position
from timberframe_core.runtime.host_steps import check_host_ops
from timberframe_core.runtime.joins import Joins
from timberframe_core.runtime.overlap import StageThreads
from timberframe_core.runtime.resources import ResourceStore

if TYPE_CHECKING:
    from timberframe_core.runtime.targets import Target
    from timberframe_core.runtime.variables import VariableStore


def _build_body(function: FuncGraph, handles: Mapping[int, str], device: str, rewrite: Rewrite) -> Program:
    program = build_function(function, handles, rewrite)
    for node in program.nodes:
        if device and not node.feed:
            node.requested = node.requested or device
    return program


class _Depth(threading.local):
    value = 0


class Runtime:
    """What all runs of a session share: devices, variables, plans of functions, threads."""

    def __init__(self, target: Target, config: SessionConfig) -> None:
        self._target: Target | None = target
        self.config = config
        found = target.devices()
        plugins = loader.registry.load(config.plugins)
        kernels, failures = loader.registry.kernels_of(plugins), loader.registry.failures(config.plugins)
        self.devices = Devices(found, kernels, failures, loader.registry.left_out(config.plugins))
        self.resources = ResourceStore(config.deterministic)
        self.placer = Placer(self.devices, config.allow_soft_placement, config.strict_placement)
        self._plugins = [p.name for p in plugins]
        passes = loader.registry.passes.selected(self._plugins, config.optimizations)
        self.pipeline = Pipeline(passes, found, config.order_seed)
        self.depth = _Depth()
        self.joins = Joins()
        self._functions: dict[Any, Plan] = {}
        self._threads: StageThreads | None = None
        self._lock = threading.RLock()

    @property
    def threads(self) -> StageThreads:
        """Threads for stages that overlap; made at first need."""
        with self._lock:
            if self._threads is None:
                self._threads = StageThreads(
                    self.config.inter_op_parallelism_threads or max(2, len(self.devices.devices))
                )
            return self._threads

    def function_plan(
        self,
        function: FuncGraph,
        handles: Mapping[int, str],
        scope: str,
        variables: Variables | None = None,
        device: str = "",
    ) -> Plan:
        """Returns the plan of a function body that the executor drives. device: of nodes that ask for none.

        variables: where variables and random streams are, by default those of the session.
        """
        variables = variables or self.variables
        key = function, tuple(handles.items()), scope, variables, device
        with self._lock:
            plan = self._functions.get(key)
            if plan is None:
                build = partial(_build_body, function, handles, device)
                plan = self._functions[key] = self.plan(build, scope, variables)
            return plan

    def forget_plans(self, variables: Variables) -> None:
        """Drops the plans of functions with these variables, whose owner is gone."""
        with self._lock:
            for key in [k for k in self._functions if k[3] is variables]:
                self._functions.pop(key).release()

    def plan(self, build: Callable[[Rewrite], Program], scope: str = "", variables: Variables | None = None) -> Plan:
        """Returns a plan with the devices, variables and passes of this session."""
        plan = Plan(build, self.placer, variables or self.variables, self.pipeline, scope)
        check_host_ops(plan.program.nodes, self._plugins)
        return plan

    def forget_functions(self) -> None:
        """Plans function bodies again; runs in flight end with the plans that they began with."""
        with self._lock:
            self._functions.clear()

    @property
    def variables(self) -> VariableStore:
        """The variables among the resources."""
        return self.resources.variables

    @property
    def positions_elsewhere(self) -> bool:
        """Whether the target gives positions of what it keeps for the session in other processes."""
        return hasattr(self._target, "positions")

    def positions(self) -> dict[str, Position]:
        """See `ResourceStore.positions`; with those of the target's processes."""
        target: Any = self._target
        found = self.resources.positions()
        return {**found, **target.positions()} if self.positions_elsewhere else found

    def set_positions(self, positions: Mapping[str, Position]) -> bool:
        """See `ResourceStore.set_positions`."""
        target: Any = self._target
        renew = self.positions_elsewhere and target.set_positions(positions)
        return self.resources.set_positions(positions) or bool(renew)

    def close(self) -> None:
        """Drops what the runs share and gives the target back."""
        self.resources.close()
        with self._lock:
            if self._threads is not None:
                self._threads.close()
            self.joins.close()
            for plan in self._functions.values():
                plan.release()
            self._functions.clear()
            target, self._target = self._target, None
        if target is not None:
            target.close()
