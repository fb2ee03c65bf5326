"""CUDA on the CPU, for tests: a plugin with a device that runs CUDA sources compiled as C++."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from timberframe_sdk import Device, KernelDef, hookimpl


@hookimpl
def timberframe_devices(config: Mapping[str, Any]) -> list[Device]:
    from cuda_on_cpu.device import TYPE, EmulatedDevice

    count = config.get("count", {}).get(TYPE, 1)
    return cast(list[Device], [EmulatedDevice(i) for i in range(count)])  # a protocol's attributes are invariant


@hookimpl
def timberframe_kernels() -> list[KernelDef]:
    from cuda_on_cpu.device import TYPE
    from timberframe_sdk.accelerator.kernels import accelerator_kernels

    return accelerator_kernels(TYPE)
