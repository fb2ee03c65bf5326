"""OpenCL devices: tensors, copies, and kernels compiled by the driver."""

from __future__ import annotations

import threading
import time
import warnings
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import pyopencl as cl

from timberframe_accelerator import (
    DTYPES,
    UNSUPPORTED_OPS,
    AcceleratorDevice,
    DeviceTensor,
    Function,
    Limits,
    header_folders,
)
from timberframe_opencl.events import Enqueued
from timberframe_opencl.memory import STAGE_BYTES, OpenCLAllocator, Staging, device_error
from timberframe_sdk import (
    Buffer,
    Deferred,
    DeviceAttributes,
    InternalError,
    InvalidArgumentError,
    Pending,
    UnavailableError,
    cache_folder,
    device_count,
    memory_limit,
)

TYPE = "OPENCL"
_PROFILED = cl.command_queue_properties.PROFILING_ENABLE


class OpenCLDevice(AcceleratorDevice):
    """One OpenCL device with a queue of its own, in order."""

    type = TYPE
    allocator: OpenCLAllocator

    def __init__(self, index: int, device: cl.Device, limit: int | None = None, profiling: bool = False) -> None:
        super().__init__(index)
        self.device = device
        self.context = cl.Context([device])
        self._profiling = profiling
        self.queue = cl.CommandQueue(self.context, properties=_PROFILED) if profiling else cl.CommandQueue(self.context)
        self.allocator = OpenCLAllocator(self.queue, limit)
        self._programs: weakref.WeakValueDictionary[str, cl.Program] = weakref.WeakValueDictionary()
        self._launching = threading.Lock()
        is_cpu = self.is_cpu = bool(device.type & cl.device_type.CPU)
        self._staging = None if is_cpu else Staging(self.queue)
        self.priority = 50 if is_cpu else 200  # a driver for the CPU ranks below the CPU's own plugin
        self.limits = Limits(
            device.max_work_group_size, device.local_mem_size, bool(device.double_fp_config),
            elementwise_group_size=min(1024, device.max_work_group_size) if is_cpu else Limits.elementwise_group_size,
            reduction_group_size=max(4, device.native_vector_width_float) if is_cpu else Limits.reduction_group_size,
        )  # fmt: skip
        self.attributes = DeviceAttributes(
            memory=device.global_mem_size, vendor=device.vendor, model=device.name, driver=device.driver_version,
            dtypes=tuple(d for d in DTYPES if d != "float64" or self.limits.float64), unsupported_ops=UNSUPPORTED_OPS,
            details={
                "platform": device.platform.name, "version": device.version, "compute units": device.max_compute_units,
                "work-group size": device.max_work_group_size, "local memory": device.local_mem_size,
                "largest buffer": device.max_mem_alloc_size,
            },
        )  # fmt: skip
        self._abandoned: list[Any] = []
        self.dlpack_device = 4, index  # kDLOpenCL

    @contextmanager
    def _calling(self) -> Iterator[None]:
        try:
            yield
        except cl.Error as e:
            raise device_error(self.spec, e) from e

    # Memory

    def array(self, buffer: Buffer, offset: int, dtype: np.dtype[Any], shape: tuple[int, ...]) -> DeviceTensor:
        tensor = DeviceTensor(None, dtype, shape)
        whole: Any = cl.Buffer.from_int_ptr(buffer.handle.int_ptr, retain=True)  # typed as an object only
        tensor.handle = whole.get_sub_region(offset, max(tensor.nbytes, 1))
        tensor.owner, tensor.offset = buffer, offset
        return tensor

    def empty(self, dtype: np.dtype[Any], shape: tuple[int, ...]) -> DeviceTensor:
        tensor = DeviceTensor(None, dtype, shape)
        tensor.owner = self.allocator.allocate(tensor.nbytes)
        tensor.handle = tensor.owner.handle
        return tensor

    def copy(self, source: DeviceTensor, target: DeviceTensor) -> None:
        if target.nbytes:
            with self._calling():
                cl.enqueue_copy(self.queue, target.handle, source.handle, byte_count=target.nbytes)

    def copy_in(self, x: np.ndarray) -> DeviceTensor:
        tensor = self.empty(x.dtype, x.shape)
        if tensor.nbytes:
            host = np.require(x, requirements=["C", "A"]).reshape(-1).view(np.uint8)
            with self._calling():
                if self._staging is not None and host.size >= STAGE_BYTES:
                    self._staging.write(host, tensor.handle)
                else:
                    cl.enqueue_copy(self.queue, tensor.handle, host, is_blocking=True)
        return tensor

    def copy_out(self, a: DeviceTensor) -> np.ndarray:
        x = np.empty(a.shape, a.dtype)
        if a.nbytes:
            host = x.reshape(-1).view(np.uint8)
            with self._calling():
                if self._staging is not None and host.size >= STAGE_BYTES:
                    self._staging.read(a.handle, host)
                else:
                    cl.enqueue_copy(self.queue, host, a.handle, is_blocking=True)
        return x

    def start_copy_out(self, a: DeviceTensor) -> Pending:
        x = np.empty(a.shape, a.dtype)
        if not a.nbytes:
            return Deferred(lambda: x)
        with self._calling():
            event = cl.enqueue_copy(self.queue, x.reshape(-1).view(np.uint8), a.handle, is_blocking=False)
            self.queue.flush()
        return Enqueued(self.spec, event, x, self._abandoned)

    def marker(self) -> Pending:
        with self._calling():
            event = cl.enqueue_marker(self.queue)
            self.queue.flush()
        return Enqueued(self.spec, event, None, self._abandoned)

    def synchronize(self) -> None:
        with self._calling():
            self.queue.finish()
        self._abandoned.clear()

    def timed(self, launch: Callable[[], Any]) -> tuple[Any, int, int]:
        """See KernelDevice; by the driver's time stamps where the device was made with the option `profiling`."""
        if not self._profiling:
            return super().timed(launch)
        with self._calling():
            before = cl.enqueue_marker(self.queue)
        start = time.perf_counter_ns()
        result = launch()
        with self._calling():
            after = cl.enqueue_marker(self.queue)
            after.wait()
            return result, start, start + after.profile.end - before.profile.end

    def address(self, a: DeviceTensor) -> int:
        return int(a.handle.int_ptr)

    def adopt(self, address: int, dtype: np.dtype[Any], shape: tuple[int, ...], owner: Any) -> DeviceTensor:
        return DeviceTensor(cl.Buffer.from_int_ptr(address, retain=True), dtype, shape, owner)

    def close(self) -> None:
        super().close()
        self.allocator.free_idle()

    # Kernels

    def build(self, source: str, name: str) -> Function:
        program = self._programs.get(source)
        if program is None:
            program = self._programs[source] = self._build(source)
        return self._function(program, name)

    def _build(self, source: str) -> cl.Program:
        """The compiled program; from the cache on disk, by device, driver, options and source, where it is there."""
        options = [*(f"-I{folder}" for folder in header_folders()), "-cl-std=CL1.2"]
        if self.device.single_fp_config & cl.device_fp_config.CORRECTLY_ROUNDED_DIVIDE_SQRT:
            options.append("-cl-fp32-correctly-rounded-divide-sqrt")
        if not self.limits.float64:
            options.append("-DTF_NO_FLOAT64")
        try:
            with warnings.catch_warnings(action="ignore", category=cl.CompilerWarning):  # a driver prints a banner
                program: cl.Program = cl.Program(self.context, source).build(
                    options, cache_dir=str(cache_folder("opencl"))
                )
        except cl.Error as e:
            raise InternalError(f"{self.spec}: the driver refuses a source with the message\n{e}\n{source}") from e
        return program

    def _function(self, program: cl.Program, name: str) -> Function:
        kernel = cl.Kernel(program, name)
        launching, queue, enqueue, spec = self._launching, self.queue, cl.enqueue_nd_range_kernel, self.spec
        count = kernel.num_args
        numbers: dict[int, Any] = {}

        def run(items: Sequence[int], group: Sequence[int], *arguments: Any) -> None:
            if len(arguments) != count:
                raise InternalError(f"{spec}: kernel {name} takes {count} arguments; it was given {len(arguments)}")
            try:
                with launching:  # a kernel object stores its arguments, so one thread at a time
                    for i, a in enumerate(arguments):
                        if isinstance(a, DeviceTensor):
                            kernel.set_arg(i, a.handle)
                        elif numbers.get(i) is not a:  # launchers pass the same objects every time
                            kernel.set_arg(i, a)
                            numbers[i] = a
                    enqueue(queue, kernel, tuple(items), tuple(group))
            except cl.Error as e:
                raise device_error(spec, e, name) from e

        run.program = program  # type: ignore[attr-defined]  # for as long as one of its kernels is kept
        return run


