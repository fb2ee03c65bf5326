"""The devices of this machine as `tf.config` has them."""

from __future__ import annotations

from typing import Any, NamedTuple

from timberframe.python.client.device_lib import list_local_devices
from timberframe_core.errors import InvalidArgumentError, UnimplementedError


class PhysicalDevice(NamedTuple):
    """A device of the machine. device_type: CPU, or GPU for an accelerator of whatever type."""

    name: str
    device_type: str


class LogicalDevice(NamedTuple):
    """A device as `tf.device` takes it. device_type: CPU, or GPU for an accelerator of whatever type."""

    name: str
    device_type: str


def list_logical_devices(device_type: str | None = None) -> list[LogicalDevice]:
    """Returns the CPU and the accelerators, or those of a type, CPU or GPU."""
    found = [LogicalDevice(d.name, d.device_type) for d in list_local_devices()]
    return [d for d in found if device_type in (None, d.device_type)]


def list_physical_devices(device_type: str | None = None) -> list[PhysicalDevice]:
    """Returns the CPU and the accelerators, or those of a type, CPU or GPU."""
    found = list_logical_devices(device_type)
    return [PhysicalDevice(f"/physical_device:{d.name.rpartition('device:')[2]}", d.device_type) for d in found]


def get_visible_devices(device_type: str | None = None) -> list[PhysicalDevice]:
    """Returns all devices, or those of a type: none is hidden."""
    return list_physical_devices(device_type)


def set_visible_devices(devices: Any, device_type: str | None = None) -> None:
    """Accepts all devices, of a type or at all.

    Raises UnimplementedError where some are to be hidden: sessions have settings of their own for that.
    """
    given = list(devices) if isinstance(devices, list | tuple) else [devices]
    known = list_physical_devices(device_type)
    unknown = [d for d in given if d not in known]
    if unknown:
        raise InvalidArgumentError(
            f"tf.config.set_visible_devices: {unknown[0]!r} is no device of this machine; {known} are"
        )
    hidden = [d.name for d in known if d not in given]
    if hidden:
        raise UnimplementedError(
            f"tf.config.set_visible_devices: {', '.join(hidden)} cannot be hidden from all sessions; "
            "tf.ConfigProto(device_count={'GPU': 0}) hides accelerators from one"
        )


def _check_present(function: str, device: PhysicalDevice) -> None:
    known = list_physical_devices()
    if device not in known:
        raise InvalidArgumentError(
            f"tf.config.experimental.{function}: {device!r} is no device of this machine; {known} are"
        )


def set_memory_growth(device: PhysicalDevice, enable: bool) -> None:
    """Accepts True, and False for the CPU alone: devices take memory as it is needed."""
    _check_present("set_memory_growth", device)
    if not enable and device.device_type != "CPU":
        raise UnimplementedError(
            f"tf.config.experimental.set_memory_growth: {device.name} takes memory as it is needed; "
            "tf.GPUOptions(per_process_gpu_memory_fraction=...) limits it"
        )


def get_memory_growth(device: PhysicalDevice) -> bool:
    """True: devices take memory as it is needed."""
    _check_present("get_memory_growth", device)
    return True
