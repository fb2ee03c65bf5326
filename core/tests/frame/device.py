"""A plugin for tests of the frame: two of the SDK's smallest devices, with a few kernels."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import timberframe_sdk as sdk
from timberframe_sdk import numpy_device

NAME = "few"
BY_REFERENCE = ("Identity", "Fill", "OnesLike", "AddN", "Pack")
KERNELS = [*numpy_device.KERNELS, *(sdk.KernelDef(op, "NUMPY", sdk.reference_launcher) for op in BY_REFERENCE)]


@sdk.hookimpl
def timberframe_devices(config: Mapping[str, Any]) -> list[sdk.Device]:
    return [numpy_device.NumpyDevice(i) for i in range(2)]


@sdk.hookimpl
def timberframe_kernels() -> list[sdk.KernelDef]:
    return KERNELS
