"""`tf.config`: the devices of this machine, by the names that programs for TensorFlow 1.15 and 2 have for them."""

from timberframe.config import experimental as experimental
from timberframe.config.devices import LogicalDevice as LogicalDevice
from timberframe.config.devices import PhysicalDevice as PhysicalDevice
from timberframe.config.devices import get_visible_devices as get_visible_devices
from timberframe.config.devices import list_logical_devices as list_logical_devices
from timberframe.config.devices import list_physical_devices as list_physical_devices
from timberframe.config.devices import set_visible_devices as set_visible_devices

__all__ = [
    "LogicalDevice", "PhysicalDevice", "experimental", "get_visible_devices", "list_logical_devices",
    "list_physical_devices", "set_visible_devices",
]  # fmt: skip
