"""Plans in which lists are dense tensors, for the shapes that were fed."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence

from timberframe_core.compiler.build import build_program
from timberframe_core.compiler.dense_graph import dense_graph, uses_lists
from timberframe_core.compiler.dense_lists import NotDenseError
from timberframe_core.compiler.ir import Program, Subgraph
from timberframe_core.compiler.plan import Located, Plan
from timberframe_core.errors import OpError
from timberframe_core.fallback import failures_noted, report_failure
from timberframe_core.shapes import StaticShape

_PLANS = 16  # shapes of one combination of fetches and feeds that plans are kept for
_MAX_FAILURES = 3  # after so many shapes without success no further one is tried


def worth_trying(program: Program) -> bool:
    """Whether a program has a loop that works on lists."""
    return any(n.op.role == "loop" and any(uses_lists(f) for f in n.bodies) for n in program.nodes)


class DensePlans:
    """The plans of one combination of fetches and feeds.

    make: makes a plan of a program. skipped_rewrites: gets what fails.
    """

    def __init__(
        self, subgraph: Subgraph, make: Callable[[Callable[[], Program]], Plan], skipped_rewrites: list[str]
    ) -> None:
        self._subgraph = subgraph
        self._skipped_rewrites = skipped_rewrites
        self._make = make
        self._plans: OrderedDict[tuple[StaticShape, ...], Plan | None] = OrderedDict()
        self._lock = threading.Lock()
        self._failures = 0

    def find(self, inputs: Sequence[Located]) -> Plan | None:
        """The plan for these feeds; None where the executor must keep the lists, or drive a loop all the same."""
        shapes = tuple([tuple(a.shape) for a, _ in inputs])
        with self._lock:
            if shapes in self._plans:
                self._plans.move_to_end(shapes)
                return self._plans[shapes]
            if self._failures >= _MAX_FAILURES:
                return None
            plan = self._plans[shapes] = self._try(shapes, inputs)
            self._failures = self._failures + 1 if plan is None else 0
            if len(self._plans) > _PLANS:
                self._plans.popitem(last=False)
            return plan

    def _try(self, shapes: Sequence[StaticShape], inputs: Sequence[Located]) -> Plan | None:
        try:
            graph, fetches, feeds = dense_graph(self._subgraph, shapes)
            plan = self._make(lambda: build_program(graph, fetches, feeds))
            driven = plan.bind(inputs).facts.driven
        except (NotDenseError, OpError):  # an error of the user's graph comes again, and in its own words
            return None
        except Exception as e:
            with failures_noted(self._skipped_rewrites):
                report_failure("making dense tensors of lists", e)
            return None
        if any(n.host_driven or n in driven for n in plan.program.nodes if n.op.role == "loop"):
            self._skipped_rewrites.extend(plan.skipped_rewrites)
            return None
        return plan

    def release(self) -> None:
        """Drops all plans, and with them their memory."""
        with self._lock:
            for plan in self._plans.values():
                if plan is not None:
                    plan.release()
            self._plans.clear()
