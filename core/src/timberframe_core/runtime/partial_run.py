"""Partial runs: one run of a graph in several steps, each of which feeds and fetches a part of what was announced."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from timberframe_core.compiler.build import is_fed, prune, subgraph
from timberframe_core.compiler.ir import Subgraph
from timberframe_core.compiler.plan import Located
from timberframe_core.config import RunOptions
from timberframe_core.dtypes import resource
from timberframe_core.errors import InvalidArgumentError, UnimplementedError
from timberframe_core.graph.graph import Graph
from timberframe_core.graph.operation import Operation, Tensor
from timberframe_core.plugin.contracts import CancelToken
from timberframe_core.runtime.fed_variables import further_reads
from timberframe_core.runtime.feeds import feed_counts, feed_tensors, flat_feeds, locate_feed
from timberframe_core.runtime.fetches import Fetches
from timberframe_core.runtime.located import copied, to_host
from timberframe_core.runtime.options import Deadline
from timberframe_core.runtime.runner import Runner, scalar

if TYPE_CHECKING:
    from timberframe_core.runtime.session import BaseSession

_STEPS = 64  # that are kept of those that may come next
_USES_OF_ARRAYS = ("use_array", "make_gradient_array")


class Progress:
    """How far a partial run has come. done: the operations that have run, each once.

    known: tensors whose values later steps need. fed, fetched: which of the announced feeds and elements were given.
    """

    def __init__(
        self,
        done: frozenset[Operation] = frozenset(),
        known: Sequence[Tensor] = (),
        fed: frozenset[Tensor] = frozenset(),
        fetched: frozenset[Tensor | Operation] = frozenset(),
    ) -> None:
        self.done, self.known, self.fed, self.fetched = done, known, fed, fetched
        self.steps: dict[Any, Step] = {}
        """Those that have been taken from here, by their elements and feeds."""


class Step(NamedTuple):
    """What one call of `partial_run` runs, and where it leads.

    runner: None where there is nothing to run. made: the tensors whose values it gives.
    """

    runner: Runner | None
    made: Sequence[Tensor]
    after: Progress


class PartialPlan:
    """The fetches and feeds that `partial_run_setup` was given, and the steps in which they have been asked for so far.

    The operations that all of them need are rewritten once. A step takes those that its fetches need and that have not
    run, and leaves the values that later steps need.
    """

    def __init__(self, session: BaseSession, graph: Graph, fetches: Fetches, feeds: Sequence[Tensor]) -> None:
        if not fetches.elements:
            raise InvalidArgumentError("partial_run_setup: no fetches; at least one Tensor or Operation is required")
        self.session, self.graph = session, graph
        self.elements, self.feeds = fetches.elements, feeds
        further = further_reads(self.elements, feeds)
        every = [*feeds, *further.tensors]
        self._whole = session.runtime.pipeline.rewrite_graph(subgraph(graph, self.elements, every), [])
        fed_as = dict(zip(every, self._whole.feeds, strict=True))
        self.fed_as = {t: [fed_as[t]] for t in feeds}
        """What a feed gives a value to: itself, and other reads of the same variable."""
        for t, i in zip(further.tensors, further.sources, strict=True):
            self.fed_as[feeds[i]].append(fed_as[t])
        self.fetched_as = dict(zip(self.elements, self._whole.fetches, strict=True))
        self.start = Progress()

    def step(self, progress: Progress, elements: Sequence[Tensor | Operation], feeds: Sequence[Tensor]) -> Step:
        """Returns the step that feeds and fetches these."""
        key = tuple(elements), tuple(feeds)
        found = progress.steps.get(key)
        if found is None:
            with self.session.lock:
                if len(progress.steps) >= _STEPS:
                    progress.steps.clear()
                found = progress.steps[key] = self._make(progress, elements, feeds)
        return found

    def _make(self, progress: Progress, elements: Sequence[Tensor | Operation], feeds: Sequence[Tensor]) -> Step:
        fed, fetched = progress.fed.union(feeds), progress.fetched.union(elements)
        wanted = [x for e in elements for x in self.fetched_as[e] if x not in progress.done]
        order = self._order(progress.done, wanted, [x for t in self.feeds if t not in fed for x in self.fed_as[t]])
        done = progress.done.union(op for op in order if not _is_made_again(op))
        later = {t for op in self._whole.order if op not in done for t in op.inputs}
        later.update(x for e in self.elements if e not in fetched for x in self.fetched_as[e] if isinstance(x, Tensor))
        known = [*progress.known, *(x for t in feeds for x in self.fed_as[t])]
        results = list(dict.fromkeys([*wanted, *(t for op in order if op in done for t in op.outputs if t in later)]))
        made = [x for x in results if isinstance(x, Tensor)]
        kept = [t for t in dict.fromkeys([*known, *made]) if t in later]
        return Step(self._runner(order, known, results), made, Progress(done, kept, fed, fetched))

    def _order(
        self, done: frozenset[Operation], wanted: Sequence[Tensor | Operation], pending: Sequence[Tensor]
    ) -> list[Operation]:
        """Returns the operations that `wanted` needs beyond `done`; raises where they need a
        pending feed, or an array.
        """
        there = {t for op in done for t in op.outputs}.union(self._whole.feeds)
        needed = set(prune(wanted, there)) - done
        order = [op for op in self._whole.order if op in needed]
        used = {t for op in order for t in op.inputs}.union(wanted, *(op.outputs for op in order if is_fed(op, there)))
        for t in pending:
            if t in used:
                raise InvalidArgumentError(
                    f"partial_run: the fetches need feed '{t.name}', which has no value yet; "
                    "feed it in this step or in an earlier one"
                )
        arrays = {op.inputs[0] for op in done if op.op_def.role in _USES_OF_ARRAYS}
        for op in order:
            if op.op_def.role in _USES_OF_ARRAYS and op.inputs[0] in arrays:
                raise UnimplementedError(
                    f"{op.type} '{op.name}': works on an array of tensors that an earlier step of a partial run has "
                    "used; fetch all that needs the array in one step",
                    op.name,
                )
        return order

    def _runner(
        self, order: Sequence[Operation], known: Iterable[Tensor], results: Sequence[Tensor | Operation]
    ) -> Runner | None:
        if not results:
            return None
        used = {t for op in order for t in op.inputs}.union(results)
        feeds = tuple([t for t in known if t in used])
        part = Subgraph(self._whole.graph, order, [[x] for x in results], feeds)
        return self.session.add_runner(Runner(self.session, self.graph, Fetches.of(results), feeds, part))


def _is_made_again(op: Operation) -> bool:
    """Returns whether each step that needs the operation has its own: constants, for planning,
    and handles of resources.
    """
    return op.op_def.role == "constant" or any(t.dtype is resource or t.dtype.is_ref for t in op.outputs)


class PartialRun:
    """A run in steps, as `partial_run_setup` returns it. An error of a step ends it, where the step was to run."""

    def __init__(self, plan: PartialPlan) -> None:
        self.plan = plan
        self._progress: Progress | None = plan.start
        """None after an error."""
        self._values: dict[Tensor, Located] = {}
        self._lock = threading.Lock()

    def run(self, structure: Any, feed_dict: Mapping[Any, Any]) -> Any:
        """Returns one step; see `BaseSession.partial_run`."""
        plan, session = self.plan, self.plan.session
        fetches, feeds = Fetches(plan.graph, structure), feed_tensors(plan.graph, feed_dict)
        counts = feed_counts(feed_dict)
        values = flat_feeds(counts, list(feed_dict.values())) if counts else list(feed_dict.values())
        devices = session.runtime.devices.devices
        located = [locate_feed(t, v, devices) for t, v in zip(feeds, values, strict=True)]
        with self._lock:
            progress = self._check(fetches.elements, feeds)
            step = plan.step(progress, fetches.elements, feeds)
            self._progress = None
            self._run(step, feeds, located)
            results = [self._result(e) for e in fetches.elements]
            self._values = {t: self._values[t] for t in step.after.known}
            self._progress = step.after
        return fetches.assemble(results)

    def _check(self, elements: Sequence[Tensor | Operation], feeds: Sequence[Tensor]) -> Progress:
        """Returns how far the run has come; raises where the step asks for what it cannot have."""
        plan, progress = self.plan, self._progress
        if progress is None or len(progress.fed) + len(progress.fetched) == len(plan.feeds) + len(plan.elements):
            why = "has failed" if progress is None else "is over: all was fed and fetched"
            raise InvalidArgumentError(f"partial_run: the run {why}; another partial_run_setup is required")
        for what, given, announced, before in (
            ("feed", feeds, plan.feeds, progress.fed), ("fetch", elements, plan.elements, progress.fetched)
        ):  # fmt: skip
            for x in given:
                if x not in announced:
                    raise InvalidArgumentError(
                        f"partial_run: {what} '{x.name}' was not specified in partial_run_setup; it must be one of "
                        f"{', '.join(repr(y.name) for y in announced) or 'none'}"
                    )
                if x in before:
                    raise InvalidArgumentError(f"partial_run: {what} '{x.name}' was given before; once is required")
        return progress

    def _run(self, step: Step, feeds: Sequence[Tensor], located: Sequence[Located]) -> None:
        """Runs the step; then `_values` has what it fetches, and what later steps need."""
        plan, session, kept = self.plan, self.plan.session, set(step.after.known)
        for t, value in zip(feeds, located, strict=True):
            for x in plan.fed_as[t]:
                self._values[x] = _copied(value) if x in kept else value  # the caller may change what was fed
        if step.runner is not None:
            context = session.context()
            with Deadline(context.cancel, RunOptions(), session.config):
                inputs = [self._values[t] for t in step.runner.feeds]
                made = step.runner.run_located(inputs, context)
            self._values.update(zip(step.made, made, strict=True))

    def _result(self, element: Tensor | Operation) -> Any:
        """Returns the value of what was fetched, as an array of the caller's own; None for an operation."""
        if isinstance(element, Operation):
            return None
        (tensor,) = self.plan.fetched_as[element]
        assert isinstance(tensor, Tensor)
        return scalar(np.array(to_host(self._values[tensor], CancelToken())))


def _copied(value: Located) -> Located:
    array, home = value
    return (np.array(array), None) if home is None else copied(array, home)
