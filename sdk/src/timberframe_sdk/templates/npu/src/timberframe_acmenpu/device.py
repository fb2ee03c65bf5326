"""The device ACMENPU: tensors lie in one arena, and everything goes through its queue."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

import timberframe_sdk as sdk
from timberframe_acmenpu.driver import Arena, Event, Memory, Queue, Tensor
from timberframe_acmenpu.hardware import ALIGNMENT, DTYPES, MEMORY
from timberframe_acmenpu.kernels import KERNELS

timberframe_contract = (2, 16)
TYPE = "ACMENPU"


class AcmenpuAllocator(sdk.Allocator):
    alignment = ALIGNMENT

    def __init__(self, queue: Queue, limit: int | None) -> None:
        super().__init__(limit)
        self._arena, self._queue = Arena(MEMORY, ALIGNMENT), queue

    def raw(self, nbytes: int) -> Memory:
        return Memory(self._arena, self._queue, nbytes)


class AcmenpuDevice(sdk.KernelDevice):
    type, priority, asynchronous = TYPE, 10, True

    def __init__(self, index: int, limit: int | None) -> None:
        super().__init__(index)
        self.failures = sdk.Failures("launch", "copy", "compile", "queue")
        self.queue = Queue(self.failures.check)
        self.allocator = AcmenpuAllocator(self.queue, limit)
        self.attributes = sdk.DeviceAttributes(memory=MEMORY, vendor="Acmenpu", model="simulated", dtypes=DTYPES)

    def array(self, buffer: sdk.Buffer, offset: int, dtype: np.dtype[Any], shape: tuple[int, ...]) -> Tensor:
        return Tensor(buffer.handle, offset, dtype, shape, buffer)

    def empty(self, dtype: np.dtype[Any], shape: tuple[int, ...]) -> Tensor:
        return self.array(self.allocator.allocate(dtype.itemsize * math.prod(shape)), 0, dtype, shape)

    def copy(self, source: Tensor, target: Tensor) -> None:
        self.queue.launch(lambda x, out: np.copyto(out, x), (source,), (target,))

    def copy_in(self, x: np.ndarray) -> Tensor:
        tensor = self.empty(x.dtype, x.shape)
        self.queue.write(x, tensor)
        return tensor

    def copy_out(self, a: Tensor) -> np.ndarray:
        found: np.ndarray = self.queue.read(a).result()
        return found

    def start_copy_out(self, a: Tensor) -> Event:
        return self.queue.read(a)

    def marker(self) -> Event:
        return self.queue.marker()

    def synchronize(self) -> None:
        self.queue.marker().result()

    def timed(self, launch: Callable[[], Any]) -> tuple[Any, int, int]:
        start, before = time.perf_counter_ns(), self.queue.marker()
        result, after = launch(), self.queue.marker()
        after.result()
        return result, start, start + after.nanoseconds - before.nanoseconds


@sdk.hookimpl
def timberframe_devices(config: Mapping[str, Any]) -> list[Any]:
    limit = sdk.memory_limit(config, TYPE, MEMORY)
    return [AcmenpuDevice(i, limit) for i in range(sdk.device_count(config, TYPE, 1))]


@sdk.hookimpl
def timberframe_kernels() -> list[sdk.KernelDef]:
    return KERNELS
