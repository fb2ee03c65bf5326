"""OpenCL devices of Timberframe: every device of every platform is ``/device:OPENCL:i``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from timberframe_sdk import Device, KernelDef, OpDef, hookimpl

timberframe_contract = (2, 14)  # the version of timberframe_sdk.CONTRACT that this is written for


@hookimpl
def timberframe_devices(config: Mapping[str, Any]) -> list[Device]:
    """The devices that the installed drivers report, accelerators first."""
    from timberframe_accelerator.opencl_drivers import find_drivers

    find_drivers()  # before pyopencl loads any
    from timberframe_opencl.device import devices

    return cast(list[Device], devices(config))  # a protocol's attributes are invariant, so mypy sees no OpenCLDevice


@hookimpl
def timberframe_kernels() -> list[KernelDef]:
    """The SDK's kernels in OpenCL C."""
    from timberframe_accelerator.kernels import accelerator_kernels

    return accelerator_kernels("OPENCL")


@hookimpl
def timberframe_generated_kernels(op: OpDef) -> list[KernelDef]:
    """The kernels that an op's source gives."""
    from timberframe_accelerator.kernels import generated_kernels

    return generated_kernels("OPENCL", op)
