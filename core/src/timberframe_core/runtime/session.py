"""Session: runs graphs, keeps variables and plans."""

from __future__ import annotations

import sys
import threading
import weakref
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from types import NoneType, TracebackType
from typing import TYPE_CHECKING, Any, TypeVar

from timberframe_core.arguments import instance, listed
from timberframe_core.config import RunOptions, SessionConfig
from timberframe_core.errors import (
    CancelledError,
    InvalidArgumentError,
    InvalidTypeError,
    UnimplementedError,
    WrongStateError,
)
from timberframe_core.graph.defaults import Evaluator, sessions
from timberframe_core.graph.graph import Graph, get_default_graph
from timberframe_core.plugin.contracts import CancelToken, RunContext, TraceSink
from timberframe_core.plugin.state import Position
from timberframe_core.runtime import local_target as _local_target  # noqa: F401  # registers the target ""
from timberframe_core.runtime.checks import Checks
from timberframe_core.runtime.device_array import DeviceArray
from timberframe_core.runtime.fed_variables import further_reads
from timberframe_core.runtime.feeds import feed_counts, feed_tensors
from timberframe_core.runtime.fetches import Fetches, structure_key
from timberframe_core.runtime.partial_run import PartialPlan, PartialRun
from timberframe_core.runtime.runner import ComposedRunner, Runner
from timberframe_core.runtime.runtime import Runtime
from timberframe_core.runtime.targets import find_target
from timberframe_core.runtime.variable_values import assign_variables, read_variables

if TYPE_CHECKING:
    from timberframe_core.runtime.explain import Explanation

P = TypeVar("P")

_PLANS = 256  # fetch and feed combinations that are kept


_open: weakref.WeakSet[BaseSession] = weakref.WeakSet()
"""The sessions of the process, for `reset`."""


