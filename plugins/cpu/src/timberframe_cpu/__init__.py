"""The CPU device of Timberframe: kernels in C, and clusters that run as one native program."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from timberframe_sdk import Device, KernelDef, OpDef, hookimpl

timberframe_contract = (2, 14)  # the version of timberframe_sdk.CONTRACT that this is written for


@hookimpl
def timberframe_devices(config: Mapping[str, Any]) -> list[Device]:
    """The processor, as one device or as many as the configuration asks for."""
    from timberframe_cpu.device import devices

    return cast(list[Device], devices(config))  # a protocol's attributes are invariant, so mypy sees no CpuDevice in it


@hookimpl
def timberframe_kernels() -> list[KernelDef]:
    """The kernels of all families."""
    from timberframe_cpu.kernels import all_kernels

    return all_kernels()


@hookimpl
def timberframe_generated_kernels(op: OpDef) -> list[KernelDef]:
    """A kernel made of the op's source."""
    from timberframe_cpu.generated import source_kernels

    return source_kernels(op)
