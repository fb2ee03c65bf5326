"""OpenCL devices: tensors, copies, and kernels compiled by the driver."""

from __future__ import annotations

import threading
import time
import warnings
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from timberframe_accelerator import (
    DTYPES,
    UNSUPPORTED_OPS,
    AcceleratorDevice,
    DeviceTensor,
    Function,
    Limits,
    header_folders,
)
from timberframe_opencl.drivers import Report, drivers
from timberframe_opencl.events import Enqueued
from timberframe_opencl.memory import STAGE_BYTES, OpenCLAllocator, Staging, device_error, loss
from timberframe_sdk import (
    Buffer,
    Deferred,
    DeviceAttributes,
    Failures,
    InternalError,
    OpError,
    Pending,
    UnavailableError,
    cache_folder,
    device_count,
    device_options,
    memory_limit,
)

if TYPE_CHECKING:
    import pyopencl as cl
else:
    from timberframe_opencl import lazy as cl

TYPE = "OPENCL"


class _Opened:
    """What the driver has of a device. staged: long copies go through page-locked memory."""

    def __init__(self, device: cl.Device, profiling: bool, staged: bool) -> None:
        self.device = device
        self.context = cl.Context([device])
        if profiling:
            self.queue = cl.CommandQueue(self.context, properties=cl.command_queue_properties.PROFILING_ENABLE)
        else:
            self.queue = cl.CommandQueue(self.context)
        self.staging = Staging(self.queue) if staged else None


class OpenCLDevice(AcceleratorDevice):
    """One OpenCL device with a queue of its own, in order. The driver is asked for it, by `find`, at its first use."""

    type = TYPE
    lost = ""
    allocator: OpenCLAllocator

    def __init__(
        self,
        index: int,
        report: Report,
        find: Callable[[], cl.Device],
        limit: int | None = None,
        profiling: bool = False,
    ) -> None:
        super().__init__(index)
        self.failures = Failures("launch", "copy", "compile", "queue")
        self._find = find
        self._profiling = profiling
        self._opened: _Opened | None = None
        self._opening = threading.Lock()
        self.allocator = OpenCLAllocator(lambda: self.queue, limit, report.alignment)
        self._programs: weakref.WeakValueDictionary[str, cl.Program] = weakref.WeakValueDictionary()
        self._launching = threading.Lock()
        is_cpu = self.is_cpu = report.is_cpu
        self.priority = 50 if is_cpu else 200  # a driver for the CPU ranks below the CPU's own plugin
        self.limits = Limits(
            report.group_size, report.local_memory, report.float64,
            elementwise_group_size=min(1024, report.group_size) if is_cpu else Limits.elementwise_group_size,
            reduction_group_size=max(4, report.float_lanes) if is_cpu else Limits.reduction_group_size,
        )  # fmt: skip
        self.attributes = DeviceAttributes(
            memory=report.memory, vendor=report.vendor, model=report.model, driver=report.driver,
            dtypes=tuple(d for d in DTYPES if d != "float64" or self.limits.float64), unsupported_ops=UNSUPPORTED_OPS,
            details={
                "platform": report.platform, "version": report.version, "compute units": report.compute_units,
                "work-group size": report.group_size, "local memory": report.local_memory,
                "largest buffer": report.largest_buffer,
            },
        )  # fmt: skip
        self._abandoned: list[Any] = []
        self.dlpack_device = 4, index  # kDLOpenCL

    # The driver

    def _open(self) -> _Opened:
        """Returns what the driver has of the device, from its first use on."""
        opened = self._opened
        if opened is None:
            with self._opening:
                opened = self._opened
                if opened is None:
                    device = self._find()
                    with self._calling():
                        opened = self._opened = _Opened(device, self._profiling, not self.is_cpu)
        return opened

    @property
    def device(self) -> cl.Device:
        """The driver's own object."""
        return self._open().device

    @property
    def context(self) -> cl.Context:
        """The context with this device alone."""
        return self._open().context

    @property
    def queue(self) -> cl.CommandQueue:
        """Where all work is enqueued, in order."""
        return self._open().queue

    @property
    def _staging(self) -> Staging | None:
        return self._open().staging

    @contextmanager
    def _calling(self) -> Iterator[None]:
        try:
            yield
        except cl.Error as e:
            raise self.error(e) from e

    def error(self, error: cl.Error, kernel: str = "") -> OpError:
        """Returns the error for a failed call of the driver, after which `lost` says whether the device is gone.

        kernel: the name of the one to be launched.
        """
        made = device_error(self.spec, error, kernel)
        if isinstance(made, UnavailableError):
            self.lost = self.lost or loss(error)
        return made

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
        self.failures.check("launch")
        if target.nbytes:
            with self._calling():
                cl.enqueue_copy(self.queue, target.handle, source.handle, byte_count=target.nbytes)

    def copy_in(self, x: np.ndarray) -> DeviceTensor:
        self.failures.check("copy")
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
        self.failures.check("copy")
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
        self.failures.check("copy")
        x = np.empty(a.shape, a.dtype)
        if not a.nbytes:
            return Deferred(lambda: x)
        with self._calling():
            event = cl.enqueue_copy(self.queue, x.reshape(-1).view(np.uint8), a.handle, is_blocking=False)
            self.queue.flush()
        return Enqueued(self.error, event, x, self._abandoned)

    def marker(self) -> Pending:
        self.failures.check("queue")
        with self._calling():
            event = cl.enqueue_marker(self.queue)
            self.queue.flush()
        return Enqueued(self.error, event, None, self._abandoned)

    def synchronize(self) -> None:
        if self._opened is None:
            return
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
        """Returns the compiled program; from the cache on disk, by device, driver, options and
        source, where it is there.
        """
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
        as_error = self.error
        check = self.failures.check
        count = kernel.num_args
        numbers: dict[int, Any] = {}

        def run(items: Sequence[int], group: Sequence[int], *arguments: Any) -> None:
            if len(arguments) != count:
                raise InternalError(f"{spec}: kernel {name} takes {count} arguments; it was given {len(arguments)}")
            check("launch")
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
                raise as_error(e, name) from e

        run.program = program  # type: ignore[attr-defined]  # for as long as one of its kernels is kept
        return run


def devices(config: Mapping[str, Any]) -> list[OpenCLDevice]:
    """Returns every device of every platform, accelerators first; UnavailableError where there is no driver."""
    options = device_options(config, TYPE, {"profiling": (True, False)})
    reports = drivers.reports()
    wanted = device_count(config, TYPE, len(reports))
    made = []
    for i in range(wanted if reports else 0):
        position = i % len(reports)  # more than there are: further queues on the same
        report = reports[position]
        limit = memory_limit(config, TYPE, report.memory, accelerator=True)
        made.append(OpenCLDevice(i, report, partial(drivers.device, position, report), limit, **options))
    return made
