"""The CPU where no package with kernels for it is installed: ops are computed by their references, in NumPy.

It is right rather than fast. It stands in for the plugin `cpu` (entry-point group ``timberframe.stand_ins``), so that
programs, new devices and the conformance suite work where timberframe-cpu has no wheel, too.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

import timberframe_sdk as sdk
from timberframe_sdk.numpy_device import NumpyAllocator, NumpyDevice

timberframe_contract = (2, 0)
MEMORY = 1 << 30
"""Bytes that the device says it has where no limit is set; it takes what the system gives."""


class ReferenceCpu(NumpyDevice):
    """Tensors of all dtypes, strings included, as NumPy arrays; every op that has a reference."""

    type, priority, by_reference = "CPU", 1, True

    def __init__(self, index: int = 0, limit: int | None = None) -> None:
        super().__init__(index)
        self.allocator = NumpyAllocator(limit)
        model = f"NumPy {np.__version__}, ops by their references"
        self.attributes = sdk.DeviceAttributes(memory=limit or MEMORY, vendor="NumPy", model=model)

    def array(self, buffer: sdk.Buffer, offset: int, dtype: np.dtype[Any], shape: tuple[int, ...]) -> Any:
        if dtype.hasobject:  # a view of bytes cannot hold references to objects
            return np.empty(shape, dtype)
        return super().array(buffer, offset, dtype, shape)


@sdk.hookimpl
def timberframe_devices(config: Mapping[str, Any]) -> list[sdk.Device]:
    limit = sdk.memory_limit(config, ReferenceCpu.type, MEMORY, accelerator=False)
    return [ReferenceCpu(i, limit) for i in range(sdk.device_count(config, ReferenceCpu.type, 1, accelerator=False))]


@sdk.hookimpl
def timberframe_kernels() -> list[sdk.KernelDef]:
    return []
