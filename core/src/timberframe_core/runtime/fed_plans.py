"""Plans for the shapes of one set of feeds, of graphs that passes made for these shapes."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

from timberframe_core.compiler.build import build_program
from timberframe_core.compiler.passes.pipeline import PassReport
from timberframe_core.compiler.plan import Located, Plan
from timberframe_core.errors import OpError
from timberframe_core.fallback import failures_noted, report_failure
from timberframe_core.shapes import StaticShape

if TYPE_CHECKING:
    from timberframe_core.runtime.runtime import Runtime

_PLANS = 16  # shapes of one combination of fetches and feeds that plans are kept for
_MAX_FAILURES = 3  # after so many shapes without success no further one is tried


@dataclass(frozen=True)
class FedPlan:
    """The plan for some shapes, None where that for all shapes is used; and what the passes did."""

    plan: Plan | None = None
    reports: Sequence[PassReport] = field(default=())


class FedPlans:
    """The plans that passes of phase `fed_graph` lead to. general: the one for all shapes.

    idle: no pass found anything to rewrite in the graph, so that none will for other shapes.
    """

    def __init__(self, general: Plan, runtime: Runtime) -> None:
        self.idle = False
        self._general = general
        self._runtime = runtime
        self._plans: OrderedDict[tuple[StaticShape, ...], FedPlan] = OrderedDict()
        self._lock = threading.Lock()
        self._failures = 0

    def find(self, inputs: Sequence[Located]) -> FedPlan:
        """Returns the plan for these feeds."""
        shapes = tuple([tuple(a.shape) for a, _ in inputs])
        with self._lock:
            found = self._plans.get(shapes)
            if found is not None:
                self._plans.move_to_end(shapes)
            elif self._failures >= _MAX_FAILURES:
                found = FedPlan()
            else:
                with failures_noted(self._general.skipped_rewrites):
                    found = self._plans[shapes] = self._make(shapes, inputs)
                self._failures = self._failures + 1 if found.plan is None else 0
                if len(self._plans) > _PLANS:
                    self._plans.popitem(last=False)
            return found

    def _make(self, shapes: Sequence[StaticShape], inputs: Sequence[Located]) -> FedPlan:
        reports: list[PassReport] = []
        source = self._general.program.source
        made = self._runtime.pipeline.rewrite_graph(source, reports, shapes)
        if made is source:
            self.idle = not any(r.failure or r.declined for r in reports)
            return FedPlan(None, reports)
        try:
            plan = self._runtime.plan(partial(build_program, made))
            driven = {n.name: why for n, why in plan.bind(inputs).facts.driven.items()}
        except OpError:  # an error of the user's graph comes again, and in its own words
            return FedPlan()
        except Exception as e:
            report_failure("what passes made of the graph for the shapes of its feeds", e)
            return FedPlan()
        driven |= {n.name: n.driven_because for n in plan.program.nodes if n.bodies and n.host_driven}
        left = next((name for r in reports for name in r.rewritten if name in driven), None)
        if left is None:
            return FedPlan(plan, reports)
        self._general.skipped_rewrites.extend(plan.skipped_rewrites)
        plan.release()
        return FedPlan(None, [_taken_back(r, driven, left) for r in reports])

    def release(self) -> None:
        """Drops all plans, and with them their memory."""
        with self._lock:
            for found in self._plans.values():
                if found.plan is not None:
                    found.plan.release()
            self._plans.clear()


def _taken_back(report: PassReport, driven: Mapping[str, str], left: str) -> PassReport:
    """Returns the report of a pass whose graph is not used, since the executor would drive the loop
    `left`, or more, as before.

    driven: the loops that it would drive, and why.
    """
    declined = [(n, f"the executor would drive it all the same: {driven[n]}") for n in report.rewritten if n in driven]
    others = [(n, f"the executor would drive '{left}' all the same") for n in report.rewritten if n not in driven]
    return PassReport(report.name, (), report.failure, (*report.declined, *declined, *others))
