"""Runner: one combination of fetches and feeds of a session, made ready to run again and again."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from functools import partial
from typing import TYPE_CHECKING, Any

from timberframe_core import recursion
from timberframe_core.compiler.build import build_program, subgraph
from timberframe_core.compiler.ir import Subgraph
from timberframe_core.compiler.plan import Level, Located, Plan, collection_paused
from timberframe_core.dtypes import variant
from timberframe_core.errors import CancelledError, OpError
from timberframe_core.graph.graph import Graph
from timberframe_core.graph.operation import Tensor
from timberframe_core.plugin.contracts import RunContext
from timberframe_core.runtime.executor import Run, run_in_place, run_to_end
from timberframe_core.runtime.fed_plans import FedPlans
from timberframe_core.runtime.fed_variables import FurtherReads
from timberframe_core.runtime.feeds import FeedCount, flat_feeds, locate_feed
from timberframe_core.runtime.fetches import Fetches

if TYPE_CHECKING:
    from timberframe_core.runtime.session import BaseSession


class Runner:
    """One combination of fetches and feeds of a graph: its plan, and the shortest way through it."""

    def __init__(
        self,
        session: BaseSession,
        graph: Graph,
        fetches: Fetches,
        feeds: tuple[Tensor, ...],
        source: Subgraph | None = None,
    ) -> None:
        """source: the operations to run, where they are not all that the fetches need."""
        self.session = session
        self.fetches = fetches
        self.feeds = feeds
        self.direct: Callable[..., Any] | None = None
        """The shortest way for the shapes that ran last; calls the general way where it does not suit."""
        self._source = source or subgraph(graph, fetches.elements, feeds)
        self._levels = levels = recursion.levels_of(len(graph.functions))
        self.make_plan()
        self.may_be_direct = not session.config.operation_timeout_in_ms and session.checks is None
        """Whether plans of one call may be run as one."""
        self.room: Callable[[], AbstractContextManager[None]] = nullcontext
        """A context in which to compile and run."""
        if levels and any(n.bodies for n in self.plan.program.nodes):
            self.room = partial(recursion.nested, levels)
        self._is_tensor = [isinstance(e, Tensor) for e in fetches.elements]
        if session.config.log_device_placement:
            from timberframe_core import logging

            for p in self.plan.placements:
                rejected = "".join(f"; not {device}: {why}" for device, why in p.rejected if why not in p.reason)
                logging.show("%s: (%s): %s (%s%s)", p.node, p.op, p.device, p.reason, rejected)

    def make_plan(self) -> None:
        """Makes the plan, again where there is one: runs in flight end with the one that they began with."""
        runtime = self.session.runtime
        with collection_paused(), recursion.nested(self._levels):
            self.plan: Plan = runtime.plan(partial(build_program, self._source))
        lists = any(t.dtype is variant for t in self.feeds)  # which have elements of their own
        self.fed = FedPlans(self.plan, runtime) if runtime.pipeline.has("fed_graph") and not lists else None
        self.direct = None

    def run(self, feed_dict: Mapping[Any, Any], context: RunContext, on_device: bool = False) -> Any:
        return self.run_values(list(feed_dict.values()), context, on_device)

    def run_values(self, values: Sequence[Any], context: RunContext, on_device: bool = False) -> Any:
        """Runs with the feeds in order; on_device: what lies on a device stays there."""
        return self.fetches.assemble(self._elements(values, context, on_device))

    def _elements(self, values: Sequence[Any], context: RunContext, on_device: bool = False) -> list[Any]:
        """Returns the value of each element of the fetches, by the general way."""
        session = self.session
        inputs = self.located(values)
        session.begin(context.cancel)
        try:
            with self.room():
                plan = self.plan_for(inputs)
                run = Run(plan, inputs, session.runtime, context)
                results = iter(run_to_end(run, on_device))
            if not on_device:
                results = map(scalar, results)
            found = [next(results) if is_tensor else None for is_tensor in self._is_tensor]
        except BaseException as e:
            _stop(context, inputs, e)
            raise
        finally:
            session.end(context.cancel)
        if self.may_be_direct and run.level.schedule.one_call and context.trace is None:
            self._remember_direct(plan, run.level)
        return found

    def located(self, values: Sequence[Any]) -> list[Located]:
        """Returns the values of the feeds as arrays, each on the device where it is."""
        devices = self.session.runtime.devices.devices
        return [locate_feed(t, v, devices) for t, v in zip(self.feeds, values, strict=True)]

    def run_located(self, inputs: Sequence[Located], context: RunContext) -> list[Located]:
        """Runs with arrays wherever they are, which suit the feeds, and leaves the tensors among the results there."""
        session = self.session
        session.begin(context.cancel)
        try:
            with self.room():
                return run_in_place(Run(self.plan_for(inputs), inputs, session.runtime, context))
        except BaseException as e:
            _stop(context, inputs, e)
            raise
        finally:
            session.end(context.cancel)

    def plan_for(self, inputs: Sequence[Located]) -> Plan:
        """Returns the plan for these feeds: one for their shapes, where passes made another graph for these."""
        fed = self.fed
        if fed is None or fed.idle:
            return self.plan
        found = fed.find(inputs).plan
        return self.plan if found is None else found

    def _remember_direct(self, plan: Plan, level: Level) -> None:
        """Makes later runs of these shapes take the shortest way."""
        if level.direct is None:
            level.direct = (self._direct_call(plan, level),)
        (call,) = level.direct
        if self.direct is call:
            return
        with self.session.lock:
            if not self.session.closed:
                self.direct = call

    def release(self) -> None:
        """Gives back the memory of executables, and makes every later run take the general way, which then raises."""
        self.direct = None
        self.plan.release()
        if self.fed is not None:
            self.fed.release()

    def _direct_call(self, plan: Plan, level: Level) -> Callable[..., Any] | None:
        """Returns a call that skips the executor, on a device of the host's memory that offers one."""

        def general(*values: Any) -> Any:
            """Returns what `direct` gives, neither more nor less: the callers of `direct`
            assemble the results of both.
            """
            found = self._elements(values, RunContext())
            return found if len(found) > 1 else found[0]

        direct = self._direct_arrays(plan, level, general)
        if direct is None:
            return None
        assemble = self.fetches.assemble
        if self.fetches.single:
            cluster = level.only_stage.cluster
            return (
                direct if cluster is not None and cluster.outputs[0].shape else lambda *values: scalar(direct(*values))
            )
        if len(plan.results) == 1:
            return lambda *values: assemble([scalar(direct(*values))])
        return lambda *values: assemble([scalar(x) for x in direct(*values)])

    def direct_arrays(self, inputs: Sequence[Located], general: Callable[..., Any]) -> Callable[..., Any] | None:
        """Returns a call of host arrays of the shapes of these that gives the array, or the
        list of them, of the fetches.

        general: does the same for arrays that the call does not take. None where there is no such call.
        """
        plan = self.plan_for(inputs)
        return self._direct_arrays(plan, plan.bind(inputs), general) if self.may_be_direct else None

    def _direct_arrays(self, plan: Plan, level: Level, general: Callable[..., Any]) -> Callable[..., Any] | None:
        if not level.schedule.one_call:
            return None
        bound = level.only_stage
        exact = bound.inputs == plan.feeds and bound.outputs == plan.results and all(self._is_tensor)
        if bound.executable is None or bound.cluster is None or not bound.device.host_memory or not exact:
            return None
        if bound.cluster.updates:
            return None
        return bound.device.direct_call(bound.executable, general)


