"""Schedules: writes the units of a region into a scope, conditions and loops being turned into If and While."""

from __future__ import annotations

import heapq
from collections.abc import Iterable

import numpy as np

from timberframe_core.errors import UnimplementedError
from timberframe_core.graph.operation import Tensor
from timberframe_ops.passes.raising.branches import emit_branches
from timberframe_ops.passes.raising.loops import emit_loop
from timberframe_ops.passes.raising.regions import Condition, Region, Unit
from timberframe_ops.passes.raising.scope import Scope


class Schedule:
    """Emits units of a region into a scope in which `holds` is known to hold.

    Units run as soon as they can. Those under a further condition are kept back until nothing else can run, and then
    all that share a predicate go into one If.
    """

    def __init__(self, scope: Scope, region: Region, units: Iterable[Unit], holds: Condition) -> None:
        self.scope = scope
        self.region = region
        self.holds = holds
        self.units = sorted(units, key=lambda u: u.position)
        self.left: dict[Unit, int] = {}
        self.followers: dict[Unit, list[Unit]] = {}
        self.free: list[tuple[int, Unit]] = []
        self.kept: dict[Tensor, list[tuple[int, Unit]]] = {}
        self._connect()

    def nested(self, scope: Scope, units: Iterable[Unit], holds: Condition, region: Region | None = None) -> Schedule:
        """Returns a schedule of the same kind for a body."""
        return Schedule(scope, region or self.region, units, holds)

    def _connect(self) -> None:
        present = set(self.units)
        for unit in self.units:
            needs = [n for n in self._needs(unit) | unit.after if n in present]
            self.left[unit] = len(needs)
            for need in needs:
                self.followers.setdefault(need, []).append(unit)
            if not needs:
                self._push(unit)

    def _needs(self, unit: Unit) -> set[Unit]:
        """Returns the units that must run before; of a Merge those that can be its source."""
        if not unit.merges:
            return unit.needs
        dead = {t for t in unit.inputs if not self.possible(self.region.condition(t))}
        return {n for n in unit.needs if not dead.intersection(n.outputs()) or set(n.operations()) & set(unit.controls)}

    def possible(self, condition: Condition | None) -> bool:
        """Returns whether the condition can hold here."""
        return condition is not None and not any((pred, not value) in self.holds for pred, value in condition)

    def predicate(self, unit: Unit) -> Tensor | None:
        """Returns the predicate on which it depends whether the unit runs, or which input a
        Merge takes; None for none.
        """
        further = self.region.literals((unit.condition or frozenset()) - self.holds)
        if not further and unit.merges:
            conditions = [self.region.condition(t) for t in unit.inputs]
            possible = [c - self.holds for c in conditions if c is not None and self.possible(c)]
            if all(possible):
                further = self.region.literals({literal for c in possible for literal in c})
        return further[0][0] if further else None

    def _push(self, unit: Unit) -> None:
        pred = self.predicate(unit)
        queue = self.free if pred is None else self.kept.setdefault(pred, [])
        heapq.heappush(queue, (unit.position, unit))

    def run(self) -> None:
        """Emits everything."""
        while self.free or self.kept:
            while self.free:
                _, unit = heapq.heappop(self.free)
                self._emit(unit)
                self._done(unit)
            if self.kept:
                pred = min(self.kept, key=lambda p: self.kept[p][0][0])
                self._branch(pred)
        stuck = [u for u in self.units if self.left[u] > 0]
        if stuck:
            raise UnimplementedError(f"{stuck[0].name}: waits for its own result; it must not be part of a cycle")

    def _done(self, unit: Unit) -> None:
        for follower in self.followers.get(unit, ()):
            self.left[follower] -= 1
            if not self.left[follower]:
                self._push(follower)

    def _branch(self, pred: Tensor) -> None:
        """Puts all units that wait for this predicate, and those that these make ready, into one If."""
        group: list[Unit] = []
        results: list[Unit] = []
        while self.kept.get(pred):
            _, unit = heapq.heappop(self.kept[pred])
            group.append(unit)
            if unit.merges and (unit.condition or frozenset()) <= self.holds:
                results.append(unit)
            else:
                self._done(unit)
        del self.kept[pred]
        emit_branches(self, pred, sorted(group, key=lambda u: u.position))
        for unit in results:
            self._done(unit)

    def _emit(self, unit: Unit) -> None:
        if unit.condition is None:
            return  # it never runs
        if unit.loop is not None:
            emit_loop(self, unit)
        elif unit.merges:
            self._emit_merge(unit)
        else:
            assert unit.operation is not None
            self.scope.emit(unit.operation)

    def _emit_merge(self, unit: Unit) -> None:
        """Emits a Merge whose source is known here."""
        op, scope = unit.operation, self.scope
        assert op is not None
        conditions = [self.region.condition(t) for t in op.inputs]
        i = next(i for i, c in enumerate(conditions) if c is not None and c <= self.holds)
        scope.set(op.outputs[0], scope.find(op.inputs[i]) if op.type == "RefMerge" else scope.value(op, i))
        if op.outputs[1] in self.region.consumers or op.outputs[1] in self.region.wanted:
            scope.set(op.outputs[1], scope.constant(np.int32(i), f"{op.name}/_index"))
        scope.wait_for_inputs(op)
