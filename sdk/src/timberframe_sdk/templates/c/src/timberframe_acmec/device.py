"""The device ACMEC: memory and kernels are C functions; tensors are NumPy arrays in that memory."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

import timberframe_sdk as sdk
from timberframe_acmec._native import ffi, lib
from timberframe_acmec.kernels import KERNELS

timberframe_contract = (2, 0)
TYPE, MEMORY, DTYPES = "ACMEC", 1 << 30, ("float32",)


class AcmecAllocator(sdk.Allocator):
    alignment = 64

    def raw(self, nbytes: int) -> np.ndarray:
        memory = lib.acmec_allocate(max(nbytes, 1))
        if memory == ffi.NULL:
            raise MemoryError("acmec_allocate found no memory")
        return np.frombuffer(ffi.buffer(ffi.gc(memory, lib.acmec_free), max(nbytes, 1)), np.uint8)


class AcmecDevice(sdk.KernelDevice):
    type, priority, host_memory = TYPE, 10, True

    def __init__(self, index: int, limit: int | None) -> None:
        super().__init__(index)
        self.allocator = AcmecAllocator(limit)
        self.attributes = sdk.DeviceAttributes(memory=MEMORY, vendor="Acmec", model="C", dtypes=DTYPES)

    def array(self, buffer: sdk.Buffer, offset: int, dtype: np.dtype[Any], shape: tuple[int, ...]) -> np.ndarray:
        nbytes = dtype.itemsize * math.prod(shape)
        found: np.ndarray = buffer.handle[offset : offset + nbytes].view(dtype).reshape(shape)
        return found  # it keeps the memory

    def empty(self, dtype: np.dtype[Any], shape: tuple[int, ...]) -> np.ndarray:
        return self.array(self.allocator.allocate(dtype.itemsize * math.prod(shape)), 0, dtype, shape)

    def copy(self, source: np.ndarray, target: np.ndarray) -> None:
        np.copyto(target, source)

    def copy_in(self, x: np.ndarray) -> np.ndarray:
        return np.require(x, requirements=["C", "A"])

    def copy_out(self, a: np.ndarray) -> np.ndarray:
        return a


@sdk.hookimpl
def timberframe_devices(config: Mapping[str, Any]) -> list[Any]:
    limit = sdk.memory_limit(config, TYPE, MEMORY)
    return [AcmecDevice(i, limit) for i in range(sdk.device_count(config, TYPE, 1))]


@sdk.hookimpl
def timberframe_kernels() -> list[sdk.KernelDef]:
    return KERNELS
