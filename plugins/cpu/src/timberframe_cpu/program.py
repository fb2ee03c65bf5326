"""The executable of the CPU: a cluster as one native program, and the instances that run it."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from operator import is_
from typing import Any, NoReturn
from weakref import ref

import numpy as np

from timberframe_cpu.changing import matrices, program_for_versions
from timberframe_cpu.direct import direct_call
from timberframe_cpu.emission import Emitter, PythonPiece
from timberframe_cpu.instance import Instance
from timberframe_cpu.launchers import take_raised
from timberframe_cpu.library import ffi, lib
from timberframe_cpu.preparation import DENSE, Layout, Prepared, PreparedInput, prepare
from timberframe_sdk import (
    Array,
    CancelledError,
    Cluster,
    InternalError,
    KernelNode,
    Memory,
    OpError,
    ResourceExhaustedError,
    RunContext,
    TraceSink,
    UnknownError,
    Update,
    Value,
    format_shape,
)
from timberframe_sdk.allocator import Buffer
from timberframe_sdk.execution.control_flow import Running
from timberframe_sdk.launching import true_shapes
from timberframe_sdk.native import failure
from timberframe_sdk.transaction import EmptyArray, StandingLease, Transaction

KEPT_ARENA_BYTES = 1 << 18
"""An instance keeps an arena up to this size between runs; larger ones go back to the device's pool."""

_CANCELLED, _RAISED_IN_PYTHON = 1, -1
_ADDRESS_SPACE = 1 << 62
_INT32 = ffi.typeof("int32_t *")


