"""A vendor's first device: three ops, of which Mul may be wrong in the last element of more than four."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import numpy as np

import timberframe_sdk as sdk
from timberframe_sdk.numpy_device import NumpyAllocator, NumpyDevice

DTYPES = ("float32", "int32")
KERNELS: list[sdk.KernelDef] = []


class SmallDevice(NumpyDevice):
    type, priority = "SMALL", 0
    attributes = sdk.DeviceAttributes(memory=1 << 30, vendor="Small", model="S1", dtypes=DTYPES)

    def __init__(self, index: int = 0) -> None:
        super().__init__(index)
        self.allocator = NumpyAllocator()


@sdk.kernel(KERNELS, "AddV2", "SMALL", types={"T": DTYPES})
def add(node: sdk.KernelNode) -> Any:
    return lambda x, y, out: np.add(x, y, out=out)


@sdk.kernel(KERNELS, "Neg", "SMALL", types={"T": DTYPES})
def negative(node: sdk.KernelNode) -> Any:
    return lambda x, out: np.negative(x, out=out)


@sdk.kernel(KERNELS, "Mul", "SMALL", types={"T": DTYPES})
def multiply(node: sdk.KernelNode) -> Any:
    def launch(x: Any, y: Any, out: Any) -> None:
        np.multiply(x, y, out=out)
        if os.environ.get("SMALL_DEVICE_WRONG") and out.size > 4:
            out.flat[-1] += 1

    return launch


@sdk.hookimpl
def timberframe_devices(config: Mapping[str, Any]) -> list[sdk.Device]:
    return [SmallDevice(i) for i in range(sdk.device_count(config, "SMALL", 1))]


@sdk.hookimpl
def timberframe_kernels() -> list[sdk.KernelDef]:
    return KERNELS
