"""What the broken plugins share: a device that is right, of which each plugin breaks one thing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

import timberframe_sdk as sdk
from timberframe_sdk.numpy_device import NumpyAllocator, NumpyDevice

DTYPES = ("float32", "int32")


class BrokenDevice(NumpyDevice):
    """A host device named after the plugin, with kernels for AddV2, Neg and Square."""

    attributes = sdk.DeviceAttributes(memory=1 << 30, vendor="Broken", model="B1", dtypes=DTYPES)

    def __init__(self, type: str) -> None:
        self.type, self.priority = type, 0
        super().__init__()
        self.allocator = NumpyAllocator()


def kernels(type: str, **replaced: Any) -> list[sdk.KernelDef]:
    """Kernels of a device type; replaced: other builders, by op."""
    builders = {
        "AddV2": lambda node: lambda x, y, out: np.add(x, y, out=out),
        "Neg": lambda node: lambda x, out: np.negative(x, out=out),
        "Square": lambda node: lambda x, out: np.square(x, out=out),
        **replaced,
    }
    return [sdk.KernelDef(op, type, build, {"T": DTYPES}) for op, build in builders.items()]


def hooks(scope: dict[str, Any], device: sdk.Device, found: list[sdk.KernelDef]) -> None:
    """Puts the hooks of a plugin with this device and these kernels into the globals of its module."""

    @sdk.hookimpl
    def timberframe_devices(config: Mapping[str, Any]) -> list[sdk.Device]:
        return [device]

    @sdk.hookimpl
    def timberframe_kernels() -> list[sdk.KernelDef]:
        return found

    scope.update(timberframe_devices=timberframe_devices, timberframe_kernels=timberframe_kernels)
