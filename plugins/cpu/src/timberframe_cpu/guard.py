"""Guard zones and poison: how a kernel that writes outside its output, or leaves some of it unwritten, is found."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np

from timberframe.errors import InternalError
from timberframe.plugin.contracts import Cluster
from timberframe_cpu.preparation import LOOPS, Control, InplacePairs, Prepared
from timberframe_sdk.memory import MemoryPlan

GUARD = 64
"""Bytes before and after each tensor that a kernel must leave alone."""
_POISON_BYTE = 0x7F  # large in every floating format, so that adding to it shows as well as keeping it

# Guard zones hold different bytes everywhere: a kernel that reads past its input and writes past its output by the same
# distance would copy one constant over itself.
_BYTES = np.random.default_rng(2026).integers(0, 256, 65_521, np.uint8)
_phases = itertools.count(1)


def _pattern(start: int, count: int) -> np.ndarray:
    """The guard bytes for `count` positions from `start` on."""
    return np.take(_BYTES, np.arange(start, start + count), mode="wrap")


def _check_zone(zone: np.ndarray, expected: np.ndarray, what: str, where: str) -> None:
    """Raises InternalError if bytes of a zone `before` or `after` a tensor were written; `what` begins the message."""
    wrong = np.flatnonzero(zone != expected)
    if wrong.size:
        offset = int(wrong[0]) - (zone.size if where == "before" else 0)
        fact = f"{wrong.size} bytes {where} it were written, the first at offset {offset}"
        raise InternalError(f"{what}: {fact}; a kernel writes inside its outputs only")


class GuardedArray:
    """An array full of poison between two guard zones. (One of objects has none: no C kernel sees it.)"""

    def __init__(self, dtype: np.dtype[Any], shape: tuple[int, ...]) -> None:
        self._zones: list[tuple[np.ndarray, np.ndarray, str]] = []
        if dtype.hasobject:
            self.array = np.empty(shape, dtype)
            return
        nbytes = dtype.itemsize * math.prod(shape)
        block = _pattern(4099 * next(_phases), nbytes + 3 * GUARD)
        start = GUARD + -block.ctypes.data % GUARD
        before, after = block[:start], block[start + nbytes :]
        self._zones = [(before, before.copy(), "before"), (after, after.copy(), "after")]
        block[start : start + nbytes] = _POISON_BYTE
        self.array = block[start : start + nbytes].view(dtype).reshape(shape)

    def check(self, what: str) -> None:
        """Raises InternalError if a guard zone was written."""
        for zone, expected, where in self._zones:
            _check_zone(zone, expected, what, where)


def plan_guarded(cluster: Cluster, inplace: InplacePairs, alignment: int) -> MemoryPlan:
    """Like the SDK's planner, but nothing shares memory and a guard zone lies around each tensor."""
    escaping = {v.id for v in cluster.outputs if not v.dynamic} | {u.new.id for u in cluster.updates}
    plan = MemoryPlan(arena=GUARD)

    def place(nbytes: int) -> int:
        offset = plan.arena
        plan.arena += -(-nbytes // alignment) * alignment + GUARD
        return offset

    for i, node in enumerate(cluster.nodes):
        for value in node.outputs:
            if value.id not in escaping and not value.dtype.hasobject:
                plan.offsets[value.id] = place(value.nbytes)
        if node.workspace_bytes:
            plan.workspaces[i] = place(node.workspace_bytes)
            plan.workspace = max(plan.workspace, node.workspace_bytes)
    return plan


class GuardedArena:
    """The guard zones of an arena that `plan_guarded` laid out."""

    def __init__(self, prepared: Prepared, arena: np.ndarray) -> None:
        self._arena = arena[: prepared.plan.arena]
        self._expected = _pattern(0, prepared.plan.arena)
        self._guarded = np.ones(prepared.plan.arena, np.bool_)
        self._free_tensors(prepared, 0)
        self._arena[:] = np.where(self._guarded, self._expected, np.uint8(_POISON_BYTE))

    def _free_tensors(self, prepared: Prepared, base: int) -> None:
        for i, node in enumerate(prepared.nodes):
            for value in node.outputs:
                if value.id in prepared.plan.offsets:
                    self._free(base + prepared.plan.offsets[value.id], value.nbytes)
            control = prepared.controls.get(i)
            if control is not None:
                self._free_control(control, node.op in LOOPS, base + prepared.plan.workspaces[i])
            elif node.workspace_bytes:
                self._free(base + prepared.plan.workspaces[i], node.workspace_bytes)

    def _free_control(self, control: Control, loop: bool, base: int) -> None:
        if loop:
            self._free(base + control.predicate, control.bodies[0].cluster.outputs[0].nbytes)
        for variable in control.variables:
            if variable.result is not None:
                self._free(base + variable.buffer, variable.state.nbytes)
        for body, start in zip(control.bodies, control.bases, strict=True):
            self._free_tensors(body, base + start)

    def _free(self, offset: int, nbytes: int) -> None:
        self._guarded[offset : offset + nbytes] = False

    def check_tensor(self, offset: int, nbytes: int, what: str) -> None:
        """Raises InternalError if the zone before or after a tensor was written."""
        before, after = slice(offset - GUARD, offset), slice(offset + nbytes, offset + nbytes + GUARD)
        _check_zone(self._arena[before], self._expected[before], what, "before")
        _check_zone(self._arena[after], self._expected[after], what, "after")

    def check_all(self, what: str) -> None:
        """Raises InternalError if any zone was written, those inside loops included."""
        wrong = np.flatnonzero(self._guarded & (self._arena != self._expected))
        if wrong.size:
            raise InternalError(
                f"{what}: {wrong.size} bytes between tensors were written, the first at arena offset {wrong[0]}; "
                "a kernel writes inside its outputs only"
            )
