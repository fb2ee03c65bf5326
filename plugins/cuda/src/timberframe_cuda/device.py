"""CUDA devices: tensors, copies, and kernels compiled by NVRTC."""

from __future__ import annotations

import threading
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
from timberframe_cuda.compiler import ACCESS_BYTES, architecture
from timberframe_cuda.context import DRIVER_ERRORS, Kernels, context
from timberframe_cuda.events import Copy, Marker
from timberframe_cuda.graphs import CapturingExecutable, Streams
from timberframe_cuda.libraries import require_libraries
from timberframe_cuda.memory import CudaAllocator
from timberframe_cuda.modules import Kernel, Modules
from timberframe_cuda.products import Products
from timberframe_cuda.ranges import RangedExecutable, profiler_attached
from timberframe_cuda.staging import Results, Uploads
from timberframe_sdk import (
    Buffer,
    CollectiveGroup,
    Deferred,
    DeviceAttributes,
    Failures,
    OpError,
    Pending,
    UnavailableError,
    device_count,
    device_options,
    memory_limit,
)

TYPE = "CUDA"
OPTIONS = {"tf32": False, "graphs": True, "nvtx": profiler_attached()}
"""Whether products of float32 may round their operands to TF32, launches are captured into CUDA graphs, and clusters
and nodes are NVTX ranges."""


class CudaDevice(AcceleratorDevice):
    """One GPU with a stream of its own. It and the default stream wait for each other, which suffices for DLPack.

    The GPU is touched at the first use: only then it has a context, which takes seconds and half a gigabyte.
    number: CUDA's number of the GPU. options: see OPTIONS.
    """

    type = TYPE
    priority = 300
    executable = CapturingExecutable
    allocator: CudaAllocator

    def __init__(self, index: int, number: int, limit: int | None = None, **options: bool) -> None:
        super().__init__(index)
        self.failures = Failures("launch", "copy", "compile", "queue")
        self.number, self.options = number, OPTIONS | options
        if self.options["nvtx"]:
            self.executable = RangedExecutable
        self.context = context(number)
        self.gpu = self.context.gpu
        self.kernels_under_way = Kernels()
        properties = runtime.getDeviceProperties(number)
        self.architecture = architecture(_capability(properties))
        self.allocator = CudaAllocator(self, limit)
        self.limits = Limits(
            properties["maxThreadsPerBlock"], properties["sharedMemPerBlock"], access_bytes=ACCESS_BYTES
        )
        self.attributes = DeviceAttributes(
            memory=properties["totalGlobalMem"], vendor="NVIDIA", model=properties["name"].decode(),
            driver=f"CUDA {_version(runtime.driverGetVersion())}", dtypes=DTYPES, unsupported_ops=UNSUPPORTED_OPS,
            details={
                "CuPy": cupy.__version__, "compute capability": f"{properties['major']}.{properties['minor']}",
                "multiprocessors": properties["multiProcessorCount"], "shared memory": properties["sharedMemPerBlock"],
                "runtime": _version(runtime.runtimeGetVersion()), "NVRTC": ".".join(map(str, nvrtc.getVersion())),
            },
        )  # fmt: skip
        self.dlpack_device = 2, number  # kDLCUDA
        self.collective_library = library()
        self.staging, self.results = Uploads(self), Results(self)
        self.products, self.modules = Products(self), Modules(self)
        self._streams: Streams | None = None
        self._opening = threading.Lock()
        self._peers = {number}

    # The GPU

    @property
    def lost(self) -> str:
        """See `Device`: with CUDA's error, and the kernels that were under way."""
        return self.context.lost

    @property
    def streams(self) -> Streams:
        """Where work is enqueued, from the first use on."""
        return self._streams or self._open()

    def _open(self) -> Streams:
        with self._opening:
            if self._streams is None:
                with self.gpu:
                    self._streams = Streams()
            return self._streams

    @property
    def stream(self) -> cupy.cuda.Stream:
        """The stream of all work but what is captured into graphs."""
        return self.streams.main

    @contextmanager
    def calling(self) -> Iterator[None]:
        """Makes the GPU and its stream current in this thread; CUDA's errors come out as ours."""
        self.context.check(self.spec)
        try:
            with self.gpu, self.streams.current:
                yield
        except OpError:
            raise
        except RuntimeError as e:
            raise self.context.error(self.spec, e, self.kernels_under_way) from e

    def wait(self, event: cupy.cuda.Event) -> None:
        """Waits until all that was enqueued before an event is done; raises its errors."""
        with self.calling():
            event.synchronize()
        self.kernels_under_way.ended()

    def event(self) -> cupy.cuda.Event:
        """Returns an event after all work that was enqueued so far."""
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
        self.wait(after)
        with self.calling():
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

    def move(self, target: int, source: int, nbytes: int, kind: int) -> None:
        """Enqueues a copy of bytes between two addresses. kind: one of CUDA's memcpyHostToDevice and so on."""
        if nbytes:
            with self.calling():
                runtime.memcpyAsync(target, source, nbytes, kind, self.streams.current.ptr)

    def copy(self, source: DeviceTensor, target: DeviceTensor) -> None:
        self.failures.check("launch")
        self.move(target.handle.ptr, source.handle.ptr, target.nbytes, runtime.memcpyDeviceToDevice)

    def copy_in(self, x: np.ndarray) -> DeviceTensor:
        self.failures.check("copy")
        tensor = self.empty(x.dtype, x.shape)
        if tensor.nbytes:
            self.staging.write(x, tensor.handle.ptr)
        return tensor

    def copy_out(self, a: DeviceTensor) -> np.ndarray:
        found: np.ndarray = self.start_copy_out(a).result()
        return found

    def start_copy_out(self, a: DeviceTensor) -> Pending:
        self.failures.check("copy")
        self.streams.refuse_in_capture()
        place = self.results.take(a.nbytes)
        if place is not None:
            try:
                self.move(place.memory.ctypes.data, a.handle.ptr, a.nbytes, runtime.memcpyDeviceToHost)
                return Copy(self, self.event(), place, a.dtype, a.shape)
            except BaseException:
                place.free = True
                raise
        found = np.empty(a.shape, a.dtype)
        self.move(found.ctypes.data, a.handle.ptr, a.nbytes, runtime.memcpyDeviceToHost)
        self.wait(self.event())  # as CUDA itself does for memory that is not page-locked
        return Deferred(lambda: found)

    def marker(self) -> Pending:
        self.failures.check("queue")
        return Marker(self, self.event())

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
        if address % ACCESS_BYTES == 0:
            return tensor  # others are copied to where kernels may read them
        copied = self.take(tensor, shape)
        self.wait(self.event())  # from now on the memory may be used for something else, on any stream
        return copied

    def from_dlpack(self, x: Any) -> DeviceTensor:
        self.dlpack_stream = self.stream.ptr
        tensor: DeviceTensor = super().from_dlpack(x)
        return tensor

    def collective(self, group: CollectiveGroup) -> Nccl:
        return Nccl(self, group)

    def synchronize(self) -> None:
        if self._streams is not None:
            self.wait(self.event())

    def close(self) -> None:
        super().close()
        if self._streams is not None and not self.lost:
            self.products.close()
            self.allocator.free_idle()

    # Kernels

    def multiplier(self, wanted: Multiplication) -> Function | None:
        return self.products.multiplier(wanted)

    def function(self, source: Source, name: str) -> Function:
        return self.modules.use(cast(Kernel, super().function(source, name)))

    def build(self, source: str, name: str) -> Function:
        return self.modules.kernel(source, name)


