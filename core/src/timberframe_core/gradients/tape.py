"""Tape: what was computed eagerly from watched tensors, and the way back through it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from typing import Any

from timberframe_core.dtypes import resource
from timberframe_core.gradients.reverse import (
    Gradient,
    checked_gradient,
    input_gradients,
    is_differentiable,
    total_gradient,
)
from timberframe_core.graph.eager_tensor import EagerTensor
from timberframe_core.graph.graph import get_default_graph
from timberframe_core.graph.operation import Operation, Tensor
from timberframe_core.ops.definition.opdef import NotDifferentiable, OpDef


class Record:
    """An operation that has run: what gradient functions read of an Operation.

    gradient: how it is differentiated; None where nobody has said.
    """

    __slots__ = ("gradient", "inputs", "operation", "outputs")
    control_inputs = ()
    where = device = ""

    def __init__(
        self,
        operation: Operation,
        inputs: tuple[Tensor, ...],
        outputs: tuple[Tensor, ...],
        gradient: Any,
    ) -> None:
        self.operation = operation
        self.inputs = inputs
        self.outputs = outputs
        self.gradient = gradient

    @property
    def op_def(self) -> OpDef:
        """The op."""
        return self.operation.op_def

    @property
    def type(self) -> str:
        """Name of the op."""
        return self.operation.type

    @property
    def name(self) -> str:
        """Name of the operation, which several may have."""
        return self.operation.name

    @property
    def attrs(self) -> dict[str, Any]:
        """All attrs."""
        return self.operation.attrs

    def get_attr(self, name: str) -> Any:
        """Returns the attr's value; InvalidArgumentError for a name that the op does not have."""
        return self.operation.get_attr(name)


class Tape:
    """Records of operations on what is tracked: watched tensors and all that is computed from them.

    watch_accessed_variables: variables that are to be trained are watched when they are read. persistent: gradients may
    be asked for while it records, so that they are recorded, too.
    """

    def __init__(self, watch_accessed_variables: bool = True, persistent: bool = False) -> None:
        self.persistent = persistent
        self.records: list[Record] = []
        self.handles: dict[Tensor, None] = {}
        """The handles of watched variables, in the order in which they were first watched."""
        self._tracked: set[Tensor] = set()
        self._watches_variables = watch_accessed_variables

    def watch(self, tensor: Tensor) -> None:
        """Tracks a tensor, of a variable its handle."""
        self._tracked.add(tensor)
        if tensor.dtype is resource:
            self.handles[tensor] = None

    def is_tracked(self, tensor: Tensor) -> bool:
        """Returns whether operations on this tensor are recorded."""
        return tensor in self._tracked

    def wants(self, inputs: Iterable[Tensor], reads: bool) -> bool:
        """Returns whether an operation on these inputs, which reads the variables among them
        or not, is to be recorded.
        """
        tracked, found = self._tracked, False
        for tensor in inputs:
            if tensor in tracked:
                found = True
            elif reads and tensor.dtype is resource and self._watches_variables and _is_trained(tensor):
                self.watch(tensor)
                found = True
        return found

    def add(self, record: Record) -> None:
        """Adds a record, and tracks what it made."""
        self.records.append(record)
        self._tracked.update([t for t in record.outputs if is_differentiable(t)])


def reads_variables(op_def: OpDef) -> bool:
    """Returns whether an op reads the variables among its inputs."""
    return op_def.role == "read_variable" or bool(op_def.reads) or bool(op_def.function_attrs)


def _is_trained(handle: Tensor) -> bool:
    return isinstance(handle, EagerTensor) and bool(getattr(handle.spec, "trainable", False))


def record(
    tapes: Sequence[Tape],
    operation: Operation,
    inputs: Sequence[Tensor],
    outputs: Sequence[Tensor],
    gradient: Any,
    reads: bool | None = None,
) -> None:
    """Puts an operation that has run on those tapes that track one of its inputs.

    reads: whether it reads the variables among its inputs, by default as its op says.
    """
    if reads is None:
        reads = reads_variables(operation.op_def)
    wanting = [tape for tape in tapes if tape.wants(inputs, reads)]
    if wanting and not isinstance(gradient, NotDifferentiable):
        made = Record(operation, tuple(inputs), tuple(outputs), gradient)
        for tape in wanting:
            tape.add(made)


def gradients_of_records(
    records: Sequence[Record], targets: Sequence[Tensor], sources: Sequence[Tensor], seeds: Sequence[Gradient | None]
) -> list[Gradient | None]:
    """Returns the gradients of the sources, given those of the targets; None where a target
    does not depend on a source.
    """
    arrived: dict[Tensor, list[Gradient]] = {}
    for target, seed in zip(targets, seeds, strict=True):
        if seed is not None:
            arrived.setdefault(target, []).append(seed)
    connected = set(sources)
    path = []
    for one in records:
        if any(t in connected for t in one.inputs):
            path.append(one)
            connected.update(one.outputs)
    kept = set(sources)
    while path:
        _pass_back(path.pop(), arrived, connected, kept)
    return [total_gradient(arrived, x) for x in sources]


def _pass_back(op: Record, arrived: dict[Tensor, list[Gradient]], connected: set[Tensor], kept: set[Tensor]) -> None:
    totals = [total_gradient(arrived, t) for t in op.outputs]
    if all(g is None for g in totals):
        return
    for t in op.outputs:
        if t not in kept:
            arrived.pop(t, None)
    with ExitStack() as scopes:
        if op.operation.device:
            scopes.enter_context(get_default_graph().device(op.operation.device))
        made = input_gradients(op, totals)
    for tensor, grad in zip(op.inputs, made, strict=True):
        if grad is not None and tensor in connected and is_differentiable(tensor):
            arrived.setdefault(tensor, []).append(checked_gradient(op, tensor, grad))