class BaseSession(Evaluator):
    """Runs operations of a graph. Thread-safe; several runs may be in flight at once.

    target: where devices are: "" is this process, others are URLs, by whose scheme their package is found. graph: the
    default graph if None. config: a SessionConfig or ConfigProto.
    lasting: it is eager execution's own, which `reset` does not close.
    After any error the session can be used, and each variable holds its value from before or after a completed assign.
    """

    def __init__(self, target: str = "", graph: Graph | None = None, config: Any = None, lasting: bool = False) -> None:
        kind, address = find_target(instance(target, str, "session target", "a str"))
        instance(graph, (Graph, NoneType), "Session: graph", "a tf.Graph")
        self.graph = graph if graph is not None else get_default_graph()
        if self.graph.eager and not lasting:
            raise WrongStateError(
                "tf.Session is made in eager execution, where operations have run already; "
                "make it with the graph that it is to run, tf.Session(graph=graph)"
            )
        self.config = SessionConfig.of(config)
        self._config = config  # what TensorFlow's sessions call it: programs read the settings that they gave
        self.target = target
        self.runtime = Runtime(kind.open(address, self.config), self.config)
        self.checks = Checks(self.config, self.runtime.devices) if Checks.wanted(self.config) else None
        self.closed = False
        self.lock = threading.RLock()
        self._plans: OrderedDict[Any, Any] = OrderedDict()
        """Runners, by their fetches and feeds, and plans of partial runs."""
        self._runners: weakref.WeakSet[Runner] = weakref.WeakSet()
        """Those of `_plans`, and others that callables and partial runs have."""
        self._version = self.graph.version
        self._active: set[CancelToken] = set()
        self._active_lock = threading.RLock()
        self._idle = threading.Condition(self._active_lock)
        if not lasting:
            _open.add(self)

    # Running

    def run(
        self, fetches: Any, feed_dict: Mapping[Any, Any] | None = None, options: Any = None, run_metadata: Any = None
    ) -> Any:
        """Runs what `fetches` needs and returns its values in the same structure (None for an operation).

        fetches: a Tensor, Operation or name, or lists, tuples and dicts of these. feed_dict: values for tensors, by
        tensor or name. options: RunOptions. run_metadata: a RunMetadata that is filled.
        """
        feeds = feed_dict or {}
        runner = self._runner(fetches, feeds)
        if options is None and run_metadata is None:
            direct = runner.direct
            if direct is not None:
                return direct(*feeds.values())
            if not self.config.operation_timeout_in_ms:
                return runner.run(feeds, self.context())
        from timberframe_core.runtime.options import run_with_options

        return run_with_options(self, runner, feeds, RunOptions.of(options), run_metadata)

    def run_until(self, cancel: CancelToken, fetches: Any) -> Any:
        """Runs without feeds, as `run` does; cancel: a new one for each run, which ends it from another thread."""
        context = self.context()
        context.cancel = cancel
        return self._runner(fetches, {}).run({}, context)

    def context(self, trace: TraceSink | None = None) -> RunContext:
        """Returns the context of a run, with the checks that the settings ask for."""
        if self.checks is not None:
            return self.checks.context(trace)
        return RunContext() if trace is None else RunContext(trace=trace, mode="nodes")

    def _runner(self, fetches: Any, feed_dict: Mapping[Any, Any]) -> Runner:
        try:
            key = structure_key(fetches), tuple(feed_dict)
            runner = self._plans.get(key)
        except RecursionError:
            raise InvalidArgumentError(
                f"fetches are nested deeper than the recursion limit of {sys.getrecursionlimit()} allows; "
                "flatter ones are required"
            ) from None
        except TypeError as e:
            raise InvalidTypeError(
                f"fetches or feeds cannot be used as keys ({e}); tensors or names are required"
            ) from None
        if runner is None or self._version != self.graph.version:
            runner = self._planned(key, partial(self._make_runner, fetches, feed_dict))
        if self.closed:
            raise WrongStateError("session is closed; make a new one to run again")
        return runner

    def _make_runner(self, fetches: Any, feed_dict: Mapping[Any, Any]) -> Runner:
        if not len(self.graph):
            raise WrongStateError(
                "the session's graph has no operations; add some, or make the session with the graph that has them"
            )
        wanted, feeds = Fetches(self.graph, fetches), feed_tensors(self.graph, feed_dict)
        counts, further = feed_counts(feed_dict), further_reads(wanted.elements, feeds)
        if counts or further.tensors:
            counts = counts or (1,) * len(feeds)
            return self.add_runner(ComposedRunner(self, self.graph, wanted, feeds, counts, further))
        return self.add_runner(Runner(self, self.graph, wanted, feeds))

    def _planned(self, key: Any, make: Callable[[], P]) -> P:
        """Returns what is kept under a key, made where it is not there or the graph has changed."""
        with self.lock:
            if self.closed:
                raise WrongStateError("session is closed; make a new one to run again")
            if self._version != self.graph.version:
                self._plans.clear()
                self._version = self.graph.version
            found: P | None = self._plans.get(key)
            if found is None:
                found = self._plans[key] = make()
                if len(self._plans) > _PLANS:
                    self._plans.popitem(last=False)
            return found

    def add_runner(self, runner: Runner) -> Runner:
        """Makes `close` end the runner, and `set_positions` have it planned again."""
        self._runners.add(runner)
        return runner

    def make_callable(self, fetches: Any, feed_list: Sequence[Any] | None = None, accept_options: bool = False) -> Any:
        """Returns a function of the feeds in `feed_list` that returns what `run` would: the
        fastest way to run again.
        """
        feeds = listed(feed_list or (), "make_callable: feed_list", "tensors or names")
        runner = self._runner(fetches, dict.fromkeys(feeds))

        count = len(feeds)

        def call(*values: Any) -> Any:
            if len(values) != count:
                raise InvalidArgumentError(f"callable was given {len(values)} values; {count} feeds are required")
            direct = runner.direct
            return direct(*values) if direct is not None else runner.run_values(values, self.context())

        def call_with_options(*values: Any, options: Any = None, run_metadata: Any = None) -> Any:
            if options is None and run_metadata is None:
                return call(*values)
            return self.run(fetches, dict(zip(feeds, values, strict=True)), options, run_metadata)

        return call_with_options if accept_options else call

    def partial_run_setup(self, fetches: Any, feeds: Sequence[Any] | None = None) -> PartialRun:
        """Begins a run in several steps; returns the handle that `partial_run` takes.

        fetches, feeds: all that the steps will fetch and feed, as for `run` and `make_callable`.
        """
        given = listed(feeds or (), "partial_run_setup: feeds", "tensors or names")

        def make() -> PartialPlan:
            tensors = feed_tensors(self.graph, dict.fromkeys(given))
            return PartialPlan(self, self.graph, Fetches(self.graph, fetches), tensors)

        return PartialRun(self._planned((PartialPlan, structure_key(fetches), tuple(given)), make))

    def partial_run(self, handle: PartialRun, fetches: Any, feed_dict: Mapping[Any, Any] | None = None) -> Any:
        """Takes the next step of a run: feeds, then runs what `fetches` needs beyond what earlier steps have run.

        fetches, feed_dict: as for `run`; each that was given to `partial_run_setup` may be given once. Each operation
        runs once, in the first step whose fetches need it. Raises InvalidArgumentError where they need a feed
        that has no value yet, for what was not given to `partial_run_setup`, and after the last step or a failed one.
        """
        if not isinstance(handle, PartialRun) or handle.plan.session is not self:
            raise InvalidArgumentError(
                f"partial_run: {handle!r} is no handle of this session; what its partial_run_setup returns is required"
            )
        return handle.run(fetches, feed_dict or {})

    # Variables

    def read_variables(self, variables: Sequence[Any]) -> list[DeviceArray | None]:
        """Returns the values of all these variables at one moment, None for those that have none. Nothing is copied.

        variables: tf.Variables, or their VarHandleOps. A later update leaves what was read as it is.
        """
        return read_variables(self, variables)

    def assign_variables(self, variables: Sequence[Any], values: Sequence[Any]) -> None:
        """Gives all these variables their values or, after an error, none.

        variables: as for `read_variables`. values: for each an array of its dtype and shape, or what becomes one.
        Raises InvalidArgumentError where one does not suit.
        """
        assign_variables(self, variables, values)

    # Positions

    def read_positions(self) -> dict[str, Position]:
        """Returns how far random streams, iterators and other resources with a position have come:
        parts by name, by resource.

        Each part is an array or bytes. A session of the same graph that is given them goes on with the same numbers and
        elements. They belong together where no run is in flight. Those of other processes name their task. Raises
        UnimplementedError on a target that gives none.
        """
        self._check_positions("read_positions")
        return self.runtime.positions()

    def set_positions(self, positions: Mapping[str, Position]) -> None:
        """Makes random streams, iterators and other resources go on from where
        `read_positions` of a session found them.

        Resources that are not made yet begin there; those that are not named stay where they are.
        """
        self._check_positions("set_positions")
        if self.runtime.set_positions(positions):
            with self.lock:
                self.runtime.forget_functions()
                for runner in list(self._runners):
                    runner.make_plan()

    def _check_positions(self, what: str) -> None:
        if self.closed:
            raise WrongStateError(f"{what}: the session is closed, and its resources are gone")
        if self.target and not self.runtime.positions_elsewhere:
            raise UnimplementedError(
                f"{what}: target '{self.target}' gives no positions of its resources; one with `positions` is required"
            )

    # Looking

    @property
    def graph_def(self) -> Any:
        """The graph as a GraphDef."""
        return self.graph.as_graph_def()

    @property
    def sess_str(self) -> bytes:
        """The target."""
        return self.target.encode()

    def list_devices(self) -> list[Any]:
        """Returns the devices that the session may use, best first; `name` is the full name of
        one, `spec` that in messages.
        """
        return list(self.runtime.devices.devices)

    def explain(self, fetches: Any, feed_dict: Mapping[Any, Any] | None = None) -> Explanation:
        """Returns how a run would go: placement with reasons, stages, peak memory; str() gives it as text.

        feed_dict gives shapes by its values. Placeholders that it leaves out count as fed; memory is given only where
        their static shapes are fully known.
        """
        from timberframe_core.runtime.explain import example_feeds, explain_plan

        feeds = example_feeds(self.graph, fetches, feed_dict or {})
        runner = self._runner(fetches, feeds)
        with runner.room():
            return explain_plan(runner, feeds)

    # Closing

    def close(self) -> None:
        """Cancels runs in flight, waits for them, and drops variables and plans; may be repeated."""
        with self._idle:
            self.closed = True
            for token in self._active:
                token.cancel(CancelledError("the session was closed during the run"))
            self._idle.wait_for(lambda: not self._active, timeout=30)
        with self.lock:
            for runner in list(self._runners):
                runner.release()
            self._plans.clear()
            self.runtime.close()

    @staticmethod
    def reset(target: str = "", containers: Sequence[str] | None = None, config: Any = None) -> None:
        """Closes all sessions of this process on a target, and drops what they and others left in its containers.

        containers: names; None for all. A session on "" keeps its resources by itself, so all of them are dropped.
        """
        kind, address = find_target(instance(target, str, "session target", "a str"))
        for session in [s for s in _open if s.target == target]:
            session.close()
        kind.reset(address, listed(containers or (), "Session.reset: containers", "names"))

    def begin(self, token: CancelToken) -> None:
        """Marks a run as in flight, so that close() can cancel it."""
        with self._active_lock:
            if self.closed:
                raise WrongStateError("session is closed; make a new one to run again")
            self._active.add(token)

    def end(self, token: CancelToken) -> None:
        """Marks a run as over."""
        with self._active_lock:
            self._active.discard(token)
            if self.closed and not self._active:  # `close` waits
                self._idle.notify_all()

    def as_default(self) -> Any:
        """Returns a context in which `Tensor.eval` and `Operation.run` use this session."""
        return _as_default(self)


@contextmanager
def _as_default(session: BaseSession) -> Any:
    sessions.stack.append(session)
    try:
        with session.graph.as_default():
            yield session
    finally:
        sessions.remove(session)


class Session(BaseSession):
    """A session that is also a context manager: inside `with` it is the default one, after it it is closed."""

    def __enter__(self) -> Session:
        self._context = self.as_default()
        self._context.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._context.__exit__(kind, error, trace)
        self.close()


class InteractiveSession(BaseSession):
    """A session that is the default one from the start until it is closed."""

    def __init__(self, target: str = "", graph: Graph | None = None, config: Any = None) -> None:
        super().__init__(target, graph, config)
        self._context = self.as_default()
        self._context.__enter__()

    def close(self) -> None:
        """Ends being the default session, and closes."""
        if not self.closed:
            self._context.__exit__(None, None, None)
        super().close()