def _version(number: int) -> str:
    return f"{number // 1000}.{number % 1000 // 10}"


def devices(config: Mapping[str, Any]) -> list[CudaDevice]:
    """Returns every GPU that CUDA sees and NVRTC knows.

    UnavailableError where there is none, or where a library is missing: it says which, and how to get it.
    """
    options = device_options(config, TYPE, dict.fromkeys(OPTIONS, (True, False)))
    try:
        found = runtime.getDeviceCount()
    except DRIVER_ERRORS as e:
        raise UnavailableError(f"CUDA sees no GPU: {e}; an NVIDIA GPU and its driver are required") from e
    require_libraries()
    known = _known(found)
    made = []
    for i in range(device_count(config, TYPE, len(known)) if known else 0):
        number = known[i % len(known)]  # more than there are: further streams on the same
        total = runtime.getDeviceProperties(number)["totalGlobalMem"]
        made.append(CudaDevice(i, number, memory_limit(config, TYPE, total, accelerator=True), **options))
    return made


def _known(count: int) -> list[int]:
    """Returns the numbers of the GPUs that NVRTC compiles for; UnavailableError where all are too old for it."""
    known, refused = [], ""
    for number in range(count):
        properties = runtime.getDeviceProperties(number)
        try:
            architecture(_capability(properties))
            known.append(number)
        except RuntimeError as e:
            refused = f"GPU {number} ({properties['name'].decode()}): {e}"
    if refused and not known:
        raise UnavailableError(f"{refused}; a CUDA version that knows the GPU is required")
    return known


def _capability(properties: Mapping[str, Any]) -> int:
    return 10 * int(properties["major"]) + int(properties["minor"])
