"""GPUs, streams, events and modules."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from cuda_on_cpu.program import Program
from cuda_on_cpu.queues import Queue
from cupy.cuda import cublas as cublas
from cupy.cuda import driver as driver
from cupy.cuda import memory as memory
from cupy.cuda import nccl as nccl
from cupy.cuda import nvrtc as nvrtc
from cupy.cuda import nvtx as nvtx
from cupy.cuda import runtime as runtime
from cupy.cuda.memory import MemoryPointer as MemoryPointer
from cupy.cuda.memory import MemoryPool as MemoryPool
from cupy.cuda.memory import PinnedMemoryPool as PinnedMemoryPool
from cupy.cuda.memory import UnownedMemory as UnownedMemory


class Device:
    def __init__(self, device: int) -> None:
        self.id = device

    def __enter__(self) -> Device:
        runtime.left_devices().append(runtime.getDevice())
        runtime.setDevice(self.id)
        return self

    def __exit__(self, *_: Any) -> None:
        runtime.setDevice(runtime.left_devices().pop())


class Event:
    def __init__(self, block: bool = False, disable_timing: bool = False) -> None:
        self.ptr, self.timed = runtime.EventNumber(next(runtime.numbers)), not disable_timing
        runtime.marks[self.ptr] = None

    @property
    def mark(self) -> runtime.Mark | None:
        return runtime.marks[self.ptr]

    def record(self, stream: Stream) -> None:
        runtime.check_stream(stream.ptr)
        runtime.marks[self.ptr] = runtime.Mark(stream.ptr)

    def synchronize(self) -> None:
        if self.mark is not None:
            self.mark.wait()
        runtime.check_alive()


def get_elapsed_time(start_event: Event, end_event: Event) -> float:
    """Returns milliseconds between two events."""
    start, end = start_event.mark, end_event.mark
    if not (start_event.timed and end_event.timed and start and end):
        raise runtime.CUDARuntimeError(400)  # cudaErrorInvalidResourceHandle
    if not (start.over() and end.over()):
        raise runtime.CUDARuntimeError(600)  # cudaErrorNotReady
    return 1000 * (end.recorded - start.recorded)


class Stream:
    def __init__(self, null: bool = False, non_blocking: bool = False) -> None:
        self.ptr, self.device_id = next(runtime.numbers), runtime.getDevice()
        runtime.streams[self.ptr] = self.device_id
        if runtime.ASYNCHRONOUS:
            runtime.queues[self.ptr] = Queue()

    def __del__(self) -> None:
        if (queue := runtime.queues.pop(getattr(self, "ptr", 0), None)) is not None:
            queue.close()

    def __enter__(self) -> Stream:
        runtime.check_stream(self.ptr)
        runtime.current_streams().append(self)
        return self

    def __exit__(self, *_: Any) -> None:
        runtime.current_streams().pop()

    def synchronize(self) -> None:
        if self.ptr in runtime.captured:
            raise runtime.CUDARuntimeError(900)  # cudaErrorStreamCaptureUnsupported
        runtime.synchronize(self.ptr)
        runtime.check_alive()

    def wait_event(self, event: Event) -> None:
        if event.mark is not None:
            event.mark.hold(self.ptr)

    def begin_capture(self, mode: int | None = None) -> None:
        runtime.check_stream(self.ptr)
        runtime.captured[self.ptr] = []

    def end_capture(self) -> Graph:
        return Graph(self.device_id, runtime.captured.pop(self.ptr))


class Graph:
    def __init__(self, device: int, work: list[Callable[[], object]]) -> None:
        self._device, self._work = device, work

    def launch(self, stream: Stream) -> None:
        runtime.check_stream(stream.ptr)
        assert stream.device_id == self._device
        runtime.graphs_launched += 1
        for one in self._work:
            runtime.do(stream.ptr, one)


class Function:
    def __init__(self, module: Module, name: str) -> None:
        self._program, self._name, self._device = module.program, name, module.device
        self._parameters = self._program.parameters(name)

    def __call__(self, grid: tuple[int, ...], block: tuple[int, ...], args: Sequence[Any], *, stream: Stream) -> None:
        runtime.check_stream(stream.ptr)
        pointers = [a for a in args if isinstance(a, MemoryPointer)]
        if {self._device, *(p.device_id for p in pointers)} != {runtime.getDevice()}:
            raise driver.CUDADriverError(400)
        items = [n * b for n, b in zip(grid, block, strict=True)]
        given = [a.ptr if isinstance(a, MemoryPointer) else a for a in args]

        def work() -> None:
            self._program.launch(self._name, self._parameters, items, block, given)
            runtime.check_fault(self._name, self._device)

        runtime.do(stream.ptr, work)


class Module:
    program: Program

    def load(self, cubin: bytes) -> None:
        self.device = runtime.getDevice()
        with tempfile.NamedTemporaryFile(suffix=".so", delete=False) as file:
            file.write(cubin)
        self.program = Program(Path(file.name))
        Path(file.name).unlink()

    def get_function(self, name: str) -> Function:
        return Function(self, name)
