"""CUDA devices: tensors, copies, and kernels compiled by NVRTC."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, cast

import cupy
import numpy as np
from cupy.cuda import nvrtc, runtime

from timberframe_accelerator import (
    DTYPES,
    UNSUPPORTED_OPS,
    AcceleratorDevice,
    DeviceTensor,
    Function,
    Limits,
    Multiplication,
    Source,
)
from timberframe_cuda.collectives import Nccl, library
from timberframe_cuda.compiler import architecture
from timberframe_cuda.events import Enqueued
from timberframe_cuda.graphs import CapturingExecutable, Streams
from timberframe_cuda.memory import DRIVER_ERRORS, CudaAllocator, PinnedMemory, device_error
from timberframe_cuda.modules import Kernel, Modules
from timberframe_cuda.products import Products
from timberframe_sdk import (
    Buffer,
    CollectiveGroup,
    DeviceAttributes,
    Pending,
    UnavailableError,
    device_count,
    device_options,
    memory_limit,
)

TYPE = "CUDA"
OPTIONS = {"tf32": False, "graphs": True}
"""Whether products of float32 may round their operands to TF32; whether launches are captured into CUDA graphs."""
STAGE_BYTES = 1 << 16
"""From this size in bytes, copies to the device use page-locked memory; CUDA reads smaller ones at once."""


class CudaDevice(AcceleratorDevice):
    """One GPU with a stream of its own. It and the default stream wait for each other, which suffices for DLPack.

    number: CUDA's number of the GPU. options: see OPTIONS.
    """

    type = TYPE
    priority = 300
    executable = CapturingExecutable
    allocator: CudaAllocator

    def __init__(self, index: int, number: int, limit: int | None = None, **options: bool) -> None:
        super().__init__(index)
        self.number, self.options = number, OPTIONS | options
        self.gpu = cupy.cuda.Device(number)
        with self.gpu:
            self.streams = Streams()
        self.stream = self.streams.main
        properties = runtime.getDeviceProperties(number)
        self.architecture = architecture(10 * properties["major"] + properties["minor"])
        self.allocator = CudaAllocator(self.gpu, self.stream, limit)
        self.limits = Limits(properties["maxThreadsPerBlock"], properties["sharedMemPerBlock"])
        self.attributes = DeviceAttributes(
            memory=properties["totalGlobalMem"], vendor="NVIDIA", model=properties["name"].decode(),
            driver=f"CUDA {_version(runtime.driverGetVersion())}", dtypes=DTYPES, unsupported_ops=UNSUPPORTED_OPS,
            details={
                "CuPy": cupy.__version__, "compute capability": f"{properties['major']}.{properties['minor']}",
                "multiprocessors": properties["multiProcessorCount"], "shared memory": properties["sharedMemPerBlock"],
                "runtime": _version(runtime.runtimeGetVersion()), "NVRTC": ".".join(map(str, nvrtc.getVersion())),
            },
        )  # fmt: skip
        self.dlpack_device, self.dlpack_stream = (2, number), self.stream.ptr  # kDLCUDA
        self.collective_library = library()
        self.pinned = PinnedMemory()
        self._products = Products(self)
        self.modules = Modules(self)
        self._peers = {number}

    @contextmanager
    def calling(self) -> Iterator[None]:
        """Makes the GPU and its stream current in this thread; CUDA's errors come out as ours."""
        try:
            with self.gpu, self.streams.current:
                yield
        except DRIVER_ERRORS as e:
            raise device_error(self.spec, e) from e

    def event(self) -> cupy.cuda.Event:
        """An event after all work that was enqueued so far."""
        self.streams.refuse_in_capture()
        with self.calling():
            event = cupy.cuda.Event(disable_timing=True)
            event.record(self.stream)
            return event

    def timed(self, launch: Callable[[], Any]) -> tuple[Any, int, int]:
        """See KernelDevice; by events on the stream, so that the way to the GPU and back does not count."""
        with self.calling():
            before, after = cupy.cuda.Event(), cupy.cuda.Event()
            before.record(self.stream)
        start = time.perf_counter_ns()
        result = launch()
        with self.calling():
            after.record(self.stream)
            after.synchronize()
            milliseconds = cupy.cuda.get_elapsed_time(before, after)
        return result, start, start + round(milliseconds * 1e6)

    # Memory

    def array(self, buffer: Buffer, offset: int, dtype: np.dtype[Any], shape: tuple[int, ...]) -> DeviceTensor:
        return DeviceTensor(buffer.handle + offset, dtype, shape, buffer, offset)

    def empty(self, dtype: np.dtype[Any], shape: tuple[int, ...]) -> DeviceTensor:
        self.streams.refuse_in_capture()
        tensor = DeviceTensor(None, dtype, shape)
        tensor.owner = self.allocator.allocate(tensor.nbytes)
        tensor.handle = tensor.owner.handle
        return tensor

    def _move(self, target: int, source: int, nbytes: int, kind: int) -> None:
        if nbytes:
            with self.calling():
                runtime.memcpyAsync(target, source, nbytes, kind, self.streams.current.ptr)

    def copy(self, source: DeviceTensor, target: DeviceTensor) -> None:
        self._move(target.handle.ptr, source.handle.ptr, target.nbytes, runtime.memcpyDeviceToDevice)

    def copy_in(self, x: np.ndarray) -> DeviceTensor:
        tensor = self.empty(x.dtype, x.shape)
        if tensor.nbytes < STAGE_BYTES:
            host = np.require(x, requirements=["C", "A"])
        else:
            with self.calling():
                host = self.pinned.array(x.dtype, x.shape)
            np.copyto(host, x)
        self._move(tensor.handle.ptr, host.ctypes.data, tensor.nbytes, runtime.memcpyHostToDevice)
        if tensor.nbytes >= STAGE_BYTES:
            self.pinned.keep(host, self.event())
        return tensor

    def copy_out(self, a: DeviceTensor) -> np.ndarray:
        found: np.ndarray = self.start_copy_out(a).result()
        return found

    def start_copy_out(self, a: DeviceTensor) -> Pending:
        with self.calling():
            host = self.pinned.array(a.dtype, a.shape)
        self._move(host.ctypes.data, a.handle.ptr, a.nbytes, runtime.memcpyDeviceToHost)
        return Enqueued(self, self.event(), host)

    def marker(self) -> Pending:
        return Enqueued(self, self.event(), None)

    def copy_from(self, source: Any, a: DeviceTensor) -> DeviceTensor | None:
        if not isinstance(source, CudaDevice):
            return None
        self._reach(source.number)
        tensor, made = self.empty(a.dtype, a.shape), source.event()
        with self.calling():
            self.stream.wait_event(made)
            if a.nbytes:
                runtime.memcpyPeerAsync(
                    tensor.handle.ptr, self.number, a.handle.ptr, source.number, a.nbytes, self.stream.ptr
                )
        taken = self.event()
        with source.calling():
            source.stream.wait_event(taken)  # before that, nobody else may get the memory
        return tensor

    def _reach(self, number: int) -> None:
        """Lets this GPU read another one's memory itself where the machine can; else CUDA goes through the host."""
        if number in self._peers:
            return
        self._peers.add(number)
        with self.calling():
            if runtime.deviceCanAccessPeer(self.number, number):
                try:
                    runtime.deviceEnablePeerAccess(number)
                except runtime.CUDARuntimeError as e:
                    if e.status != 704:  # cudaErrorPeerAccessAlreadyEnabled, by somebody else in this process
                        raise

    def address(self, a: DeviceTensor) -> int:
        return int(a.handle.ptr)

    def adopt(self, address: int, dtype: np.dtype[Any], shape: tuple[int, ...], owner: Any) -> DeviceTensor:
        tensor = DeviceTensor(None, dtype, shape, owner)
        memory = cupy.cuda.UnownedMemory(address, tensor.nbytes, owner, self.number)
        tensor.handle = cupy.cuda.MemoryPointer(memory, 0)
        return tensor

    def collective(self, group: CollectiveGroup) -> Nccl:
        return Nccl(self, group)

    def synchronize(self) -> None:
        with self.calling():
            self.stream.synchronize()

    def close(self) -> None:
        super().close()
        self.allocator.free_idle()

    # Kernels

    def multiplier(self, wanted: Multiplication) -> Function | None:
        return self._products.multiplier(wanted)

    def function(self, source: Source, name: str) -> Function:
        return self.modules.use(cast(Kernel, super().function(source, name)))

    def build(self, source: str, name: str) -> Function:
        return self.modules.kernel(source, name)


def _version(number: int) -> str:
    return f"{number // 1000}.{number % 1000 // 10}"


def devices(config: Mapping[str, Any]) -> list[CudaDevice]:
    """Every GPU that CUDA sees; UnavailableError with CUDA's message if it sees none."""
    options = device_options(config, TYPE, dict.fromkeys(OPTIONS, (True, False)))
    try:
        found = runtime.getDeviceCount()
    except DRIVER_ERRORS as e:
        raise UnavailableError(f"CUDA sees no GPU: {e}; an NVIDIA GPU and its driver are required") from e
    made = []
    for i in range(device_count(config, TYPE, found) if found else 0):
        number = i % found  # more than there are: further streams on the same
        total = runtime.getDeviceProperties(number)["totalGlobalMem"]
        made.append(CudaDevice(i, number, memory_limit(config, TYPE, total, accelerator=True), **options))
    return made
