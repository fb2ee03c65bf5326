"""Calls of host ops: those of the executor, and those of a worker for a session in another process."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from timberframe_core.dtypes import DType, as_dtype
from timberframe_core.errors import FailedPreconditionError, InvalidArgumentError, OpError, UnimplementedError
from timberframe_core.graphdef.attributes import decode_attr
from timberframe_core.ops.definition.opdef import Attrs, OpDef
from timberframe_core.plugin.contracts import CancelToken, Device
from timberframe_core.runtime.functions import HostFunction
from timberframe_core.runtime.joins import Joins
from timberframe_core.runtime.resources import ResourceStore

if TYPE_CHECKING:
    from timberframe_core.runtime.executor import Run
    from timberframe_core.runtime.host_steps import HostStep


class RunCall:
    """A HostCall of the executor: of a node that is prepared as a step, in a run."""

    __slots__ = ("_run", "_step", "inputs")

    def __init__(self, step: HostStep, inputs: Sequence[Any], run: Run) -> None:
        self._step = step
        self._run = run
        self.inputs = inputs

    @property
    def attrs(self) -> Attrs:
        return self._step.node.attrs

    @property
    def device(self) -> Device:
        return self._step.device

    @property
    def op(self) -> str:
        return self._step.node.op.name

    @property
    def definition(self) -> OpDef:
        return self._step.node.op

    @property
    def name(self) -> str:
        return self._step.node.name

    @property
    def where(self) -> str:
        return self._step.node.where or ""

    @property
    def path(self) -> str:
        return self._run.plan.scope + self._step.node.name

    @property
    def dtypes(self) -> list[DType]:
        return [x.dtype for x in self._step.node.outputs]

    @property
    def cancel(self) -> CancelToken:
        return self._run.context.cancel

    @property
    def resources(self) -> ResourceStore:
        return self._run.runtime.resources

    @property
    def run_state(self) -> dict[Any, Any]:
        return self._run.state

    @property
    def joins(self) -> Joins:
        return self._run.runtime.joins

    @property
    def made(self) -> str:
        return self._step.made

    def handle(self, index: int = 0) -> str:
        return self._step.handles[index]

    def uninitialized(self, index: int = 0) -> FailedPreconditionError:
        return self._step.uninitialized(index)

    def function(self, index: int = 0, handles: Mapping[int, str] | None = None) -> HostFunction:
        return self._step.function(index, handles or {}, self._run)

    def error(self, message: str, kind: type[OpError] = InvalidArgumentError) -> OpError:
        return kind(f"{self.op} '{self.name}': {message}", self.name)


@cache
def _joins() -> Joins:
    """Returns the small programs of all calls of this worker."""
    return Joins()


class WorkerCall:
    """A HostCall of a worker: of a node that came from another process as a message, see `shared_resources`."""

    def __init__(
        self,
        message: Any,
        definition: OpDef,
        inputs: Sequence[np.ndarray],
        store: Callable[[str], ResourceStore],
        device: Device,
        cancel: CancelToken,
    ) -> None:
        self.inputs = inputs
        self._message, self.definition, self.device, self.cancel = message, definition, device, cancel
        self.resources = store(self._text("_container"))
        self.joins = _joins()

    def _text(self, key: str) -> str:
        found: str = self._message.attr[key].s.decode()
        return found

    @property
    def attrs(self) -> Attrs:
        where = f"of '{self.name}'"
        return {
            key: decode_attr(self._message.attr[key], attr.kind, f"attr '{key}' {where}")
            for key, attr in self.definition.attrs.items()
        }

    @property
    def op(self) -> str:
        return self.definition.name

    @property
    def name(self) -> str:
        found: str = self._message.name
        return found

    @property
    def where(self) -> str:
        return self._text("_where")

    @property
    def path(self) -> str:
        return self.name

    @property
    def dtypes(self) -> list[DType]:
        return [as_dtype(number) for number in self._message.attr["_dtypes"].list.type]

    @property
    def run_state(self) -> dict[Any, Any]:
        raise self._nothing_of("the run")

    @property
    def made(self) -> str:
        return self._text("_made")

    def handle(self, index: int = 0) -> str:
        found: str = self._message.attr["_handles"].list.s[index].decode()
        return found

    def uninitialized(self, index: int = 0) -> FailedPreconditionError:
        fact = f"variable '{self.handle(index)}' has no value; run its initializer first"
        return FailedPreconditionError(f"{self.op} '{self.name}': {fact}", self.name)

    def function(self, index: int = 0, handles: Mapping[int, str] | None = None) -> HostFunction:
        raise self._nothing_of("the graph")

    def _nothing_of(self, what: str) -> UnimplementedError:
        fact = f"it is carried out in the worker that has its resource, which knows nothing of {what}"
        hint = "an op that needs more than its resource must not be registered as shared"
        return UnimplementedError(f"{self.op} '{self.name}': {fact}; {hint}", self.name)

    def error(self, message: str, kind: type[OpError] = InvalidArgumentError) -> OpError:
        return kind(f"{self.op} '{self.name}': {message}", self.name)
