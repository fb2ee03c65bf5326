"""Host ops: ops that the executor carries out itself, on the host, without a kernel of any device.

What an op means stands in its OpDef; what the executor does for it is registered here: by the core for
lists and arrays of tensors, by the front end for queues and tables, by another package for its own ops.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from timberframe_core.dtypes import DType
from timberframe_core.errors import AlreadyExistsError, FailedPreconditionError, InvalidArgumentError, OpError
from timberframe_core.graph.inference import arg_ranges
from timberframe_core.ops.definition.opdef import Attrs, OpDef
from timberframe_core.plugin.contracts import CancelToken, Device

if TYPE_CHECKING:
    from timberframe_core.runtime.executor import Run
    from timberframe_core.runtime.functions import HostFunction
    from timberframe_core.runtime.host_steps import HostStep
    from timberframe_core.runtime.joins import Joins
    from timberframe_core.runtime.resources import ResourceStore

RunFunction = Callable[["HostCall"], Sequence[Any]]
"""Carries out one call and returns the outputs in order, without the handle of a resource that it makes.

An output is an array of the host, or a pair (array, device) of what stays on a device; in a pair, None as the device
is the host.
"""

F = TypeVar("F", bound=RunFunction)


class HostCall:
    """One call of a host op.

    inputs: those that are not resource handles, in order: arrays of the host, or pairs (array, device) for those that
    the registration names in `located`. A value of dtype variant is handed over as it is, such as a list of tensors.
    """

    __slots__ = ("_run", "_step", "inputs")

    def __init__(self, step: HostStep, inputs: Sequence[Any], run: Run) -> None:
        self._step = step
        self._run = run
        self.inputs = inputs

    @property
    def attrs(self) -> Attrs:
        """All attrs of the node, type attrs as DType."""
        return self._step.node.attrs

    @property
    def device(self) -> Device:
        """Where the node was placed. An output may be left there, or on any other device."""
        return self._step.device

    @property
    def op(self) -> str:
        """Name of the op."""
        return self._step.node.op.name

    @property
    def definition(self) -> OpDef:
        return self._step.node.op

    @property
    def name(self) -> str:
        """Name of the node."""
        return self._step.node.name

    @property
    def where(self) -> str:
        """The user's line that made the node, empty where there is none."""
        return self._step.node.where or ""

    @property
    def path(self) -> str:
        """Name of the node with the loops, branches and calls that it is in: another one for each node of a session."""
        return self._run.plan.scope + self._step.node.name

    @property
    def dtypes(self) -> list[DType]:
        """Dtypes of the outputs."""
        return [x.dtype for x in self._step.node.outputs]

    @property
    def cancel(self) -> CancelToken:
        """What stops the run: an op that takes long calls its `check`, one that waits its `wait_for`."""
        return self._run.context.cancel

    @property
    def resources(self) -> ResourceStore:
        """What is kept between runs."""
        return self._run.runtime.resources

    @property
    def run_state(self) -> dict[Any, Any]:
        """What is kept for this run alone, the bodies of its loops and branches included."""
        return self._run.state

    @property
    def joins(self) -> Joins:
        """Puts arrays together and takes them apart on the devices where they are."""
        return self._run.runtime.joins

    @property
    def made(self) -> str:
        """Key of the resource whose handle is the output."""
        return self._step.made

    def handle(self, index: int = 0) -> str:
        """Key of the resource that a handle among the inputs means; index counts the handles alone."""
        return self._step.handles[index]

    def uninitialized(self, index: int = 0) -> FailedPreconditionError:
        """The error of an op that needs the value of a variable which has none; index: which of the handles."""
        return self._step.uninitialized(index)

    def function(self, index: int = 0, handles: Mapping[int, str] | None = None) -> HostFunction:
        """A function that the attrs of the node name, to be called by the op; index: which of them.

        handles: what those of its inputs that are handles mean, by their positions among all its inputs.
        """
        return self._step.function(index, handles or {}, self._run)

    def error(self, message: str, kind: type[OpError] = InvalidArgumentError) -> OpError:
        """An error to raise, `message` being ``<fact with the actual values>; <what is required>``."""
        return kind(f"{self.op} '{self.name}': {message}", self.name)


@dataclass(frozen=True)
class HostOp:
    """How the executor carries out an op. located: names of the inputs that arrive as pairs (array, device).

    plugin: the one whose module registered it when it was loaded; sessions without that plugin lack it. shared: whether
    it is carried out in a worker where its resource, which has a `shared_name`, is there.
    """

    name: str
    run: RunFunction
    located: tuple[str, ...] = ()
    plugin: str = ""
    shared: bool = False

    def located_inputs(self, definition: OpDef, attrs: Attrs) -> frozenset[int]:
        """Positions of the inputs of a node that arrive as pairs (array, device)."""
        if not self.located:
            return frozenset()
        ranges = arg_ranges(definition.inputs, attrs)
        return frozenset(i for name in self.located for i in ranges[name])

    def origin(self) -> str:
        """Module and name of the function."""
        return f"{getattr(self.run, '__module__', '?')}.{getattr(self.run, '__qualname__', self.run)}"


_registered: dict[str, HostOp] = {}
_lock = threading.Lock()
_plugin: ContextVar[str] = ContextVar("the plugin that is being loaded", default="")


@contextmanager
def registering(plugin: str) -> Iterator[None]:
    """Host ops that are registered in the block are this plugin's."""
    before = _plugin.set(plugin)
    try:
        yield
    finally:
        _plugin.reset(before)


def host_op(name: str, *more: str, located: Sequence[str] = (), shared: bool = False) -> Callable[[F], F]:
    """Registers the function below it as what the executor does for the ops of these names.

    located: names of the inputs that it wants as pairs (array, device), wherever they are; all others are brought to
    the host for it. An op on lists and other values of dtype variant is carried out like this in any case; any other
    op says so in its definition (`on_host`). shared: of an op that makes a resource, or works on one and on nothing
    else of the session or run: where the resource has a `shared_name` and was placed on a device of another process
    that keeps such, the op is carried out there, and all sessions share the resource. Raises AlreadyExistsError where
    another function has the op already.
    """

    def register(run: F) -> F:
        for op in (name, *more):
            made = HostOp(op, run, tuple(located), _plugin.get(), shared)
            with _lock:
                old = _registered.setdefault(op, made)
            if old.run is not run and old.origin() != made.origin():
                raise AlreadyExistsError(
                    f"host op {op}: registered by {old.origin()} and by {made.origin()}; one of them must go"
                )
        return run

    return register


def unregister(name: str) -> None:
    """Takes the function of an op out, if there is one."""
    with _lock:
        _registered.pop(name, None)


def find_host_op(name: str) -> HostOp | None:
    """What was registered for an op, None if nobody has."""
    return _registered.get(name)
