"""KernelDevice: a device that runs kernel by kernel. A vendor writes an allocator, five small methods, and kernels."""

from __future__ import annotations

import time
from abc import abstractmethod
from collections.abc import Callable, Collection
from typing import Any

import numpy as np

from timberframe_core.plugin.contracts import (
    Array,
    Cluster,
    DeviceAttributes,
    Executable,
    KernelDef,
    KernelNode,
    RunContext,
    Support,
)
from timberframe_core.plugin.device_defaults import DeviceDefaults
from timberframe_core.plugin.kernels import KernelRegistry
from timberframe_core.plugin.nodes import UNIT_KERNELS
from timberframe_sdk.allocator import Allocator, Buffer
from timberframe_sdk.dlpack import DLPackView, host_view, take_in
from timberframe_sdk.execution.constants import PerConstant
from timberframe_sdk.execution.control_flow import is_control_flow
from timberframe_sdk.execution.kernel_executable import KernelExecutable
from timberframe_sdk.execution.prepared import PreparedForms
from timberframe_sdk.failures import Failures
from timberframe_sdk.reference import has_reference, reference_kernels


class KernelDevice(DeviceDefaults):
    """Base of devices that have a kernel for each op.

    A subclass sets `type`, `allocator` and `attributes`, and writes `array`, `empty`, `copy`, `copy_in`, `copy_out`
    (and `take` where a kernel decides a shape). One that is asynchronous also writes `start_copy_out` and `marker`; one
    that sets `dlpack_device` writes `address` and `adopt`. Kernels come from the KernelRegistry, which the core sets as
    `kernels`; one with host memory that sets `by_reference` computes ops that it has no kernel for by their references.

    failures: what the driver is to fail at next; one that is asynchronous sets ``Failures("launch", "copy", "compile",
    "queue")`` and checks it where it launches, copies and takes commands. See `Device.inject_failure`.
    """

    type = ""
    by_reference = False
    dlpack_stream: int | None = None
    allocator: Allocator
    attributes: DeviceAttributes
    kernels: KernelRegistry

    def __init__(self, index: int = 0) -> None:
        self.spec = f"/device:{self.type}:{index}"
        self.failures = Failures("compile")
        self._constants = PerConstant[Array]()
        self.forms = PreparedForms(lambda x: self.copy_in(x))

    def __repr__(self) -> str:
        return f"<Device {self.name} ({self.attributes.model})>"

    # What a vendor writes

    @abstractmethod
    def array(self, buffer: Buffer, offset: int, dtype: np.dtype[Any], shape: tuple[int, ...]) -> Array:
        """Returns a tensor that lies at `offset` bytes in the buffer."""
        raise NotImplementedError

    @abstractmethod
    def empty(self, dtype: np.dtype[Any], shape: tuple[int, ...]) -> Array:
        """Returns a new tensor that owns its memory, its values undefined."""
        raise NotImplementedError

    @abstractmethod
    def copy(self, source: Array, target: Array) -> None:
        """Copies a tensor into another of the same dtype and shape."""
        raise NotImplementedError

    @abstractmethod
    def copy_in(self, x: np.ndarray) -> Array:
        """Returns the device's copy of a host array of any strides."""
        raise NotImplementedError

    @abstractmethod
    def copy_out(self, a: Array) -> np.ndarray:
        """Returns a host copy of a tensor, after all work that was enqueued before."""
        raise NotImplementedError

    def take(self, a: Array, shape: tuple[int, ...]) -> Array:
        """Returns a new tensor of `shape` with the first elements of `a`, which a kernel filled less than its bound."""
        taken = self.copy_out(a).reshape(-1)[: int(np.prod(shape))].reshape(shape)
        return self.copy_in(taken.copy() if self.host_memory else taken)  # there both copies may be `a` itself

    def address(self, a: Array) -> int:
        """Returns where a tensor begins, as DLPack wants it of this kind of device."""
        raise NotImplementedError

    def adopt(self, address: int, dtype: np.dtype[Any], shape: tuple[int, ...], owner: Any) -> Array:
        """Returns a tensor at an address that DLPack gave, which keeps `owner`."""
        raise NotImplementedError

    def timed(self, launch: Callable[[], Any]) -> tuple[Any, int, int]:
        """Launches, waits for the work, and gives what `launch` returned, with the work's start and end, for traces.

        Both are nanoseconds of time.perf_counter_ns. Here they include the way to an asynchronous device and back; one
        that has events of its own gives its time by them: where the work began, and as much later where it ended.
        """
        start = time.perf_counter_ns()
        result = launch()
        if self.asynchronous:
            self.marker().result()
        return result, start, time.perf_counter_ns()

    # What is done for the vendor

    def inject_failure(self, kind: str) -> bool:
        """See Device: allocations, what the SDK builds, and the kinds that the driver checks `failures` for."""
        return self.failures.inject(kind) or super().inject_failure(kind)

    def withdraw_failures(self) -> Collection[str]:
        """See Device."""
        return [*self.failures.withdraw(), *super().withdraw_failures()]

    def to_dlpack(self, a: Array) -> Any:
        """Returns an object with `__dlpack__`: a view of `a` where `dlpack_device` is set, else a host copy."""
        if self.dlpack_device is None or self.host_memory:
            return self.copy_out(a)
        return DLPackView(self.dlpack_device, self.address(a), np.dtype(a.dtype), tuple(a.shape), a)

    def from_dlpack(self, x: Any) -> Array:
        """Returns the tensor of an object with `__dlpack__` that lies on `dlpack_device`: a
        view that keeps it alive.
        """
        if self.dlpack_device is None or self.host_memory:
            return self.copy_in(host_view(x))
        found = take_in(x, self.dlpack_stream)
        return self.adopt(found.address, found.dtype, found.shape, found.owner)

    def close(self) -> None:
        """Drops the constants that were uploaded, and what was derived from them."""
        self._constants.clear()
        self.forms.clear()

    def kernel(self, node: KernelNode) -> KernelDef | None:
        """Returns the registered kernel for a node; its op's reference where there is none and the
        device is `by_reference`.
        """
        return self.kernels.find(node) or self._by_reference(node)

    def _by_reference(self, node: KernelNode) -> KernelDef | None:
        """Returns the kernel that computes the node by its op's reference, where the device may do so."""
        if not self.by_reference or "_kernel" in node.attrs or not has_reference(node.op):
            return None
        return next((k for k in reference_kernels(self.type, [node.op]) if not k.accepts(node.attrs)), None)

    def supports(self, node: KernelNode) -> Support:
        """Returns None if there is a kernel for the node, else why the registered ones do not fit, or DEPENDS."""
        if is_control_flow(node) or node.op in UNIT_KERNELS or self._by_reference(node) is not None:
            return None
        answer = self.kernels.supports(node)
        if isinstance(answer, str) and node.op in self.attributes.unsupported_ops:
            return f"no kernel, on purpose: {self.attributes.unsupported_ops[node.op]}"
        return answer

    def compile(self, cluster: Cluster) -> Executable:
        return KernelExecutable(self, cluster)

    def direct_call(self, executable: Executable, general: Callable[..., Any]) -> Callable[..., Any] | None:
        """Runs the kernels with no executor in between; what they raise is for the general way to word.

        What does not come again, as a failure of the driver, is raised as it is.
        """
        if self.asynchronous or not isinstance(executable, KernelExecutable):
            return None
        wanted = [(v.dtype, v.shape) for v in executable.cluster.inputs]
        one = len(executable.cluster.outputs) == 1

        def call(*values: Any) -> Any:
            for x, (dtype, shape) in zip(values, wanted, strict=True):
                if type(x) is not np.ndarray or x.dtype != dtype or x.shape != shape:
                    return general(*values)
            try:
                found = [self.copy_out(a) for a in executable.run([self.copy_in(x) for x in values], RunContext())]
            except Exception:
                general(*values)
                raise
            return found[0] if one else found

        return call

    def constant(self, x: np.ndarray) -> Array:
        """Returns the device's copy of a host constant; each is uploaded once, and dropped with the host's array."""
        found = self._constants.get(x)
        if found is None:
            found = self.copy_in(x)
            if found is not x:
                self._constants.keep(x, found)
        return found
