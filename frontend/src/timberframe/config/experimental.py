"""`tf.config.experimental`: the older names of functions of `tf.config`, and how devices take memory."""

from timberframe.config.devices import get_memory_growth as get_memory_growth
from timberframe.config.devices import get_visible_devices as get_visible_devices
from timberframe.config.devices import list_logical_devices as list_logical_devices
from timberframe.config.devices import list_physical_devices as list_physical_devices
from timberframe.config.devices import set_memory_growth as set_memory_growth
from timberframe.config.devices import set_visible_devices as set_visible_devices

__all__ = [
    "get_memory_growth", "get_visible_devices", "list_logical_devices", "list_physical_devices", "set_memory_growth",
    "set_visible_devices",
]  # fmt: skip
