"""The CPU as a device."""

from __future__ import annotations

import contextlib
import os
import platform
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from timberframe_cpu.allocator import ArenaPool, CpuAllocator
from timberframe_cpu.blocks import LEAST_ELEMENTS, SHORTEST_RUN, can_fuse, can_reduce
from timberframe_cpu.kernel_builder import KernelBuilder
from timberframe_cpu.native import available_isas, check_isa, default_isa, using_isa
from timberframe_cpu.program import CpuExecutable
from timberframe_sdk import (
    NUMERIC,
    UNIT_KERNELS,
    Cluster,
    DeviceAttributes,
    DeviceDefaults,
    Failures,
    KernelNode,
    KernelRegistry,
    Support,
)
from timberframe_sdk.dlpack import HOST, host_view
from timberframe_sdk.elementwise.fusion import Fusion
from timberframe_sdk.execution.control_flow import is_control_flow
from timberframe_sdk.settings import device_count, device_options, memory_limit

_CPU_QUOTA = Path("/sys/fs/cgroup/cpu.max")
_PROCESSORS = Path("/proc/cpuinfo")
_GROUP_LIMITS = (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"))

PRECISIONS = ("float32", "bfloat16")
OPTIONS = {"isa": None, "matmul_precision": PRECISIONS}
"""Options of a session for these devices, with their values; what `isa` may be depends on the machine."""

DTYPES = (*(t.name for t in NUMERIC), "bool", "string")


def usable_cpus() -> int:
    """Processors that this process may run on: those of its affinity, or what its control group pays for."""
    count = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    try:
        quota, period = map(int, _CPU_QUOTA.read_text().split())
    except (OSError, ValueError):  # not there, or "max"
        return count
    return min(count, max(1, -(-quota // period)))


class CpuDevice(DeviceDefaults):
    """The host's processor, or one of several virtual devices on it.

    memory_limit: bytes for arenas and large tensors, None for what the machine has. isa: the kernels' variant, None for
    the best. threads: most threads that one run uses, None for all processors. matmul_precision: "bfloat16" has
    products of float32 with constants and variables computed of numbers rounded to bfloat16, where the processor
    multiplies these faster.
    """

    type = "CPU"
    priority = 100
    host_memory = True
    dlpack_device = HOST
    kernels: KernelRegistry

    def __init__(
        self,
        index: int = 0,
        memory_limit: int | None = None,
        isa: str | None = None,
        threads: int | None = None,
        matmul_precision: str = PRECISIONS[0],
    ) -> None:
        self.spec = f"/device:{self.type}:{index}"
        self.failures = Failures("compile")
        self.isa = check_isa(isa, f"{self.spec}: device option isa") if isa else default_isa()
        self.threads = threads or usable_cpus()
        self.matmul_precision = matmul_precision
        self.fusion = Fusion(self._can_fuse, can_reduce, SHORTEST_RUN)
        limit = memory_limit or usable_memory()
        self.allocator = CpuAllocator(limit)
        self.arenas = ArenaPool(self.allocator)
        self.builder = KernelBuilder(self, lambda: self.kernels)
        self.attributes = DeviceAttributes(
            memory=limit or 0,
            vendor=platform.machine(),
            model=processor_name(),
            dtypes=DTYPES,
            variants={"isa": available_isas()},
            details={"isa": self.isa, "threads": self.threads, "matmul_precision": self.matmul_precision},
        )

    def __repr__(self) -> str:
        return f"<Device {self.name} ({self.attributes.model})>"

    def supports(self, node: KernelNode) -> Support:
        """Returns None if there is a kernel for the node, else why the registered ones do not fit, or DEPENDS."""
        if is_control_flow(node) or node.op in UNIT_KERNELS:
            return None
        return self.kernels.supports(node)

    def compile(self, cluster: Cluster) -> CpuExecutable:
        """Returns a native program that runs the cluster."""
        self.failures.check("compile")
        with using_isa(self.isa):
            return CpuExecutable(self, cluster)

    def inject_failure(self, kind: str) -> bool:
        """See Device: compiling and allocating; all else raises where it is called."""
        return self.failures.inject(kind) or super().inject_failure(kind)

    def withdraw_failures(self) -> Collection[str]:
        """See Device."""
        return [*self.failures.withdraw(), *super().withdraw_failures()]

    def _can_fuse(self, node: KernelNode) -> bool:
        if node.outputs[0].size < LEAST_ELEMENTS:
            return False  # most nodes of many small ones: asked first, it costs nothing
        with using_isa(self.isa):
            return can_fuse(node, self.builder.build)

    def empty(self, dtype: np.dtype[Any], shape: tuple[int, ...]) -> np.ndarray:
        """Returns a new array that owns its memory."""
        return self.allocator.empty(dtype, shape)

    def copy(self, source: np.ndarray, target: np.ndarray) -> None:
        """Copies a tensor into another of the same dtype and shape."""
        np.copyto(target, source)

    def copy_in(self, x: np.ndarray) -> np.ndarray:
        """x itself where it is dense and aligned, else a copy that is."""
        return x if x.flags.carray else np.require(x, requirements=["C", "A"])  # require alone takes 0.7 us

    def copy_out(self, a: np.ndarray) -> np.ndarray:
        """Returns the array itself: tensors of this device are host arrays."""
        return a

    def from_dlpack(self, x: Any) -> np.ndarray:
        """Returns a view of what x holds in host memory."""
        return self.copy_in(host_view(x))

    def direct_call(self, executable: CpuExecutable, general: Callable[..., Any]) -> Callable[..., Any] | None:
        """Returns one native call, for programs without Python in them."""
        return executable.direct(general)

    def close(self) -> None:
        """Gives back the memory that waits for further runs, and what was derived from constants."""
        self.arenas.drop_idle()
        self.builder.forms.clear()


def usable_memory() -> int | None:
    """Returns bytes of memory that this process may fill: the machine's, or what its control group allows."""
    limits = []
    with contextlib.suppress(AttributeError, ValueError, OSError):
        limits.append(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    for file in _GROUP_LIMITS:
        try:
            limits.append(int(file.read_text()))
        except (OSError, ValueError):  # not there, or "max"
            continue
    return min(limits, default=None)


def processor_name() -> str:
    """Returns what the system calls the processor; its architecture where it says no more."""
    with contextlib.suppress(OSError):
        for line in _PROCESSORS.read_text().splitlines():
            key, _, value = line.partition(":")
            if key.strip() == "model name":
                return value.strip()
    return platform.processor() or platform.machine()


def devices(config: Mapping[str, Any]) -> list[CpuDevice]:
    """Returns the devices that a SessionConfig asks for, with their OPTIONS: one unless its count says otherwise."""
    options = device_options(config, CpuDevice.type, OPTIONS)
    total = usable_memory() or 0
    limit = memory_limit(config, CpuDevice.type, total, accelerator=False)
    threads, count = config["threads"], device_count(config, CpuDevice.type, 1, accelerator=False)
    return [CpuDevice(i, limit, threads=threads, **options) for i in range(count)]
