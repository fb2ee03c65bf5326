"""A device for tests that differs from a host in all that can differ: memory that NumPy cannot see, a slow queue that
works asynchronously, and a compiler that takes a cluster as a whole.

What takes host memory, finished work or execution node by node for granted fails on it. It computes by references.
``timberframe_sdk.register_plugin("async", asynchronous_device)`` gives each session two of them, /device:ASYNC:0 and 1.
"""

from __future__ import annotations

import itertools
import queue
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from timberframe_core.ops.base.control_flow.functional import branch_number
from timberframe_core.plugin.kernels import KernelRegistry
from timberframe_core.plugin.nodes import role
from timberframe_sdk import (
    Allocator,
    Cluster,
    ClusterFunction,
    Device,
    DeviceAttributes,
    DeviceDefaults,
    DLPackView,
    KernelDef,
    KernelNode,
    Memory,
    RunContext,
    Transaction,
    compute,
    device_count,
    has_reference,
    hookimpl,
    memory_limit,
    take_in,
)
from timberframe_sdk.execution.control_flow import truth

TYPE = "ASYNC"
DELAY_SECONDS = 0.0005
MEMORY_BYTES = 1 << 30


class DeviceTensor:
    """A tensor in the device's memory: a number that means something to the device alone. owner: of a borrowed one."""

    def __init__(
        self,
        device: AsynchronousDevice,
        dtype: np.dtype[Any],
        shape: tuple[int, ...],
        address: int | None = None,
        owner: Any = None,
    ) -> None:
        self.device, self.dtype, self.shape, self.owner = device, dtype, shape, owner
        self.failure: BaseException | None = None
        if address is not None:
            self.address = address
            return
        self.buffer = device.allocator.allocate(dtype.itemsize * int(np.prod(shape)))
        self.address = next(device.addresses)

    def check(self) -> None:
        """Raises the error of the run that should have made it."""
        if self.failure is not None:
            raise self.failure

    def __del__(self) -> None:
        if self.owner is None and hasattr(self, "address"):
            self.device.memory.pop(self.address, None)


class HandleAllocator(Allocator):
    alignment = 256

    def raw(self, nbytes: int) -> object:
        return object()


class Queue:
    """Runs tasks in order, each after a short delay."""

    def __init__(self) -> None:
        self._tasks: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        threading.Thread(target=self._work, daemon=True).start()

    def _work(self) -> None:
        while True:
            task = self._tasks.get()
            time.sleep(DELAY_SECONDS)
            task()
            del task

    def enqueue(self, task: Callable[[], None]) -> None:
        self._tasks.put(task)

    def wait(self) -> None:
        Task(self, lambda: None).result()


class Task:
    """A Pending: a task that was appended to the queue."""

    def __init__(self, queue: Queue, task: Callable[[], Any]) -> None:
        self._over = threading.Event()
        self._task = task
        self._value: Any = None
        self._error: BaseException | None = None
        queue.enqueue(self._run)

    def _run(self) -> None:
        try:
            self._value = self._task()
        except BaseException as e:
            self._error = e
        self._task = lambda: None
        self._over.set()

    def done(self) -> bool:
        return self._over.is_set()

    def result(self) -> Any:
        self._over.wait()
        if self._error is not None:
            raise self._error
        return self._value