def _stop(context: RunContext, inputs: Sequence[Located], error: BaseException) -> None:
    """Ends what devices still do for a run that has failed, and waits for those of feeds, which may be given back."""
    context.cancel.cancel(error if isinstance(error, OpError) else CancelledError(f"the run has failed: {error!r}"))
    for home in {id(d): d for _, d in inputs if d is not None}.values():
        with suppress(OpError):  # the run's error is the one to raise
            home.synchronize()


class ComposedRunner(Runner):
    """A runner some of whose feeds are several: the arrays of a sparse tensor, or all reads of a variable.

    counts: how many tensors each key of the feeds means. further: reads that get the value of a feed, too.
    """

    def __init__(
        self,
        session: BaseSession,
        graph: Graph,
        fetches: Fetches,
        feeds: tuple[Tensor, ...],
        counts: Sequence[FeedCount],
        further: FurtherReads,
    ) -> None:
        super().__init__(session, graph, fetches, (*feeds, *further.tensors))
        self._counts = counts
        self._sources = further.sources
        self.may_be_direct = False  # the direct way takes one array for each feed

    def located(self, values: Sequence[Any]) -> list[Located]:
        flat = flat_feeds(self._counts, values)
        return super().located([*flat, *(flat[i] for i in self._sources)])


def scalar(array: Any) -> Any:
    """Returns a result as the caller gets it: TensorFlow returns NumPy scalars for 0-d tensors."""
    return array[()] if array.ndim == 0 else array
