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
from typing import Any, Protocol, TypeVar

from timberframe_core.dtypes import DType
from timberframe_core.errors import AlreadyExistsError, FailedPreconditionError, InvalidArgumentError, OpError
from timberframe_core.graph.function import FuncGraph
from timberframe_core.graph.inference import arg_ranges
from timberframe_core.ops.definition.opdef import Attrs, OpDef
from timberframe_core.plugin.contracts import Array, CancelToken, Device
from timberframe_core.shapes import StaticShape

RunFunction = Callable[["HostCall"], Sequence[Any]]
"""Carries out one call and returns the outputs in order, without the handle of a resource that it makes.

An output is an array of the host, or a pair (array, device) of what stays on a device; in a pair, None as the device
is the host.
"""

Located = tuple[Array, Device | None]
"""An array and its device; None is the host."""

F = TypeVar("F", bound=RunFunction)
T = TypeVar("T")


class Variables(Protocol):
    """The variables among the resources, by the keys that their handles mean."""

    def shape(self, name: str) -> StaticShape | None:
        """Returns the shape of the variable's value, None where it has none."""

    def destroy(self, name: str) -> bool:
        """Drops the variable; returns whether there was one."""


class Resources(Protocol):
    """What ops keep from one run to the next: queues, tables, readers, by a key such as "queue input".

    A resource lives as long as the session (or the container of a worker) that it belongs to, or until it is destroyed;
    then its `close()` is called if it has one, which must end the threads that it started.
    """

    @property
    def variables(self) -> Variables:
        """The variables."""

    def get_or_make(self, key: str, make: Callable[[], T]) -> T:
        """Returns the resource, made by `make` where there is none; of threads that ask at once, one makes it."""

    def find(self, key: str) -> Any | None:
        """Returns the resource, None where there is none."""

    def put(self, key: str, value: Any) -> None:
        """Keeps a value in place of the one that there may be."""

    def destroy(self, key: str) -> bool:
        """Closes a resource and drops it; returns whether there was one."""


class Joins(Protocol):
    """Puts arrays together and takes them apart on the devices where they are; dtypes are those of the arrays."""

    def stack(self, items: Sequence[Located], shape: StaticShape, dtype: DType) -> Located:
        """Returns arrays of one shape as the rows of one array."""

    def concat(self, items: Sequence[Located], dtype: DType) -> Located:
        """Returns arrays one after the other, along their first dimension."""

    def split(self, item: Located, lengths: Sequence[int], dtype: DType) -> list[Located]:
        """Returns the parts of these lengths of an array, along its first dimension."""

    def rows(self, item: Located, dtype: DType) -> list[Located]:
        """Returns the rows of an array."""

    def add(self, a: Located, b: Located, dtype: DType, device: Device) -> Located:
        """Returns the sum of two arrays of one shape, on the device."""


class PreparedFunction(Protocol):
    """A function ready to be called, with arrays of the host and values of dtype variant; handles have no part."""

    def __call__(self, inputs: Sequence[Any], cancel: CancelToken) -> Sequence[Any]:
        """Returns the outputs; cancel ends the call."""


class HostFunction(Protocol):
    """A function that a host op's node names."""

    @property
    def function(self) -> FuncGraph:
        """The graph of the function."""

    @property
    def scope(self) -> str:
        """The way to it, which is another one for each node of a session."""

    @property
    def key(self) -> tuple[Any, ...]:
        """A key that is equal for two of one function, at one place and with handles of the same meaning."""

    def like(self, function: FuncGraph) -> HostFunction:
        """Returns another function, with inputs that mean the same, in place of this one."""

    def prepare(self, scope: str = "", streams: Any = None) -> PreparedFunction:
        """Returns the function ready to be called, on any thread, also after the run that began it.

        scope: the way to it, where several resources run it. streams: a `timberframe_core.runtime.functions.Streams`
        where its random streams are kept; by default they are the session's.
        """


class HostCall(Protocol):
    """One call of a host op. The executor makes one for each; so does a worker for an op that is `shared`."""

    @property
    def inputs(self) -> Sequence[Any]:
        """The inputs that are not resource handles, in order.

        Arrays of the host, or pairs (array, device) for those that the registration names in `located`. A value of
        dtype variant is handed over as it is, such as a list of tensors.
        """

    @property
    def attrs(self) -> Attrs:
        """All attrs of the node, type attrs as DType."""

    @property
    def device(self) -> Device:
        """Where the node was placed. An output may be left there, or on any other device."""

    @property
    def op(self) -> str:
        """Name of the op."""

    @property
    def definition(self) -> OpDef:
        """The op."""

    @property
    def name(self) -> str:
        """Name of the node."""

    @property
    def where(self) -> str:
        """The user's line that made the node, empty where there is none."""

    @property
    def path(self) -> str:
        """Name of the node with the loops, branches and calls that it is in: another one for each node of a session."""

    @property
    def dtypes(self) -> list[DType]:
        """Dtypes of the outputs."""

    @property
    def cancel(self) -> CancelToken:
        """What stops the run: an op that takes long calls its `check`, one that waits its `wait_for`."""

    @property
    def resources(self) -> Resources:
        """What is kept between runs."""

    @property
    def run_state(self) -> dict[Any, Any]:
        """The values kept for this run alone, the bodies of its loops and branches included.

        UnimplementedError in a worker, which has no run.
        """

    @property
    def joins(self) -> Joins:
        """Puts arrays together and takes them apart on the devices where they are."""

    @property
    def made(self) -> str:
        """Key of the resource whose handle is the output."""

    def handle(self, index: int = 0) -> str:
        """Key of the resource that a handle among the inputs means; index counts the handles alone."""

    def uninitialized(self, index: int = 0) -> FailedPreconditionError:
        """Returns the error of an op that needs the value of a variable which has none; index: which of the handles."""

    def function(self, index: int = 0, handles: Mapping[int, str] | None = None) -> HostFunction:
        """Returns a function that the attrs of the node name, to be called by the op; index: which of them.

        handles: what those of its inputs that are handles mean, by their positions among all its inputs.
        UnimplementedError in a worker, which has no graph.
        """

    def error(self, message: str, kind: type[OpError] = InvalidArgumentError) -> OpError:
        """Returns an error to raise, `message` being ``<fact with the actual values>; <what is required>``."""


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
        """Returns positions of the inputs of a node that arrive as pairs (array, device)."""
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
    """Returns what was registered for an op, None if nobody has."""
    return _registered.get(name)