class AsynchronousDevice(DeviceDefaults):
    """The device; `journal` lists what was put into its queue, in order."""

    type, priority, host_memory, asynchronous = TYPE, 5, False, True
    kernels: KernelRegistry

    def __init__(self, index: int, limit: int | None) -> None:
        self.dlpack_device: tuple[int, int] | None = (12, index)  # kDLExtDev
        self.journal: list[str] = []
        self.spec = f"/device:{TYPE}:{index}"
        self.allocator = HandleAllocator(limit)
        self.attributes = DeviceAttributes(memory=MEMORY_BYTES, vendor="Timberframe", model="asynchronous")
        self.addresses = itertools.count(1)
        self.memory: dict[int, np.ndarray] = {}
        self.queue = Queue()

    def supports(self, node: KernelNode) -> str | None:
        if role(node.op) is None and not has_reference(node.op):
            return "the op has no reference"
        if any(v.dtype.hasobject for v in (*node.inputs, *node.outputs)):
            return "the device holds numbers only"
        return None

    def compile(self, cluster: Cluster) -> WholeCluster:
        return WholeCluster(self, cluster)

    def copy_in(self, x: np.ndarray) -> DeviceTensor:
        self.journal.append("copy in")
        made = DeviceTensor(self, x.dtype, x.shape)
        address, value = made.address, np.array(x)
        self.queue.enqueue(lambda: self.memory.__setitem__(address, value))
        return made

    def start_copy_out(self, a: DeviceTensor) -> Task:
        self.journal.append("copy out")

        def read() -> np.ndarray:
            a.check()
            return self.memory[a.address].copy()

        return Task(self.queue, read)

    def marker(self) -> Task:
        return Task(self.queue, lambda: None)

    def copy_out(self, a: DeviceTensor) -> np.ndarray:
        found: np.ndarray = self.start_copy_out(a).result()
        return found

    def to_dlpack(self, a: DeviceTensor) -> DLPackView:
        assert self.dlpack_device is not None
        return DLPackView(self.dlpack_device, a.address, a.dtype, a.shape, a)

    def from_dlpack(self, x: Any) -> DeviceTensor:
        found = take_in(x)
        return DeviceTensor(self, found.dtype, found.shape, found.address, found.owner)

    def synchronize(self) -> None:
        self.queue.wait()

    def close(self) -> None:
        self.queue.wait()


class WholeCluster:
    """A cluster as one Python function over host arrays, which the queue calls."""

    def __init__(self, device: AsynchronousDevice, cluster: Cluster) -> None:
        self.device, self.cluster = device, cluster
        self.function = ClusterFunction(cluster)
        self.transaction = Transaction(cluster)
        self.memory = Memory()

    def run(self, inputs: Sequence[DeviceTensor], context: RunContext) -> list[DeviceTensor]:
        with self.transaction.begin(lambda dtype, shape: DeviceTensor(self.device, dtype, shape)) as versions:
            given = [*inputs, *(versions[v.id] for v in self.cluster.resources)]
            outputs = [DeviceTensor(self.device, v.dtype, v.shape) for v in self.cluster.outputs]
            targets = [*outputs, *(versions[u.new.id] for u in self.cluster.updates)]
            self.device.journal.append(f"run {', '.join(n.name for n in self.cluster.nodes)}")
            work = Task(self.device.queue, lambda: self._work(given, targets))
            if context.late is not None:
                context.late.add(self.device, work, lambda _: None)
            if self.cluster.updates or any(v.dynamic for v in self.cluster.outputs):
                context.cancel.wait(work)  # a version is committed only when it is known to be good
            return outputs

    def _work(self, given: Sequence[DeviceTensor], targets: Sequence[DeviceTensor]) -> None:
        memory = self.device.memory
        try:
            for a in given:
                a.check()
            for target, value in zip(
                targets, self.function(translate, [memory[a.address] for a in given]), strict=True
            ):
                memory[target.address] = np.array(value, target.dtype)
                target.shape = np.shape(value)
        except Exception as e:
            for target in targets:
                target.failure = e
            raise


def translate(node: KernelNode, inputs: Sequence[Any]) -> list[np.ndarray]:
    """Returns the outputs of a node, for a ClusterFunction."""
    kind = role(node.op)
    if kind is None:
        return list(compute(node, inputs))
    bodies = [ClusterFunction(c) for c in node.inner]
    if kind == "branch":
        return bodies[0 if truth(inputs[0]) else 1](translate, inputs[1:])
    if kind == "case":
        return bodies[branch_number(int(inputs[0]), len(bodies))](translate, inputs[1:])
    cond, body = bodies
    state, fixed = list(inputs[: len(node.outputs)]), inputs[len(node.outputs) :]
    while truth(cond(translate, [*state, *fixed])[0]):
        state = body(translate, [*state, *fixed])
    return state


@hookimpl
def timberframe_devices(config: Mapping[str, Any]) -> list[Device]:
    limit = memory_limit(config, TYPE, MEMORY_BYTES)
    return [AsynchronousDevice(i, limit) for i in range(device_count(config, TYPE, 2))]


@hookimpl
def timberframe_kernels() -> list[KernelDef]:
    return []
