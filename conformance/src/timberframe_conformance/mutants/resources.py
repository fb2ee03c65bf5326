"""Bugs in what a session keeps: plans, queues, tables, random streams."""

from __future__ import annotations

from typing import Any

import numpy as np

from timberframe.host_ops.accumulators import Accumulator
from timberframe.host_ops.queue_state import Queue
from timberframe.host_ops.tables import Table
from timberframe_conformance.mutants.base import seam_mutant
from timberframe_conformance.replacements import Replacements
from timberframe_core.compiler.plan import Plan
from timberframe_core.plugin.state import VariableVersion
from timberframe_core.runtime.resources import ResourceStore

SUITE = "resources"


@seam_mutant("stages-of-other-shapes", "a run goes on with the stages of other shapes", "concurrency")
def _(r: Replacements, target: Any) -> None:
    def make(bind: Any) -> Any:
        def latest(self: Any, inputs: Any) -> Any:
            level = bind(self, inputs)
            levels = vars(self).setdefault("levels", [])
            levels.append(level)
            for each in levels:
                each.schedule = self.schedule
            return level

        return latest

    r.replace(Plan, "bind", make)


@seam_mutant("queue-shares-memory", "elements of equal dtype and shape in a queue share their memory", SUITE)
def _(r: Replacements, target: Any) -> None:
    buffers: dict[Any, np.ndarray] = {}

    def make(checked: Any) -> Any:
        def shared(self: Any, components: Any, *rest: Any, **more: Any) -> Any:
            found = []
            for i, x in enumerate(checked(self, components, *rest, **more)):
                buffer = buffers.setdefault((id(self), i, x.dtype, x.shape), np.empty_like(x))
                buffer[...] = x
                found.append(buffer)
            return tuple(found)

        return shared

    r.replace(Queue, "checked", make)


@seam_mutant("queue-last-first", "a queue gives its newest element first", SUITE)
def _(r: Replacements, target: Any) -> None:
    r.replace(Queue, "_take", lambda _: lambda self: self._elements.pop())


@seam_mutant("given-up-elements-lost", "what a run has taken when it is given up is lost", SUITE)
def _(r: Replacements, target: Any) -> None:
    r.replace(Queue, "_put_back", lambda _: lambda self, elements: None)


@seam_mutant("late-gradients-count", "an accumulator adds gradients of steps that are over", SUITE)
def _(r: Replacements, target: Any) -> None:
    def make(apply: Any) -> Any:
        return lambda self, step, gradient: apply(self, max(step, self.step), gradient)

    r.replace(Accumulator, "apply", make)


@seam_mutant("default-is-zero", "a table gives zeros for keys that it lacks", SUITE)
def _(r: Replacements, target: Any) -> None:
    def make(find: Any) -> Any:
        return lambda self, keys, default: find(self, keys, np.zeros_like(default))

    r.replace(Table, "find", make)


@seam_mutant("resources-of-all-sessions", "resources of a name are shared by the sessions of a process", SUITE)
def _(r: Replacements, target: Any) -> None:
    everybody: dict[str, Any] = {}

    def make(get_or_make: Any) -> Any:
        def shared(self: Any, key: str, create: Any) -> Any:
            found = get_or_make(self, key, lambda: everybody.get(key) or create())
            return everybody.setdefault(key, found)

        return shared

    r.replace(ResourceStore, "get_or_make", make)


@seam_mutant("stream-outlives-session", "random streams that a closed session had go on in the next one", SUITE)
def _(r: Replacements, target: Any) -> None:
    kept: dict[str, Any] = {}

    def make(stream: Any) -> Any:
        return lambda self, name: kept.setdefault(name, stream(self, name))

    r.replace(ResourceStore, "_stream", make)


@seam_mutant("lease-outlives-version", "runs go on with versions that many runs had before an update", SUITE)
def _(r: Replacements, target: Any) -> None:
    r.replace(VariableVersion, "end_standing", lambda _: lambda self: True)
