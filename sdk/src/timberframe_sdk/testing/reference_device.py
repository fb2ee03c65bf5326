"""A complete device for tests and comparison: every op that has a reference, computed by it, on host memory.

It is right rather than fast. Once a program has called
``timberframe_sdk.register_plugin("reference", reference_device)``, nodes that no other device can run go to it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

import timberframe_sdk as sdk
from timberframe_sdk.numpy_device import NumpyAllocator, NumpyDevice

TYPE = "REFERENCE"
MEMORY = 1 << 30


class ReferenceDevice(NumpyDevice):
    """Tensors of all dtypes, strings included, as NumPy arrays."""

    type, priority, by_reference = TYPE, 1, True

    def __init__(self, index: int = 0, limit: int | None = None) -> None:
        super().__init__(index)
        self.allocator = NumpyAllocator(limit)
        self.attributes = sdk.DeviceAttributes(memory=limit or MEMORY, vendor="NumPy", model=np.__version__)

    def array(self, buffer: sdk.Buffer, offset: int, dtype: np.dtype[Any], shape: tuple[int, ...]) -> Any:
        if dtype.hasobject:  # a view of bytes cannot hold references to objects
            return np.empty(shape, dtype)
        return super().array(buffer, offset, dtype, shape)


@sdk.hookimpl
def timberframe_devices(config: Mapping[str, Any]) -> list[sdk.Device]:
    limit = sdk.memory_limit(config, TYPE, MEMORY, accelerator=False)
    return [ReferenceDevice(i, limit) for i in range(sdk.device_count(config, TYPE, 1, accelerator=False))]


@sdk.hookimpl
def timberframe_kernels() -> list[sdk.KernelDef]:
    return []
