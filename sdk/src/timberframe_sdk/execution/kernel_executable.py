"""KernelExecutable: a cluster on a device that runs kernel by kernel."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from timberframe_core.errors import InternalError, OpError, ResourceExhaustedError, UnknownError
from timberframe_core.failures import raised
from timberframe_core.ops.definition import registry
from timberframe_core.plugin.contracts import Array, Cluster, KernelDef, KernelNode, Memory, RunContext, Value
from timberframe_core.plugin.nodes import UNIT_KERNELS, passed_inputs
from timberframe_sdk.execution.control_flow import Running, control_flow, is_control_flow
from timberframe_sdk.execution.errors import at_node
from timberframe_sdk.execution.steps import Instance, PreparedInput, Step
from timberframe_sdk.execution.tracing import work_of
from timberframe_sdk.launching import Launch, as_launch, build_kernel, check_returned, true_shapes
from timberframe_sdk.memory import plan_memory
from timberframe_sdk.testing.guard import GuardedOutputs
from timberframe_sdk.transaction import Transaction

if TYPE_CHECKING:
    from timberframe_sdk.kernel_device import KernelDevice

STATUS_WORDS = 6  # node + 1 (0: no error), reason, detail[4]


class KernelExecutable:
    """A cluster as a list of launches. Concurrent runs take instances of their own from a free list."""

    def __init__(self, device: KernelDevice, cluster: Cluster) -> None:
        self.device = device
        self.cluster = cluster
        self._free: list[Instance] = []
        definitions = [None if is_control_flow(n) else device.kernel(n) for n in cluster.nodes]
        launches: list[Launch] = []
        for i, (node, kernel) in enumerate(zip(cluster.nodes, definitions, strict=True)):
            node.index = i
            launches.append(as_launch(self._build(node, kernel)))
        inplace = {id(n): _inplace(k) for n, k in zip(cluster.nodes, definitions, strict=True) if k is not None}
        self.transaction = Transaction(cluster, lambda n: inplace.get(id(n), ()))
        self.plan = plan_memory(cluster, lambda n: inplace.get(id(n), ()), device.allocator.alignment)
        values = {v.id: v for n in cluster.nodes for v in (*n.inputs, *n.outputs)}
        values |= {v.id: v for v in (*cluster.inputs, *cluster.outputs, *cluster.resources)}
        self.values = values
        self._slot_count = 1 + max(values, default=-1)
        self.status_slot = self._extra_slot() if any(k is not None and k.status for k in definitions) else None
        self.workspace_slots = {i: self._extra_slot() for i in self.plan.workspaces}
        self.prepared = [PreparedInput(n, p, self._extra_slot()) for n in cluster.nodes for p in n.preparations]
        self.steps = [
            self._step(n, k, launch) for n, k, launch in zip(cluster.nodes, definitions, launches, strict=True)
        ]
        self.owned = [v for v in cluster.outputs if v.kind == "temp" and not v.dynamic and v.id not in self._shared()]
        self.lent = {v.id for v in (*cluster.inputs, *self.owned)} | self._shared()
        self.lent |= {p.slot for p in self.prepared if p.source.kind != "const"}
        read = {i for step in self.steps for i in step.slots} | {v.id for v in cluster.outputs}
        self._uploaded = {v.id for v in values.values() if v.kind == "const" and v.id in read}
        persistent = sum(values[i].nbytes for i in self._uploaded) + sum(p.constant_bytes for p in self.prepared)
        self.memory: Memory = self.plan.memory(persistent)
        device.allocator.may_drop(self)

    def drop_idle(self) -> bool:
        """Drops the arenas that no run uses at present; whether there were any."""
        idle = 0
        with suppress(IndexError):
            while True:
                idle += self._free.pop().arena.nbytes
        return idle > 0

    def _shared(self) -> set[int]:
        return self.transaction.value_ids

    def _extra_slot(self) -> int:
        self._slot_count += 1
        return self._slot_count - 1

    def _build(self, node: KernelNode, kernel: KernelDef | None) -> Any:
        if is_control_flow(node):
            return control_flow(self.device, node)
        if kernel is not None:
            return build_kernel(kernel, node)
        if node.op in UNIT_KERNELS:
            return self.device.copy
        self.device.kernels.require(node)
        raise InternalError(f"{node.op} '{node.name}': lost its kernel while it was compiled", node.name)

    def _step(self, node: KernelNode, kernel: KernelDef | None, launch: Launch) -> Step:
        prepared = {p.given.input: p.slot for p in self.prepared if p.node is node} if node.preparations else {}
        slots = [prepared.get(i, node.inputs[i].id) for i in passed_inputs(node)] + [v.id for v in node.outputs]
        if node.index in self.workspace_slots:
            slots.append(self.workspace_slots[node.index])
        if kernel is not None and (kernel.status or kernel.reads_status) and self.status_slot is not None:
            slots.append(self.status_slot)
        return Step(node, launch, slots, any(v.dynamic for v in node.outputs))

    def _instance(self) -> Instance:
        try:
            return self._free.pop()
        except IndexError:
            pass
        device = self.device
        slots: list[Array | None] = [None] * self._slot_count
        arena = device.allocator.allocate(self.plan.arena)
        for value in self.values.values():
            if value.kind == "const":
                if value.id in self._uploaded:
                    slots[value.id] = self._constant(value)
            elif value.id in self.plan.offsets:
                slots[value.id] = device.array(arena, self.plan.offsets[value.id], value.dtype, value.shape)
        for i, slot in self.workspace_slots.items():
            nbytes = self.cluster.nodes[i].workspace_bytes
            slots[slot] = device.array(arena, self.plan.workspaces[i], np.dtype(np.uint8), (nbytes,))
        if self.status_slot is not None:
            slots[self.status_slot] = device.copy_in(
                np.zeros(STATUS_WORDS, np.int64)
            )  # kernels leave it if all is well
        return Instance(slots, arena)

    def _constant(self, value: Value) -> Array:
        try:
            return self.device.constant(value.constant)
        except ResourceExhaustedError as e:
            raise at_node(e, next((n for n in self.cluster.nodes if value in n.inputs), None)) from e.__cause__

    def run(self, inputs: Sequence[Array], context: RunContext) -> list[Array]:
        """Launches every step and returns the outputs."""
        instance = self._instance()
        slots = instance.slots
        guards = GuardedOutputs(self.device, context.fence) if context.mode == "guarded" else None
        try:
            for value, array in zip(self.cluster.inputs, inputs, strict=True):
                slots[value.id] = array
            if guards is not None:
                self._guard(slots, guards)
            for value in self.owned:
                slots[value.id] = self._owned(value, guards or self.device)
            with self.transaction.begin(self.device.empty) as arrays:
                for key, array in arrays.items():
                    slots[key] = array
                for prepared in self.prepared:
                    self._prepare(prepared, slots, context)
                with Running(context):
                    shapes = self._launch(slots, context if guards is None else self._checking(guards, slots, context))
                late = self.status_slot is not None and not self._checked_now(instance, context)
                if self.status_slot is None and self.device.asynchronous and self.transaction.updates:
                    context.cancel.wait(self.device.marker())  # a version is committed when it is known to be good
                if guards is not None:
                    guards.check()
                    for value in self.owned:
                        slots[value.id] = guards.release(slots[value.id], value.dtype, value.shape)
                outputs = [self._output(v, slots, shapes) for v in self.cluster.outputs]
        except BaseException:
            slots.clear()  # the traceback holds the instance
            del instance.arena
            raise
        for key in self.lent:
            slots[key] = None
        if not late and guards is None:
            self._free.append(instance)
        return outputs

    def _owned(self, value: Value, maker: KernelDevice | GuardedOutputs) -> Array:
        """Memory for an output, which will be the caller's."""
        try:
            return maker.empty(value.dtype, value.shape)
        except MemoryError as e:
            node = next((n for n in self.cluster.nodes if value in n.outputs), None)
            if isinstance(e, ResourceExhaustedError):
                raise at_node(e, node) from e.__cause__
            words = f"an output of {value.nbytes} bytes does not fit into the memory of {self.device.spec} ({e})"
            raise at_node(ResourceExhaustedError(words), node) from e

    def _prepare(self, prepared: PreparedInput, slots: list[Array | None], context: RunContext) -> None:
        """Puts the form of an input into its slot: of a constant for good, of a variable for this run."""
        source = prepared.source
        if source.kind == "const" and slots[prepared.slot] is not None and context.trace is None:
            return
        timed = None if context.trace is None else self.device.timed
        form = self.device.forms.get(prepared.node, source, prepared.given, slots[source.id], timed)
        slots[prepared.slot] = form.array
        if context.trace is not None:
            form.report(context.trace, prepared.node, prepared.given.input, self.device.spec)

    def _guard(self, slots: list[Array | None], guards: GuardedOutputs) -> None:
        """Gives each intermediate tensor, and each workspace, guarded memory in place of its part of the arena."""
        for key in self.plan.offsets:
            slots[key] = guards.empty(self.values[key].dtype, self.values[key].shape)
        for i, slot in self.workspace_slots.items():
            slots[slot] = guards.empty(np.dtype(np.uint8), (self.cluster.nodes[i].workspace_bytes,))

    def _checking(self, guards: GuardedOutputs, slots: list[Array | None], context: RunContext) -> RunContext:
        """Returns the context with an observer that looks at the zones of what a node wrote: errors name it."""

        def check(node: KernelNode, inputs: Sequence[Array], outputs: Sequence[Array]) -> None:
            workspace = self.workspace_slots.get(node.index)
            try:
                guards.check([*outputs, *([] if workspace is None else [slots[workspace]])])
            except InternalError as e:
                raise InternalError(self._describe(node, str(e)), node.name) from e
            if context.observer is not None:
                context.observer(node, inputs, outputs)

        return replace(context, observer=check)

    def _launch(self, slots: list[Array | None], context: RunContext) -> dict[int, tuple[int, ...]]:
        """Launches every step on the arrays in the slots; gives the true shapes of values whose kernel decides them."""
        return self._launch_steps(self.steps, slots, context)

    def _launch_steps(
        self, steps: Sequence[Step], slots: list[Array | None], context: RunContext
    ) -> dict[int, tuple[int, ...]]:
        shapes: dict[int, tuple[int, ...]] = {}
        waits = context.trace is not None or (context.mode != "fast" and self.device.asynchronous)
        for step in steps:
            context.cancel.check()
            arrays = [slots[i] for i in step.slots]
            try:
                if not waits:
                    result = step.launch.call(*arrays)
                else:
                    result, start, end = self.device.timed(functools.partial(step.launch.call, *arrays))
                    if context.trace is not None:
                        details = work_of(step.node, self.device.kernel(step.node))
                        context.trace.event(step.node.name, step.node.op, start, end, self.device.spec, **details)
            except OpError as e:
                if e.node is None:
                    raise type(e)(self._describe(step.node, str(e)), step.node.name) from e
                if e.node == step.node.name and f"[{self.device.spec}" not in str(e):
                    raise type(e)(f"{e}{self._location(step.node)}", e.node) from e.__cause__
                raise
            except Exception as e:
                raise UnknownError(self._describe(step.node, raised(e)), step.node.name) from e
            if step.decides_shapes:
                shapes.update({v.id: s for v, s in true_shapes(step.node, result)})
            elif result is not None and not (arrays and result is arrays[-1]):  # the last output, as a rule
                check_returned(step.node, arrays, result)
            if context.observer is not None:
                node = step.node
                context.observer(node, [slots[v.id] for v in node.inputs], [slots[v.id] for v in node.outputs])
        return shapes

    def _output(self, value: Value, slots: list[Array | None], shapes: dict[int, tuple[int, ...]]) -> Array:
        """Returns an output that the caller owns: versions of variables, inputs and constants are copied."""
        array = slots[value.id]
        if value.dynamic:
            return self.device.take(array, shapes.get(value.id, value.shape))
        if value.kind == "temp" and value.id not in self._shared():
            return array
        copied = self.device.empty(value.dtype, value.shape)
        self.device.copy(array, copied)
        return copied

    def _checked_now(self, instance: Instance, context: RunContext) -> bool:
        """Checks the status words: now (True) where a variable waits for it, else before the run gives results."""
        assert self.status_slot is not None
        status = self.device.start_copy_out(instance.slots[self.status_slot])
        if context.late is None or self.transaction.updates:
            self._check_status(context.cancel.wait(status))
            return True

        def check(words: np.ndarray) -> None:
            self._check_status(words)
            self._free.append(instance)  # one whose status words hold an error is not used again

        context.late.add(self.device, status, check)
        return False

    def _check_status(self, status: np.ndarray) -> None:
        """Raises the error that a kernel put into the status word: {node + 1, reason, detail[4]}."""
        if not status[0]:
            return
        node = self.cluster.nodes[int(status[0]) - 1]
        reasons = self.steps[node.index].launch.reasons
        kind, message = reasons[int(status[1]) - 1] if 0 < status[1] <= len(reasons) else (UnknownError, "failed")
        raise kind(self._describe(node, message.format(*map(int, status[2:]))), node.name)

    def _describe(self, node: KernelNode, message: str) -> str:
        return f"{node.op} '{node.name}': {message}{self._location(node)}"

    def _location(self, node: KernelNode) -> str:
        return f"  [{self.device.spec}{', ' + node.where if node.where else ''}]"


def _inplace(kernel: KernelDef) -> tuple[tuple[int, int], ...]:
    """Returns the (output, input) pairs that may share memory: what the kernel allows, and what
    the op's own bytes allow.
    """
    op = None if kernel.covers else registry.find(kernel.op)
    return kernel.inplace or (op.alias if op is not None else ())
