"""All kernels that the SDK has for accelerators."""

from __future__ import annotations

from timberframe.plugin.contracts import KernelDef
from timberframe_sdk.accelerator.elementwise import elementwise_kernels


def accelerator_kernels(device: str) -> list[KernelDef]:
    """The kernels for a device type whose class is an AcceleratorDevice."""
    return [*elementwise_kernels(device)]
