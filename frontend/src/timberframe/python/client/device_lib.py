"""`tf.python.client.device_lib`: the devices of this machine."""

from __future__ import annotations

from typing import Any, NamedTuple

from timberframe_core.config import SessionConfig
from timberframe_core.plugin.accelerators import accelerators
from timberframe_core.runtime.devices import devices_for

GPU = "GPU"

__all__ = ["DeviceAttributes", "list_local_devices"]


class DeviceAttributes(NamedTuple):
    """A device. device_type: CPU, or GPU for an accelerator of whatever type; `name` is what `tf.device` takes for it.

    memory_limit: bytes it may use. physical_device_desc: what it is, with the name of the device itself.
    """

    name: str
    device_type: str
    memory_limit: int
    incarnation: int
    physical_device_desc: str


def list_local_devices(session_config: Any = None) -> list[DeviceAttributes]:
    """Returns the CPU and the accelerators, which TensorFlow's programs know as GPUs, best first;
    of a ConfigProto's session.

    A driver for the CPU, such as one of OpenCL, is none of them.
    `tf.device` takes such a name under soft placement.
    """
    found = devices_for(SessionConfig.of(session_config))
    host = next((d for d in found if d.host_memory), None)
    made: list[DeviceAttributes] = []
    for device in (d for d in (host, *accelerators(found, host)) if d is not None):
        a, number = device.attributes, sum(m.device_type == GPU for m in made)
        words = ", ".join(x for x in (f"device: {device.spec}", f"name: {a.vendor} {a.model}".strip()) if x)
        name, kind = (device.spec, device.type) if device is host else (f"/device:{GPU}:{number}", GPU)
        made.append(DeviceAttributes(name, kind, a.memory, getattr(device, "incarnation", 0) or 0, words))
    return made
