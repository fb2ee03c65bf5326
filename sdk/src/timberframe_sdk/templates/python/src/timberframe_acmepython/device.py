"""The device ACMEPYTHON: tensors lie in the driver's memory, and everything goes through its queue."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

import timberframe_sdk as sdk
from timberframe_acmepython.driver import Event, Memory, Queue, Tensor
from timberframe_acmepython.kernels import KERNELS

timberframe_contract = (2, 16)
TYPE, MEMORY, DTYPES = "ACMEPYTHON", 1 << 30, ("float32",)


class AcmepythonAllocator(sdk.Allocator):
    def raw(self, nbytes: int) -> Memory:
        return Memory(nbytes)


class AcmepythonDevice(sdk.KernelDevice):
    type, priority, asynchronous = TYPE, 10, True

    def __init__(self, index: int, limit: int | None) -> None:
        super().__init__(index)
        self.failures = sdk.Failures("launch", "copy", "compile", "queue")
        self.queue = Queue(self.failures.check)
        self.allocator = AcmepythonAllocator(limit)
        self.attributes = sdk.DeviceAttributes(memory=MEMORY, vendor="Acmepython", model="simulated", dtypes=DTYPES)

    def array(self, buffer: sdk.Buffer, offset: int, dtype: np.dtype[Any], shape: tuple[int, ...]) -> Tensor:
        return Tensor(buffer.handle, offset, dtype, shape, buffer)

    def empty(self, dtype: np.dtype[Any], shape: tuple[int, ...]) -> Tensor:
        return self.array(self.allocator.allocate(dtype.itemsize * math.prod(shape)), 0, dtype, shape)

    def copy(self, source: Tensor, target: Tensor) -> None:
        self.queue.launch(lambda x, out: np.copyto(out, x), (source, target))

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


@sdk.hookimpl
def timberframe_devices(config: Mapping[str, Any]) -> list[Any]:
    limit = sdk.memory_limit(config, TYPE, MEMORY)
    return [AcmepythonDevice(i, limit) for i in range(sdk.device_count(config, TYPE, 1))]


@sdk.hookimpl
def timberframe_kernels() -> list[sdk.KernelDef]:
    return KERNELS
