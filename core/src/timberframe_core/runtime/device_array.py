"""DeviceArray: a tensor that a run left on its device."""

from __future__ import annotations

from typing import Any

import numpy as np

from timberframe_core.plugin.contracts import Array, Device
from timberframe_core.shapes import StaticShape, format_shape

HOST = (1, 0)
"""DLPack's name for the host's memory (kDLCPU)."""


class DeviceArray:
    """A tensor in the memory of a device, as `RunOptions(fetch_on_device=True)` gives it.

    It owns its memory, which goes with the last reference, and never changes. Feed it, hand it to another library by
    DLPack (without a copy where the device shares its memory, else as a copy on the host), or get it with `numpy()`.
    """

    __slots__ = ("array", "home")

    def __init__(self, array: Array, home: Device) -> None:
        self.array = array
        self.home = home

    @property
    def dtype(self) -> np.dtype[Any]:
        dtype: np.dtype[Any] = np.dtype(self.array.dtype)
        return dtype

    @property
    def shape(self) -> StaticShape:
        return tuple(self.array.shape)

    @property
    def device(self) -> str:
        """The name of its device, such as ``/device:ACME:0``."""
        return self.home.spec

    def numpy(self) -> np.ndarray:
        """A copy on the host."""
        return self.home.copy_out(self.array)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.asarray(self.numpy(), dtype)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.home.dlpack_device or HOST

    def __dlpack__(self, *, dl_device: tuple[int, int] | None = None, copy: bool | None = None, **options: Any) -> Any:
        """A capsule of the array, or of a host copy where the device does not share its memory or `dl_device` asks.

        BufferError for a third device, or where a copy is needed and `copy` is False.
        """
        own = self.__dlpack_device__()
        wanted = own if dl_device is None else tuple(map(int, dl_device))
        if wanted not in (own, HOST):
            raise BufferError(f"{self!r} is on DLPack device {own}; it goes there or to {HOST}, not to {wanted}")
        if own == HOST or (wanted == own and not copy):
            return self.home.to_dlpack(self.array).__dlpack__(**options)
        if copy is False:
            raise BufferError(f"{self!r} needs a copy to be on the host; copy=False forbids it")
        if wanted == HOST:
            return self.numpy().__dlpack__()
        return self.home.to_dlpack(self.home.copy_in(self.numpy())).__dlpack__(**options)

    def __repr__(self) -> str:
        return f"<DeviceArray {self.dtype} {format_shape(self.shape)} on {self.device}>"
