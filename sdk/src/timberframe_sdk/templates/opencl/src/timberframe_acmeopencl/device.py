"""The device ACMEOPENCL: tensors lie in buffers of the driver, and kernels are compiled from source."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

import timberframe_sdk as sdk
from timberframe_accelerator import DTYPES, UNSUPPORTED_OPS, AcceleratorDevice, DeviceTensor, Function, Limits
from timberframe_accelerator.kernels import accelerator_kernels
from timberframe_acmeopencl import driver, kernels

timberframe_contract = (2, 16)
TYPE = "ACMEOPENCL"


class AcmeopenclAllocator(sdk.Allocator):
    def __init__(self, queue: driver.Queue, limit: int | None) -> None:
        super().__init__(limit)
        self.queue, self.alignment = queue, queue.alignment

    def raw(self, nbytes: int) -> Any:
        return self.queue.memory(nbytes)


class AcmeopenclDevice(AcceleratorDevice):
    type, priority = TYPE, 20

    def __init__(self, index: int, found: Any, limit: int | None) -> None:
        super().__init__(index)
        self.failures = sdk.Failures("launch", "copy", "compile", "queue")
        self.queue = driver.Queue(found, self.failures.check)
        self.allocator = AcmeopenclAllocator(self.queue, limit)
        self.limits = Limits(found.max_work_group_size, found.local_mem_size, bool(found.double_fp_config))
        self.attributes = sdk.DeviceAttributes(
            memory=found.global_mem_size, vendor=found.vendor, model=found.name, driver=found.driver_version,
            dtypes=tuple(d for d in DTYPES if d != "float64" or self.limits.float64), unsupported_ops=UNSUPPORTED_OPS,
        )  # fmt: skip

    def array(self, buffer: sdk.Buffer, offset: int, dtype: np.dtype[Any], shape: tuple[int, ...]) -> DeviceTensor:
        part = self.queue.part(buffer.handle, offset, dtype.itemsize * math.prod(shape))
        return DeviceTensor(part, dtype, shape, buffer, offset)

    def empty(self, dtype: np.dtype[Any], shape: tuple[int, ...]) -> DeviceTensor:
        buffer = self.allocator.allocate(dtype.itemsize * math.prod(shape))
        return DeviceTensor(buffer.handle, dtype, shape, buffer)

    def copy(self, source: DeviceTensor, target: DeviceTensor) -> None:
        self.queue.copy(source.handle, target.handle, target.nbytes)

    def copy_in(self, x: np.ndarray) -> DeviceTensor:
        tensor = self.empty(x.dtype, x.shape)
        self.queue.write(x, tensor.handle)
        return tensor

    def copy_out(self, a: DeviceTensor) -> np.ndarray:
        return np.asarray(self.start_copy_out(a).result())

    def start_copy_out(self, a: DeviceTensor) -> driver.Event:
        return self.queue.read(a.handle, a.dtype, a.shape)

    def marker(self) -> driver.Event:
        return self.queue.marker()

    def synchronize(self) -> None:
        self.queue.marker().result()

    def build(self, source: str, name: str) -> Function:
        return self.queue.kernel(source, name)


@sdk.hookimpl
def timberframe_devices(config: Mapping[str, Any]) -> list[Any]:
    found = driver.devices()
    count, memory = sdk.device_count(config, TYPE, len(found)), found[0].global_mem_size
    return [AcmeopenclDevice(i, found[i % len(found)], sdk.memory_limit(config, TYPE, memory)) for i in range(count)]


@sdk.hookimpl
def timberframe_kernels() -> list[sdk.KernelDef]:
    return accelerator_kernels(TYPE) + kernels.KERNELS
