"""Backends of PyTorch as devices of Timberframe: ``/device:TORCH:0`` of sessions that name one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from timberframe_sdk import Device, KernelDef, hookimpl

timberframe_contract = (2, 23)  # the version of timberframe_sdk.CONTRACT that this is written for


@hookimpl
def timberframe_devices(config: Mapping[str, Any]) -> list[Device]:
    """Returns the devices of the backend that the session's options name; none where they name none."""
    if "TORCH" not in config.get("options", {}) and not config["count"].get("TORCH"):
        return []
    from timberframe_torch.device import devices  # here, since torch takes long to import

    return cast(list[Device], devices(config))  # a protocol's attributes are invariant


@hookimpl
def timberframe_kernels() -> list[KernelDef]:
    """Returns the kernels of all backends."""
    from timberframe_torch.kernels import KERNELS

    return KERNELS
