"""The client's side of a device in a worker: tensors, executables and variables are numbers that the worker gave."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np

import timberframe_sdk as sdk
from timberframe_core.dtypes import as_dtype
from timberframe_core.plugin.contracts import DEPENDS, Support
from timberframe_sdk.remote.tracing import CLOCK_SECONDS, clock_offset, report


class Link(Protocol):
    """One session's way to one worker. devices: what `TaskSession.open` gave. supports: its answers, by question."""

    devices: Sequence[Sequence[Any]]
    incarnation: int
    supports: dict[str, Support]

    def call(
        self,
        who: str,
        call: str,
        arrays: Sequence[np.ndarray] = (),
        cancel: sdk.CancelToken | None = None,
        **details: Any,
    ) -> Any:
        """Returns what the worker answers; raises its errors, in which `who` is the device.

        cancel: stops the call there and here; for calls that take `run`, the number that it is known by.
        """

    def drop(self, number: int) -> None:
        """Makes the worker drop a tensor or an executable, with a later call."""


class RemoteArray:
    """A tensor in a worker, dropped there with the last reference to it here."""

    __slots__ = ("__weakref__", "_link", "dtype", "number", "shape")

    def __init__(self, link: Link, described: Sequence[Any]) -> None:
        self._link = link
        self.number, dtype, shape = described
        self.dtype, self.shape = as_dtype(dtype).numpy, tuple(shape)

    def __del__(self) -> None:
        self._link.drop(self.number)


class RemoteVariable(sdk.Variable):
    """A variable whose value is in the worker, in its container, and stays there when the session ends."""

    __slots__ = ()
    device: RemoteDevice

    def __init__(self, name: str, number: int, device: RemoteDevice, dtype: sdk.DType) -> None:
        self.name, self.number, self.device, self.dtype = name, number, device, dtype
        self.derived, self.lock = {}, threading.RLock()

    def _call(self, call: str, **details: Any) -> Any:
        return self.device.call(call, name=self.name, dtype=self.dtype.name, **details)

    def lease(self) -> sdk.VariableVersion | None:
        """Returns the version, which the worker never writes over once it is known elsewhere."""
        found = self._call("version")
        return None if found is None else _leased(self.device.array(found))

    @property
    def shape(self) -> tuple[int, ...] | None:  # type: ignore[override]  # in place of the attribute
        shape = self._call("shape")
        return None if shape is None else tuple(shape)

    def restore(self, version: sdk.VariableVersion | None) -> None:
        self._call("commit", tensor=None if version is None else version.array.number)

    def close(self) -> None:
        """Does nothing: the value stays."""


def _leased(array: RemoteArray) -> sdk.VariableVersion:
    version = sdk.VariableVersion(array, array.shape)
    version.readers.append(None)
    return version


class RemoteAllocator:
    """What the worker says of its device's memory."""

    def __init__(self, device: RemoteDevice, alignment: int) -> None:
        self._device, self.alignment = device, alignment

    def allocate(self, nbytes: int) -> sdk.Buffer:
        raise sdk.UnimplementedError(f"device {self._device.spec}: its memory is allocated where it is")

    def statistics(self) -> sdk.AllocatorStatistics:
        return sdk.AllocatorStatistics(*self._device.call("statistics"))

    @property
    def fail_at(self) -> int | None:
        found: int | None = self._device.call("fails_at")
        return found

    @fail_at.setter
    def fail_at(self, value: int | None) -> None:
        self._device.call("fail_at", value=value)


