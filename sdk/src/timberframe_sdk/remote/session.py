"""The worker's side of devices of another process: what it keeps for a session of a client, and what it answers.

A call is a method `do_<call>`. Tensors and executables are known to the client by numbers.
"""

from __future__ import annotations

import os
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from itertools import count
from typing import Any

import numpy as np

from timberframe_core.compiler.passes import standard as _standard_passes  # noqa: F401  # registers them
from timberframe_core.compiler.passes.pipeline import Pipeline
from timberframe_core.config import SessionConfig
from timberframe_core.dtypes import as_dtype
from timberframe_core.errors import CancelledError
from timberframe_core.plugin import loader
from timberframe_core.plugin.contracts import DEPENDS, CancelToken, Cluster, Device, RunContext
from timberframe_core.plugin.state import Variable
from timberframe_core.plugin.wire_reader import read_cluster
from timberframe_core.runtime.devices import devices_for
from timberframe_core.runtime.resources import ResourceStore
from timberframe_core.runtime.shared_resources import carry_out
from timberframe_sdk.remote.tracing import RecordedEvents

_CANCELLED = CancelledError("the client cancelled the run")


class Task:
    """What all sessions of a worker share: its name, the incarnation, and a store for each container."""

    def __init__(self, job: str, number: int) -> None:
        self.name = f"/job:{job}/replica:0/task:{number}"
        self.incarnation = int.from_bytes(os.urandom(7))
        self.stores: dict[str, ResourceStore] = {}

    def variable(self, key: str, device: Device, dtype: str) -> Variable:
        """Returns the variable of a name, which may begin with its container: ``container:name``."""
        container = key.partition(":")[0] if ":" in key else ""
        return self.store(container).variables.get(key, device, as_dtype(dtype))

    def store(self, container: str) -> ResourceStore:
        """Returns what sessions share in a container."""
        return self.stores.setdefault(container, ResourceStore())

    def reset(self, containers: Sequence[str]) -> None:
        """Drops the variables in these containers, or in all."""
        for container in containers or list(self.stores):
            store = self.stores.pop(container, None)
            if store is not None:
                store.close()