class CpuExecutable:
    """A compiled cluster. Runs may overlap: each takes an instance from the free list or makes a new one."""

    def __init__(self, device: Any, cluster: Cluster, layout: Layout = DENSE) -> None:
        self.device = device
        self.given = cluster
        self.source = cluster.source or cluster
        self.rewritten = cluster.source is not None
        self.prepared: Prepared = prepare(cluster, device.builder, layout)
        self.cluster = cluster = self.prepared.cluster
        updates, self._copies = self._own_updates()
        self.transaction = Transaction(replace(cluster, updates=updates))
        shared = self.transaction.value_ids
        self.owned = [v for v in _unique(cluster.outputs) if _escapes(v) and v.id not in shared]
        written = [u.new for u in updates if u.new.id >= 0]
        moving = {v.id for u in updates if not u.in_place for v in (u.old, u.new) if v is not None}
        self.forms = self.prepared.forms
        self._brought = [f for f in self.forms if f.form is None]
        of_variables = _in_memory([*cluster.resources, *written, *(f.value for f in self._brought)])
        self.changing = _in_memory([*cluster.inputs, *self.owned, *(v for v in of_variables if v.id in moving)])
        self.slots = _in_memory([*self.changing, *of_variables])
        self.staying = self.slots[len(self.changing) :]  # these stay while the variables do, the others are a run's own
        overwriting = {u.new.id for u in updates if u.in_place}
        whole = {i for i, n in enumerate(cluster.nodes) if any(v.id in overwriting for v in n.outputs)}
        if self.prepared.plan.arena > _ADDRESS_SPACE:
            raise ResourceExhaustedError(
                f"{device.spec}: a program needs {self.prepared.plan.arena} bytes at once; addresses end before that"
            )
        self.emitter = Emitter(self.prepared, self.slots, whole)
        self.memory: Memory = self.prepared.plan.memory(self.emitter.image.persistent)
        self.free: list[Instance] = []
        self.guarded: dict[str, CpuExecutable] = {}  # the twins that run in mode `guarded`, by fence
        self.unrewritten: CpuExecutable | None = None  # the one that runs in mode `nodes`
        self.matrices = matrices(self.forms)
        self.unpacked: CpuExecutable | None = None  # the one that takes these as they are
        pieces = self.emitter.pieces
        self._whole = not any(isinstance(p, PythonPiece) for p in pieces)
        self._stateful = bool(self.transaction)
        self._simple = self._whole and not self._stateful
        self._settles = self._whole and self._stateful and not updates
        self._fetched_variables = [v.id for v in cluster.outputs if v.id in shared]
        self._owned_ids = {v.id for v in self.owned}

    def _own_updates(self) -> tuple[list[Update], list[tuple[Value, Value]]]:
        """Returns the updates, each with a new version of its own; and what has to be copied into one after the run.

        A new version that no node makes (a feed, a constant, another variable), or that is made once for two variables,
        is copied into a value that only the update knows, with a negative id.
        """
        produced = {v.id for n in self.cluster.nodes for v in n.outputs}
        updates: list[Update] = []
        copies: list[tuple[Value, Value]] = []
        old = {u.old.id for u in self.cluster.updates if u.old is not None and u.in_place}
        readers: dict[int, list[int]] = {i: [] for i in old}
        for position, node in enumerate(self.cluster.nodes if old else ()):
            for value in node.inputs:
                if value.id in old:
                    readers[value.id].append(position)
        for u in self.cluster.updates:
            if u.new.id in produced:
                produced.remove(u.new.id)
                updates.append(replace(u, in_place=u.in_place and self._may_overwrite(u, readers)))
            else:
                own = replace(u.new, id=-1 - len(copies), kind="temp", constant=None)
                copies.append((u.new, own))
                updates.append(replace(u, new=own, in_place=False))
        return updates, copies

    def _may_overwrite(self, update: Update, readers: dict[int, list[int]]) -> bool:
        """Returns whether the kernel that makes the new version may write over the old one,
        being the last to read it.
        """
        old, new = update.old, update.new
        if old is None or old.nbytes != new.nbytes or old in self.cluster.outputs or not readers[old.id]:
            return False
        position = readers[old.id][-1]
        node, launch = self.cluster.nodes[position], self.prepared.launches[position]
        if launch is None or new not in node.outputs or readers[old.id].count(position) != 1:
            return False
        return (node.outputs.index(new), node.inputs.index(old)) in launch.inplace

    # Instances

    def take(self) -> Instance:
        """Returns an instance with an arena; ResourceExhaustedError when there is no memory for one."""
        try:
            instance = self.free.pop()
        except IndexError:
            return self.instance(self.device.arenas.take(self.memory.arena))
        if instance.arena is None:
            instance.move(self, self.device.arenas.take(self.memory.arena))
        return instance

    def instance(self, arena: Buffer) -> Instance:
        """Returns a new instance that keeps its intermediate tensors in this arena."""
        return Instance(self, arena)

    def give(self, instance: Instance) -> None:
        """Keeps an instance for the next run."""
        if self.memory.arena > KEPT_ARENA_BYTES:
            arena, instance.arena = instance.arena, None
            self.device.arenas.give(arena)
        self.free.append(instance)

    # Running

    def run(self, inputs: Sequence[Array], context: RunContext) -> list[Array]:
        """Runs once; the outputs are the caller's. Feeds are read in place where they are aligned and contiguous."""
        if context.mode != "fast" or context.trace is not None:
            from timberframe_cpu.watched import run_watched

            return run_watched(self, inputs, context)
        lease = self.transaction.standing() if self._settles else None
        if lease is not None:
            try:
                return self._run_settled(lease, inputs, context)
            finally:
                lease.leave()
        program = program_for_versions(self) if self.matrices else self
        instance = program.take()
        allocator = self.device.allocator
        outputs = program.run_on(instance, inputs, context, allocator.empty, allocator.new_version, program.execute)
        program.give(instance)  # one that failed is dropped, and its arena with it
        return outputs

    def _run_settled(self, lease: StandingLease, inputs: Sequence[Array], context: RunContext) -> list[Array]:
        """Runs with the variables as they were in earlier runs, whose memory the slots of an instance still have."""
        arrays: dict[int, Array] = {}
        for value, x in zip(self.cluster.inputs, inputs, strict=True):
            arrays[value.id] = self._checked(value, x)
        empty = self.device.allocator.empty
        for value in self.owned:
            arrays[value.id] = empty(value.dtype, value.shape)
        for number in self._fetched_variables:
            arrays[number] = lease.arrays[number]
        instance = self.take()
        if instance.lease is not lease:
            self.settle(instance, lease)
        self.run_pieces(instance, arrays, context, self.bind(instance, arrays, self.changing))
        results = self.outputs(instance, arrays)
        self.give(instance)
        return results

    def settle(self, instance: Instance, lease: StandingLease) -> None:
        """Binds the slots of variables, and of what kernels derive from them, for as long as the lease holds."""
        arrays = lease.arrays
        for given in self._brought:
            form = self.device.builder.forms.get(given.node, given.source, given.given, arrays[given.source.id])
            arrays[given.value.id] = form.array
        self.bind(instance, arrays, self.staying, len(self.changing))
        instance.bound, instance.lease = (), lease

    def run_on(
        self,
        instance: Instance,
        inputs: Sequence[Array],
        context: RunContext,
        empty: EmptyArray,
        new_version: EmptyArray,
        execute: Callable[[Instance, dict[int, Array], RunContext], None],
    ) -> list[Array]:
        """Runs on this instance: `empty` makes outputs, `new_version` those of variables; `execute` runs the steps."""
        arrays: dict[int, Array] = {}
        for value, x in zip(self.cluster.inputs, inputs, strict=True):
            arrays[value.id] = self._checked(value, x)
        for value in self.owned:
            arrays[value.id] = empty(value.dtype, value.shape)
        if self.forms and context.trace is not None:
            self._report_forms(context.trace)
        if not self._stateful:
            execute(instance, arrays, context)
            return self.outputs(instance, arrays)
        with self.transaction.begin(new_version) as versions:
            arrays |= versions
            for given in self._brought:
                self._bring_form(given, arrays, context)
            execute(instance, arrays, context)
            for value, own in self._copies:
                np.copyto(versions[own.id], self.array(value, instance, arrays))
            return self.outputs(instance, arrays)

    def _bring_form(self, given: PreparedInput, arrays: dict[int, Array], context: RunContext) -> None:
        """Adds the form of a variable's version to the arrays of a run."""
        array = arrays[given.source.id]
        form = self.device.builder.forms.get(given.node, given.source, given.given, array)
        arrays[given.value.id] = form.array
        if context.trace is not None:
            form.report(context.trace, given.node, given.given.input, self.device.spec)

    def _report_forms(self, trace: TraceSink) -> None:
        """Shows in a trace when the forms of constants were made."""
        for given in self.forms:
            if given.form is not None:
                given.form.report(trace, given.node, given.given.input, self.device.spec)

    def _checked(self, value: Value, x: Array) -> Array:
        if (x.dtype is not value.dtype and x.dtype != value.dtype) or x.shape != value.shape:
            raise InternalError(
                f"{self.device.spec}: an input has dtype {x.dtype} and shape {format_shape(x.shape)}; the program was "
                f"compiled for {value.dtype} and {format_shape(value.shape)}"
            )
        return x

    def bind(
        self, instance: Instance, arrays: dict[int, Array], values: Sequence[Value] | None = None, first: int = 0
    ) -> list[Any]:
        """Gives slots their memory, by default all of them; returns what must live until the run ends.

        values: those of the slots from the number `first` on. The others stay as they were.
        """
        if values is None:
            instance.bound, instance.lease = (), None
        hold: list[Any] = []
        slots, from_buffer = instance.slots, ffi.from_buffer
        for i, value in enumerate(self.slots if values is None else values, first):
            x = arrays[value.id]
            try:
                pointer = from_buffer(x)
            except ValueError:  # not contiguous
                arrays[value.id] = x = np.array(x, order="C")
                pointer = from_buffer(x)
            slots[i] = pointer
            hold.append(pointer)
        while code := lib.tf_bind(instance.program, slots):
            value = self.slots[-1 - code]
            arrays[value.id] = aligned = arrays[value.id].copy()
            slots[-1 - code] = pointer = from_buffer(aligned)
            hold.append(pointer)
        return hold

    def execute(self, instance: Instance, arrays: dict[int, Array], context: RunContext) -> None:
        """Runs all pieces on bound memory."""
        hold = self.bind(instance, arrays) if not self.staying else self._bind_changed(instance, arrays)
        self.run_pieces(instance, arrays, context, hold)

    def _bind_changed(self, instance: Instance, arrays: dict[int, Array]) -> list[Any]:
        """Binds all slots, those of variables only where the instance has not bound the same arrays before.

        Updates in place leave their arrays as they are from one run to the next.
        """
        found = [arrays[v.id] for v in self.staying]
        last = [known() for known in instance.bound]
        if len(last) == len(found) and all(map(is_, last, found)):
            return self.bind(instance, arrays, self.changing)
        hold = self.bind(instance, arrays)
        instance.bound = [ref(arrays[v.id]) for v in self.staying]
        return hold

    def run_pieces(self, instance: Instance, arrays: dict[int, Array], context: RunContext, hold: list[Any]) -> None:
        """Runs all pieces; hold: what `bind` returned."""
        cancel = ffi.from_buffer(_INT32, context.cancel.word)
        for piece in self.emitter.pieces:
            self.run_piece(piece, instance, arrays, context, cancel)
        del hold

    def run_piece(
        self,
        piece: Any,
        instance: Instance,
        arrays: dict[int, Array],
        context: RunContext,
        cancel: Any,
        times: Any = ffi.NULL,
    ) -> None:
        """Runs some native steps, or a Python launcher. times: room for the clock, as `tf_run_range` takes it."""
        if isinstance(piece, PythonPiece):
            context.cancel.check()
            with Running(context):
                self._launch(piece, instance, arrays)
            return
        if self.emitter.calls_python:
            with Running(context):
                code = lib.tf_run_range(instance.program, piece[0], piece[1], cancel, times)
        else:
            code = lib.tf_run_range(instance.program, piece[0], piece[1], cancel, times)
        if code:
            self.fail(code, instance, context)

    def _launch(self, piece: PythonPiece, instance: Instance, arrays: dict[int, Array]) -> None:
        node, launch = piece.node, piece.launch
        assert launch.python is not None
        operands = [self.array(node.inputs[i], instance, arrays) for i in launch.passed]
        operands += [self.array(v, instance, arrays) for v in node.outputs]
        if launch.workspace_bytes:
            operands.append(_view(instance, piece.workspace, np.dtype(np.uint8), (launch.workspace_bytes,)))
        try:
            shapes = launch.python(*operands)
        except Exception as error:
            self.raise_described(node, error)
        for value, shape in true_shapes(node, shapes):
            self._set_true_shape(value, shape, instance, arrays)

    def _set_true_shape(
        self, value: Value, shape: tuple[int, ...], instance: Instance, arrays: dict[int, Array]
    ) -> None:
        arrays[value.id] = _true_part(self.array(value, instance, arrays), shape)

    def array(self, value: Value, instance: Instance, arrays: dict[int, Array]) -> np.ndarray:
        """Returns a value of the top level while a run is on."""
        found: np.ndarray | None = arrays.get(value.id)
        if found is not None:
            return found
        if value.kind == "const":
            return np.asarray(value.constant)
        if value.dtype.hasobject:
            made = arrays[value.id] = np.empty(value.shape, value.dtype)
            return made
        return _view(instance, self.prepared.plan.offsets[value.id], value.dtype, value.shape)

    def outputs(self, instance: Instance, arrays: dict[int, Array]) -> list[Array]:
        """Returns the results; what is not the run's own memory (feeds, constants, variables, arena) is copied."""
        owned = self._owned_ids
        results = []
        for value in self.cluster.outputs:
            if value.id in owned:
                results.append(arrays[value.id])
            elif value.dynamic and value.id not in arrays:
                results.append(self.true_part(value, self.array(value, instance, arrays), instance).copy())
            else:
                results.append(np.array(self.array(value, instance, arrays), order="C"))
        return results

    def true_part(self, value: Value, array: np.ndarray, instance: Instance) -> np.ndarray:
        """Returns what a native kernel filled of an output whose size only it knows."""
        return _true_part(array, instance.true_shape(self.emitter.tensors[value.id], len(value.shape)))

    # Errors

    def fail(self, code: int, instance: Instance, context: RunContext) -> None:
        """Raises what ended a native run."""
        error = instance.program.error
        node = self.emitter.nodes[error.node]
        if error.reason == _RAISED_IN_PYTHON:
            raised = take_raised()
            if raised is not None:
                if code == _CANCELLED or not isinstance(raised, Exception):
                    context.cancel.cancel(raised)
                    raise raised
                self.raise_described(node, raised)
        if code == _CANCELLED:
            context.cancel.check()
            raise CancelledError(
                f"{node.op} '{node.name}': the run was cancelled before it ended{self.location(node)}", node.name
            )
        reasons = self.emitter.reasons[error.node]
        raise failure(node.op, node.name, code, error.reason, list(error.detail), reasons, self.location(node))

    def raise_described(self, node: KernelNode, error: Exception) -> NoReturn:
        """Raises what a Python launcher raised, as an error that names its node."""
        if not isinstance(error, OpError):
            words = f"{node.op} '{node.name}': {type(error).__name__}: {error}{self.location(node)}"
            raise UnknownError(words, node.name) from error
        if error.node is None:
            raise type(error)(f"{node.op} '{node.name}': {error}{self.location(node)}", node.name) from error
        if error.node == node.name and f"[{self.device.spec}" not in str(error):
            raise type(error)(f"{error}{self.location(node)}", error.node) from error
        raise error

    def location(self, node: KernelNode) -> str:
        """Device and user's line, as they end the message of an error."""
        return f"  [{self.device.spec}{', ' + node.where if node.where else ''}]"

    def direct(self, fallback: Callable[..., Any]) -> Callable[..., Any] | None:
        """Returns a call ``f(*feeds)`` as cheap as can be; None where the program is not simple enough.

        It gives the only output, or the list of outputs. Feeds that are not exactly arrays of the compiled dtypes and
        shapes go to `fallback`.
        """
        return direct_call(self, fallback) if self._simple or self._settles else None


def _escapes(value: Value) -> bool:
    return value.kind == "temp" and not value.dynamic and not value.dtype.hasobject


def _unique(values: Sequence[Value]) -> list[Value]:
    return list({v.id: v for v in values}.values())


def _in_memory(values: Sequence[Value]) -> list[Value]:
    """Returns each value once whose memory a run has to give."""
    return [v for v in _unique(values) if v.kind != "const" and not v.dtype.hasobject]


def _view(instance: Instance, offset: int, dtype: np.dtype[Any], shape: tuple[int, ...]) -> np.ndarray:
    assert instance.arena is not None
    nbytes = dtype.itemsize * math.prod(shape)
    block: np.ndarray = instance.arena.handle[offset : offset + nbytes]
    return block.view(dtype).reshape(shape)


def _true_part(a: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    size = math.prod(shape)
    if min(shape, default=0) < 0 or size > a.size:
        raise InternalError(f"a kernel reports shape {format_shape(shape)}; it has at most {a.size} elements")
    return a.reshape(-1)[:size].reshape(shape)