def devices(config: Mapping[str, Any]) -> list[OpenCLDevice]:
    """Every device of every platform, accelerators first; UnavailableError where there is no driver."""
    options = config.get("options", {}).get(TYPE, {})
    profiling = options.get("profiling", False)
    if options.keys() - {"profiling"}:
        raise InvalidArgumentError(
            f"{TYPE}: options {', '.join(sorted(options))} are not all known; known is profiling"
        )
    if not isinstance(profiling, bool):
        raise InvalidArgumentError(f"{TYPE}: option profiling is {profiling!r}; True or False is required")
    try:
        platforms = cl.get_platforms()
    except cl.LogicError as e:
        if e.code != cl.status_code.PLATFORM_NOT_FOUND_KHR:
            raise
        raise UnavailableError(
            "no OpenCL driver was found; install the driver of your device, or intel-opencl-rt and intel-cmplr-lib-rt "
            "to run on the CPU"
        ) from e
    found = [d for p in platforms for d in p.get_devices()]
    found.sort(key=lambda d: bool(d.type & cl.device_type.CPU))
    wanted = device_count(config, TYPE, len(found))
    made = []
    for i in range(wanted if found else 0):
        device = found[i % len(found)]  # more than there are: further queues on the same
        limit = memory_limit(config, TYPE, device.global_mem_size, accelerator=True)
        made.append(OpenCLDevice(i, device, limit, profiling))
    return made
