"""A device unlike the others, to keep the contract honest: memory of its own that NumPy cannot see, a queue that works
later and slowly, and a compiler that takes a cluster as a whole. It computes with the ops' references.
"""

from __future__ import annotations

import itertools
import queue
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from timberframe_core.ops.control_flow.functional import branch_number
from timberframe_core.ops.definition import registry
from timberframe_sdk import (
    Allocator,
    Cluster,
    Device,
    DeviceAttributes,
    DLPackView,
    KernelDef,
    KernelNode,
    Memory,
    OpError,
    RunContext,
    Transaction,
    UnimplementedError,
    Value,
    device_count,
    hookimpl,
    take_in,
)

DELAY_SECONDS = 0.0005


class CanaryArray:
    """A tensor in the canary's memory: a number that means something to the canary only. owner: of a borrowed one."""

    def __init__(
        self,
        device: CanaryDevice,
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
        """Raises the error of what should have made it."""
        if self.failure is not None:
            raise self.failure

    def __del__(self) -> None:
        if self.owner is None and hasattr(self, "address"):
            self.device.memory.pop(self.address, None)


class CanaryAllocator(Allocator):
    alignment = 256

    def raw(self, nbytes: int) -> object:
        return object()


class Queue:
    """Does one thing after the other, a little later than asked."""

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
        CanaryPending(self, lambda: None).result()


class CanaryPending:
    """A Pending: something that the queue was told to do last."""

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


class CanaryDevice:
    type, priority, host_memory, asynchronous = "CANARY", 5, False, True

    def __init__(self, index: int, limit: int | None) -> None:
        self.dlpack_device = 12, index  # kDLExtDev
        self.journal: list[str] = []  # for tests: what the queue was told to do, in order
        self.spec = f"/device:CANARY:{index}"
        self.allocator = CanaryAllocator(limit)
        self.attributes = DeviceAttributes(memory=1 << 30, vendor="Timberframe", model="canary")
        self.addresses = itertools.count(1)
        self.memory: dict[int, np.ndarray] = {}
        self.queue = Queue()

    def supports(self, node: KernelNode) -> str | None:
        op = registry.get(node.op)
        if op.reference is None:
            return "the op has no reference"
        if any(v.dtype.hasobject for v in (*node.inputs, *node.outputs)):
            return "the canary holds numbers only"
        return None

    def compile(self, cluster: Cluster) -> CanaryExecutable:
        return CanaryExecutable(self, cluster)

    def copy_in(self, x: np.ndarray) -> CanaryArray:
        self.journal.append("copy in")
        made = CanaryArray(self, x.dtype, x.shape)
        address, value = made.address, np.array(x)
        self.queue.enqueue(lambda: self.memory.__setitem__(address, value))
        return made

    def start_copy_out(self, a: CanaryArray) -> CanaryPending:
        self.journal.append("copy out")

        def read() -> np.ndarray:
            a.check()
            return self.memory[a.address].copy()

        return CanaryPending(self.queue, read)

    def marker(self) -> CanaryPending:
        return CanaryPending(self.queue, lambda: None)

    def copy_out(self, a: CanaryArray) -> np.ndarray:
        found: np.ndarray = self.start_copy_out(a).result()
        return found

    def copy_from(self, source: Device, a: Any) -> None:
        return None

    def to_dlpack(self, a: CanaryArray) -> DLPackView:
        return DLPackView(self.dlpack_device, a.address, a.dtype, a.shape, a)

    def from_dlpack(self, x: Any) -> CanaryArray:
        found = take_in(x)
        return CanaryArray(self, found.dtype, found.shape, found.address, found.owner)

    def synchronize(self) -> None:
        self.queue.wait()

    def close(self) -> None:
        self.queue.wait()


class CanaryExecutable:
    """A cluster as one Python function over host arrays, which the queue calls."""

    def __init__(self, device: CanaryDevice, cluster: Cluster) -> None:
        self.device, self.cluster = device, cluster
        self.function = translate(cluster)
        self.transaction = Transaction(cluster)
        self.memory = Memory()

    def run(self, inputs: Sequence[CanaryArray], context: RunContext) -> list[CanaryArray]:
        with self.transaction.begin(lambda dtype, shape: CanaryArray(self.device, dtype, shape)) as versions:
            given = [*inputs, *(versions[v.id] for v in self.cluster.resources)]
            outputs = [CanaryArray(self.device, v.dtype, v.shape) for v in self.cluster.outputs]
            targets = [*outputs, *(versions[u.new.id] for u in self.cluster.updates)]
            self.device.journal.append(f"run {', '.join(n.name for n in self.cluster.nodes)}")
            work = CanaryPending(self.device.queue, lambda: self._work(given, targets))
            if context.late is not None:
                context.late.add(self.device, work, lambda _: None)
            if self.cluster.updates or any(v.dynamic for v in self.cluster.outputs):
                context.cancel.wait(work)  # a version is committed only when it is known to be good
            return outputs

    def _work(self, given: Sequence[CanaryArray], targets: Sequence[CanaryArray]) -> None:
        memory = self.device.memory
        try:
            for a in given:
                a.check()
            for target, value in zip(targets, self.function([memory[a.address] for a in given]), strict=True):
                memory[target.address] = np.array(value, target.dtype)
                target.shape = np.shape(value)
        except Exception as e:
            for target in targets:
                target.failure = e
            raise


Function = Callable[[Sequence[np.ndarray]], list[np.ndarray]]


def translate(cluster: Cluster) -> Function:
    """The function of a cluster's inputs and versions that gives its outputs and new versions."""
    steps = [(node, step_of(node)) for node in cluster.nodes]
    wanted = [*cluster.outputs, *(u.new for u in cluster.updates)]

    def run(given: Sequence[np.ndarray]) -> list[np.ndarray]:
        found = {v.id: x for v, x in zip((*cluster.inputs, *cluster.resources), given, strict=True)}

        def value(v: Value) -> np.ndarray:
            return v.constant if v.kind == "const" else found[v.id]

        for node, step in steps:
            try:
                results = step([value(v) for v in node.inputs])
            except OpError:
                raise
            except Exception as e:
                raise UnimplementedError(f"{node.op} '{node.name}': {e}", node.name) from e
            found.update({v.id: np.asarray(r) for v, r in zip(node.outputs, results, strict=True)})
        return [value(v) for v in wanted]

    return run


def step_of(node: KernelNode) -> Function:
    if node.op in ("While", "StatelessWhile"):
        return loop(node)
    if node.op in ("If", "StatelessIf"):
        then, otherwise = (translate(c) for c in node.inner)
        return lambda x: (then if x[0] else otherwise)(x[1:])
    if node.op in ("Case", "StatelessCase"):
        branches = [translate(c) for c in node.inner]
        return lambda x: branches[branch_number(int(x[0]), len(branches))](x[1:])
    reference = registry.get(node.op).reference
    assert reference is not None

    def call(x: Sequence[np.ndarray]) -> list[np.ndarray]:
        result = reference(node.attrs, *x)
        return list(result) if isinstance(result, tuple) else [result]

    return call


def loop(node: KernelNode) -> Function:
    cond, body = (translate(c) for c in node.inner)
    count = len(node.outputs)

    def run(given: Sequence[np.ndarray]) -> list[np.ndarray]:
        state, fixed = list(given[:count]), given[count:]
        while cond([*state, *fixed])[0]:
            state = body([*state, *fixed])
        return state

    return run


@hookimpl
def timberframe_devices(config: Mapping[str, Any]) -> list[Device]:
    limit = config["memory_limit"].get("CANARY")
    return [CanaryDevice(i, limit) for i in range(device_count(config, "CANARY", 2))]


@hookimpl
def timberframe_kernels() -> list[KernelDef]:
    return []