class TaskSession:
    """One session of a client in a worker: its tensors, executables and random streams."""

    def __init__(self, task: Task) -> None:
        self.task = task
        self.tokens: dict[int, CancelToken] = {}
        self.cancelled: deque[int] = deque(maxlen=64)
        """Runs that were cancelled before they began, or after they had ended."""
        self.devices: list[Device] = []
        self.pipeline = Pipeline()
        self.resources = ResourceStore()
        self.kept: dict[int, Any] = {}
        self._ids = count(1)
        self._lock = threading.Lock()

    def open(self, config: dict[str, Any]) -> list[list[Any]]:
        """Opens the devices, by the settings of the client's session; what it must know of them."""
        settings = SessionConfig(**config)
        self.devices = devices_for(settings)
        plugins = [p.name for p in loader.registry.load(settings.plugins)]
        passes = loader.registry.passes.selected(plugins, {})  # a pass of the client's plugins may not be here
        self.pipeline = Pipeline([p for p in passes if settings.optimizations.get(p.name, True)], self.devices)
        for device in self.devices:
            if not device.spec.startswith(self.task.name):
                device.spec = self.task.name + device.spec
        return [
            [d.type, d.spec, d.priority, d.attributes.memory, d.attributes.vendor, d.attributes.model,
             list(d.attributes.dtypes), dict(d.attributes.unsupported_ops), d.allocator.alignment]
            for d in self.devices
        ]  # fmt: skip

    def answer(self, call: str, arrays: Sequence[np.ndarray], details: dict[str, Any]) -> Any:
        """Carries out one call; `details["device"]`, where it is there, is the number of a device."""
        method: Callable[..., Any] = getattr(self, f"do_{call}")
        if "device" in details:
            details["device"] = self.devices[details["device"]]
        return method(*arrays, **details)

    def drop(self, numbers: Sequence[int]) -> None:
        """Drops tensors and executables."""
        for number in numbers:
            self.kept.pop(number, None)

    def keep(self, thing: Any) -> int:
        """Returns the number by which the client knows a tensor or an executable."""
        number = next(self._ids)
        self.kept[number] = thing
        return number

    def _described(self, array: Any) -> list[Any]:
        return [self.keep(array), as_dtype(np.dtype(array.dtype)).name, list(array.shape)]

    def do_close(self) -> None:
        for token in list(self.tokens.values()):
            token.cancel(CancelledError("the session of the run has ended"))
        self.kept.clear()
        self.resources.close()

    def do_ping(self) -> None:
        """This process answers."""

    def do_cancel(self, run: int) -> None:
        with self._lock:
            token = self.tokens.get(run)
            if token is None:
                self.cancelled.append(run)
        if token is not None:
            token.cancel(_CANCELLED)

    def do_reset(self, containers: list[str]) -> None:
        self.task.reset(containers)

    def _cluster(self, wire: np.ndarray, device: Device) -> Cluster:
        return read_cluster(
            wire.tobytes(),
            device,
            lambda name, dtype: self.task.variable(name, device, dtype.name),
            lambda name: self.resources.variables.stream("", name, seeded=True),
        )

    def do_supports(self, wire: np.ndarray, device: Device) -> str | int | None:
        found = device.supports(self._cluster(wire, device).nodes[0])
        return 0 if found is DEPENDS else found

    def do_compile(self, wire: np.ndarray, device: Device) -> list[int]:
        _, executable = self.pipeline.compile(self._cluster(wire, device), [])
        memory = executable.memory
        return [self.keep(executable), memory.persistent, memory.arena, memory.workspace]

    def do_run(
        self,
        executable: int,
        inputs: list[int],
        mode: str,
        fence: str,
        run: int,
        outputs: Sequence[int] = (),
        trace: bool = False,
    ) -> dict[str, Any]:
        """Runs; what was `made`, and for a `trace` what `report` takes.

        outputs: the numbers that the tensors get, from a client that knows dtypes and shapes: `made` is empty then.
        """
        recorded = RecordedEvents() if trace else None
        token = self._begin(run)
        try:
            context = RunContext(token, recorded, mode, fence=fence)
            made = self.kept[executable].run([self.kept[i] for i in inputs], context)
        finally:
            del self.tokens[run]
        if outputs:
            self.kept.update(zip(outputs, made, strict=True))
        described = [] if outputs else [self._described(x) for x in made]
        return {"made": described, "trace": None if recorded is None else recorded.as_plain()}

    def do_clock(self, device: Device) -> int:
        """Returns the time now, by the clock of the events of traces."""
        return time.perf_counter_ns()

    def do_host_call(self, work: Any, *inputs: np.ndarray, device: Device, run: int, kept_bytes: int) -> list[Any]:
        """Carries out an op on a shared resource; outputs of more than kept_bytes stay here and are described."""
        token = self._begin(run)
        try:
            made = carry_out(work.tobytes(), inputs, self.task.store, device, token)
        finally:
            del self.tokens[run]
        small = [x.dtype.hasobject or x.nbytes <= kept_bytes for x in made]
        return [x if s else self._described(device.copy_in(x)) for x, s in zip(made, small, strict=True)]

    def _begin(self, run: int) -> CancelToken:
        """Returns what cancels a run while it is here; raises the reason if it was cancelled before."""
        token = CancelToken()
        with self._lock:
            if run in self.cancelled:
                raise _CANCELLED
            self.tokens[run] = token
        return token

    def do_put(self, array: np.ndarray, device: Device) -> list[Any]:
        return self._described(device.copy_in(array))

    def do_get(self, device: Device, tensor: int) -> np.ndarray:
        return device.copy_out(self.kept[tensor])

    def do_positions(self) -> dict[str, dict[str, list[Any]]]:
        """Returns the positions of the session's random streams: dtype and value of each part."""
        return {
            key: {part: [str(np.asarray(x).dtype), np.asarray(x).tolist()] for part, x in position.items()}
            for key, position in self.resources.positions().items()
        }

    def do_set_positions(self, positions: dict[str, dict[str, list[Any]]]) -> bool:
        return self.resources.set_positions(
            {
                key: {part: np.array(values, dtype) for part, (dtype, values) in parts.items()}
                for key, parts in positions.items()
            }
        )

    def do_version(self, device: Device, name: str, dtype: str) -> list[Any] | None:
        version = self.task.variable(name, device, dtype).lease()  # for good: the client may read it at any time
        return None if version is None else self._described(version.array)

    def do_shape(self, device: Device, name: str, dtype: str) -> list[int] | None:
        shape = self.task.variable(name, device, dtype).shape
        return None if shape is None else list(shape)

    def do_commit(self, device: Device, name: str, dtype: str, tensor: int | None) -> None:
        variable = self.task.variable(name, device, dtype)
        array = None if tensor is None else self.kept[tensor]
        with variable.lock:
            variable.commit(array, None if array is None else tuple(array.shape))
            variable.lease()  # for good: the client has the array, too

    def do_statistics(self, device: Device) -> list[Any]:
        s = device.allocator.statistics()
        return [s.used, s.peak, s.limit, s.live, s.total]

    def do_fails_at(self, device: Device) -> int | None:
        return device.allocator.fail_at

    def do_fail_at(self, device: Device, value: int | None) -> None:
        device.allocator.fail_at = value