class RemoteDevice(sdk.DeviceDefaults):
    """A device of a worker."""

    kernels: sdk.KernelRegistry

    def __init__(self, link: Link, index: int) -> None:
        self.link, self.index = link, index
        (self.type, self.spec, self.priority, memory, vendor, model, dtypes, unsupported, alignment) = link.devices[
            index
        ]
        self.incarnation = link.incarnation
        self.attributes = sdk.DeviceAttributes(memory, vendor, model, "", tuple(dtypes), unsupported)
        self.allocator = RemoteAllocator(self, alignment)
        self._clock: tuple[float, int] | None = None

    def __repr__(self) -> str:
        return f"<Device {self.name} ({self.attributes.model})>"

    def call(self, call: str, *arrays: np.ndarray, cancel: sdk.CancelToken | None = None, **details: Any) -> Any:
        return self.link.call(self.spec, call, arrays, cancel, device=self.index, **details)

    def ask_clock(self) -> int:
        """Returns the time by which the worker tells events of traces."""
        found: int = self.call("clock")
        return found

    def clock_offset(self) -> int:
        """Returns nanoseconds by which that is ahead of this process's clock: measured, and known for a while."""
        if self._clock is None or time.monotonic() - self._clock[0] > CLOCK_SECONDS:
            self._clock = time.monotonic(), clock_offset(self.ask_clock)
        return self._clock[1]

    def array(self, described: Sequence[Any]) -> RemoteArray:
        """Returns a tensor that the worker has made: its number, dtype and shape."""
        return RemoteArray(self.link, described)

    def supports(self, node: sdk.KernelNode) -> Support:
        if any(v.dtype.hasobject for v in (*node.inputs, *node.outputs)):
            return "strings stay in the process of the session"
        question, known = sdk.Cluster(self, [node], [], []), self.link.supports
        key = f"{self.index} {question.fingerprint}"
        if key not in known:
            answer = self.call("supports", np.frombuffer(sdk.write_cluster(question), np.uint8))
            known[key] = DEPENDS if answer == 0 else answer
        return known[key]

    def compile(self, cluster: sdk.Cluster) -> RemoteExecutable:
        return RemoteExecutable(self, cluster.source or cluster)

    def copy_in(self, x: np.ndarray) -> RemoteArray:
        return self.array(self.call("put", np.asarray(x)))

    def copy_out(self, a: RemoteArray) -> np.ndarray:
        found: np.ndarray = self.call("get", tensor=a.number)
        return found

    def host_call(self, work: bytes, inputs: Sequence[Any], cancel: sdk.CancelToken) -> Sequence[Any] | None:
        given = [np.asarray(x if home is None else home.copy_out(x)) for x, home in inputs]
        if any(x.dtype.hasobject for x in given):
            raise sdk.UnimplementedError(f"device {self.spec}: strings stay in the process of the session")
        made = self.call("host_call", np.frombuffer(work, np.uint8), *given, cancel=cancel, kept_bytes=-1)
        return [(self.array(x), self) for x in made]

    def variable(self, name: str, number: int, dtype: sdk.DType) -> sdk.Variable:
        return RemoteVariable(name, number, self, dtype)


class RemoteExecutable:
    """A cluster that the worker has compiled. number: by which that knows it."""

    def __init__(self, device: RemoteDevice, cluster: sdk.Cluster) -> None:
        self._device = device
        self._nodes = [n.name for n in cluster.nodes]
        number, *sizes = device.call("compile", np.frombuffer(sdk.write_cluster(cluster), np.uint8))
        self.number, self.memory = number, sdk.Memory(*sizes)

    def __del__(self) -> None:
        if hasattr(self, "number"):
            self._device.link.drop(self.number)

    def run(self, inputs: Sequence[RemoteArray], context: sdk.RunContext) -> list[RemoteArray]:
        self.refuse_observer(context)
        numbers = [x.number for x in inputs]
        report_to_trace = self.reporter(context)
        answer = self._device.link.call(
            self._device.spec, "run", (), context.cancel,
            executable=self.number, inputs=numbers, mode=context.mode, fence=context.fence,
            trace=context.trace is not None,
        )  # fmt: skip
        report_to_trace(answer)
        return [self._device.array(x) for x in answer["made"]]

    def reporter(self, context: sdk.RunContext) -> Callable[[Any], None]:
        """Before a run: what reports to its trace when it gets the worker's answer; nothing where there is none."""
        sink, device, nodes = context.trace, self._device, self._nodes
        if sink is None:
            return lambda _: None
        offset = device.clock_offset()
        return lambda answer: report(sink, answer["trace"], device.spec, nodes, offset)

    def refuse_observer(self, context: sdk.RunContext) -> None:
        """Raises UnimplementedError where somebody wants to see each node of a run."""
        if context.observer is not None:
            raise sdk.UnimplementedError(f"device {self._device.spec}: no observer sees the nodes of another process")
