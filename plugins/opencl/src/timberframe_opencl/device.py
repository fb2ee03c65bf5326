"""OpenCL devices: memory, copies, and kernels compiled by the driver."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyopencl as cl

from timberframe_sdk import DeviceAttributes, InternalError, InvalidArgumentError, memory_limit
from timberframe_sdk.accelerator import AcceleratorDevice, DeviceTensor, Function, Limits, header_folder
from timberframe_sdk.allocator import Allocator, Buffer

TYPE = "OPENCL"
_DTYPES = (
    "float32", "float16", "bfloat16", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "bool",
)  # fmt: skip


class OpenCLAllocator(Allocator):
    """Buffers of a context, out of a pool that keeps those which were given back."""

    def __init__(self, queue: cl.CommandQueue, limit: int | None) -> None:
        super().__init__(limit)
        self.alignment = max(64, queue.device.mem_base_addr_align // 8)
        self._pool = cl.tools.MemoryPool(cl.tools.ImmediateAllocator(queue))

    def raw(self, nbytes: int) -> Any:
        try:
            return self._pool.allocate(max(nbytes, 1))
        except cl.MemoryError as e:
            raise MemoryError(str(e)) from e

    def free_idle(self) -> None:
        """Gives the buffers that nobody uses back to the driver."""
        self._pool.free_held()


class OpenCLDevice(AcceleratorDevice):
    """One OpenCL device with a queue of its own, in order."""

    type = TYPE
    allocator: OpenCLAllocator

    def __init__(self, index: int, device: cl.Device, limit: int | None = None) -> None:
        super().__init__(index)
        self.device = device
        self.context = cl.Context([device])
        self.queue = cl.CommandQueue(self.context)
        self.allocator = OpenCLAllocator(self.queue, limit)
        float64 = "cl_khr_fp64" in device.extensions or bool(device.double_fp_config)
        is_cpu = bool(device.type & cl.device_type.CPU)
        self.priority = 50 if is_cpu else 200  # a CPU behind a driver comes after the CPU itself
        self.limits = Limits(device.max_work_group_size, device.local_mem_size, float64)
        self.attributes = DeviceAttributes(
            memory=device.global_mem_size, vendor=device.vendor, model=device.name, driver=device.driver_version,
            dtypes=(*_DTYPES, "float64") if float64 else _DTYPES,
            details={"platform": device.platform.name, "compute units": device.max_compute_units},
        )  # fmt: skip
        self._launching = threading.Lock()

    # Memory

    def array(self, buffer: Buffer, offset: int, dtype: np.dtype[Any], shape: tuple[int, ...]) -> DeviceTensor:
        tensor = DeviceTensor(None, dtype, shape)
        whole: Any = cl.Buffer.from_int_ptr(buffer.handle.int_ptr, retain=True)  # typed as an object only
        tensor.handle = whole.get_sub_region(offset, max(tensor.nbytes, 1))
        tensor.owner = buffer
        return tensor

    def empty(self, dtype: np.dtype[Any], shape: tuple[int, ...]) -> DeviceTensor:
        tensor = DeviceTensor(None, dtype, shape)
        tensor.owner = self.allocator.allocate(tensor.nbytes)
        tensor.handle = tensor.owner.handle
        return tensor

    def copy(self, source: DeviceTensor, target: DeviceTensor) -> None:
        if target.nbytes:
            cl.enqueue_copy(self.queue, target.handle, source.handle, byte_count=target.nbytes)

    def copy_in(self, x: np.ndarray) -> DeviceTensor:
        tensor = self.empty(x.dtype, x.shape)
        if tensor.nbytes:
            dense = np.require(x, requirements=["C", "A"])
            cl.enqueue_copy(self.queue, tensor.handle, dense.reshape(-1).view(np.uint8), is_blocking=True)
        return tensor

    def copy_out(self, a: DeviceTensor) -> np.ndarray:
        x = np.empty(a.shape, a.dtype)
        if a.nbytes:
            cl.enqueue_copy(self.queue, x.reshape(-1).view(np.uint8), a.handle, is_blocking=True)
        return x

    def synchronize(self) -> None:
        self.queue.finish()

    def close(self) -> None:
        super().close()
        self.allocator.free_idle()

    # Kernels

    def build(self, source: str, name: str) -> Function:
        options = [f"-I{header_folder()}", "-cl-std=CL1.2"]
        if self.device.single_fp_config & cl.device_fp_config.CORRECTLY_ROUNDED_DIVIDE_SQRT:
            options.append("-cl-fp32-correctly-rounded-divide-sqrt")
        if not self.limits.float64:
            options.append("-DTF_NO_FLOAT64")
        try:
            program = cl.Program(self.context, source).build(options)
        except cl.RuntimeError as e:
            raise InternalError(f"{self.spec}: the driver refuses a source; its words are\n{e}\n{source}") from e
        kernel = cl.Kernel(program, name)
        launching, queue, enqueue = self._launching, self.queue, cl.enqueue_nd_range_kernel

        def run(items: Sequence[int], group: Sequence[int], *arguments: Any) -> None:
            given = [a.handle if isinstance(a, DeviceTensor) else a for a in arguments]
            with launching:  # a kernel object holds its arguments
                kernel.set_args(*given)
                enqueue(queue, kernel, tuple(items), tuple(group))

        return run


def devices(config: Mapping[str, Any]) -> list[OpenCLDevice]:
    """Every device of every platform, accelerators first; none, with the driver's words, where there is no platform."""
    options = config.get("options", {}).get(TYPE, {})
    if options:
        raise InvalidArgumentError(f"{TYPE}: options {', '.join(sorted(options))} are not known; there are none")
    found = [d for p in cl.get_platforms() for d in p.get_devices()]
    found.sort(key=lambda d: bool(d.type & cl.device_type.CPU))
    wanted = config.get("count", {}).get(TYPE, len(found))
    made = []
    for i in range(wanted if found else 0):
        device = found[i % len(found)]  # more than there are: further queues on the same
        made.append(OpenCLDevice(i, device, memory_limit(config, TYPE, device.global_mem_size, accelerator=True)))
        made[-1].fuse = config.get("fuse", True)
    return made
