"""Guard zones and inaccessible pages in an arena, and the layout that leaves room for them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from timberframe_cpu.allocator import ALIGNMENT
from timberframe_cpu.preparation import Control, InplacePairs, Prepared
from timberframe_sdk import Cluster, InternalError, role
from timberframe_sdk.memory import MemoryPlan
from timberframe_sdk.testing.guard import GUARD, POISON, check_zone, zone_bytes
from timberframe_sdk.testing.pages import PAGE, close_pages, place


@dataclass(frozen=True)
class GuardedLayout:
    """An arena in which nothing shares memory and a guard zone lies around each tensor.

    fence: ``start`` or ``end`` of each tensor lies at a page that nobody may read or write, see RunContext.
    """

    fence: str = ""
    shares: ClassVar[bool] = False

    @property
    def begin(self) -> int:
        """Where the first tensor of an arena may begin."""
        return PAGE if self.fence else GUARD

    def place(self, top: int, nbytes: int, alignment: int = 1) -> tuple[int, int]:
        """Returns where a tensor begins that is placed from `top` on, and where the next one may."""
        if self.fence:
            return place(top, nbytes, self.fence, alignment)
        return top, top + -(-nbytes // ALIGNMENT) * ALIGNMENT + GUARD

    def plan(self, cluster: Cluster, inplace: InplacePairs, alignment: int) -> MemoryPlan:
        """In the place of the SDK's planner."""
        escaping = {v.id for v in cluster.outputs if not v.dynamic} | {u.new.id for u in cluster.updates}
        plan = MemoryPlan(arena=self.begin)
        for i, node in enumerate(cluster.nodes):
            for value in node.outputs:
                if value.id not in escaping and not value.dtype.hasobject:
                    plan.offsets[value.id], plan.arena = self.place(plan.arena, value.nbytes)
            if node.workspace_bytes:
                plan.workspaces[i], plan.arena = self.place(plan.arena, node.workspace_bytes, alignment)
                plan.workspace = max(plan.workspace, node.workspace_bytes)
        return plan


class GuardedArena:
    """The guard zones of an arena that a GuardedLayout laid out; pages without a byte of a tensor become inaccessible
    where the layout has a fence."""

    def __init__(self, prepared: Prepared, arena: np.ndarray, fence: str = "") -> None:
        self._arena = arena[: prepared.plan.arena]
        self._expected = zone_bytes(0, prepared.plan.arena)
        self._guarded = np.ones(prepared.plan.arena, np.bool_)
        self._free_tensors(prepared, 0)
        self._arena[:] = np.where(self._guarded, self._expected, np.uint8(POISON))
        self._readable = np.ones(prepared.plan.arena, np.bool_)
        if fence:
            self._close_pages()
        self._zones = np.flatnonzero(self._guarded & self._readable)

    def _close_pages(self) -> None:
        empty = self._guarded.reshape(-1, PAGE).all(1)
        edges = np.flatnonzero(np.diff(empty, prepend=False, append=False)).reshape(-1, 2) * PAGE
        for begin, end in edges.tolist():
            if close_pages(self._arena[begin:end]):
                self._readable[begin:end] = False

    def _free_tensors(self, prepared: Prepared, base: int) -> None:
        for i, node in enumerate(prepared.nodes):
            for value in node.outputs:
                if value.id in prepared.plan.offsets:
                    self._free(base + prepared.plan.offsets[value.id], value.nbytes)
            control = prepared.controls.get(i)
            if control is not None:
                self._free_control(control, role(node.op) == "loop", base + prepared.plan.workspaces[i])
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
        for where, begin in (("before", offset - GUARD), ("after", offset + nbytes)):
            zone = np.arange(begin, begin + GUARD)
            zone = zone[self._readable[zone]]
            check_zone(self._arena[zone], self._expected[zone], what, where)

    def check_all(self, what: str) -> None:
        """Raises InternalError if any zone was written, those inside loops included."""
        wrong = self._zones[self._arena[self._zones] != self._expected[self._zones]]
        if wrong.size:
            raise InternalError(
                f"{what}: {wrong.size} bytes between tensors were written, the first at arena offset {wrong[0]}; "
                "a kernel writes inside its outputs only"
            )
