"""Arrays moved between devices and the host."""

from __future__ import annotations

import numpy as np

from timberframe_core.compiler.plan import Located
from timberframe_core.plugin.contracts import Array, CancelToken, Device


def move(located: Located, device: Device) -> Array:
    """Returns the array on a device; the same object where it is there already."""
    array, home = located
    if home is device:
        return array
    if home is None:
        return device.copy_in(array)
    direct = device.copy_from(home, array)
    return device.copy_in(home.copy_out(array)) if direct is None else direct


def copied(array: Array, device: Device) -> Located:
    """Returns a copy of an array on its device."""
    return device.copy_in(np.array(device.copy_out(array))), device


def to_host(located: Located, cancel: CancelToken) -> np.ndarray:
    """Returns the value on the host; stops waiting for it when the run is cancelled."""
    array, device = located
    if device is None:
        return np.asarray(array)
    found: np.ndarray = cancel.wait(device.start_copy_out(array)) if device.asynchronous else device.copy_out(array)
    return found
