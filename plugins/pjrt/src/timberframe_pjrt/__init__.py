"""PJRT devices, through JAX, as devices of Timberframe: ``/device:PJRT:0`` of sessions that name one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from timberframe_sdk import Device, hookimpl

timberframe_contract = (2, 23)  # the version of timberframe_sdk.CONTRACT that this is written for


@hookimpl
def timberframe_devices(config: Mapping[str, Any]) -> list[Device]:
    """Returns the devices of the platform that the session's options name; none where they name none."""
    if "PJRT" not in config.get("options", {}) and not config["count"].get("PJRT"):
        return []
    from timberframe_pjrt.platforms import import_jax

    import_jax()
    from timberframe_pjrt.device import devices  # here, since jax takes long to import

    return cast(list[Device], devices(config))  # a protocol's attributes are invariant
