"""DeviceArray: a tensor that a run left on its device."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from timberframe_core.plugin.contracts import Array, Device
from timberframe_core.shapes import StaticShape, format_shape

if TYPE_CHECKING:
    from timberframe_core.runtime.variables import HeldVersion

HOST = (1, 0)
"""DLPack's name for the host's memory (kDLCPU)."""


class _VersionMemory:
    """Bytes of a variable's version, for NumPy: lives as long as an array over them, and so does the lease."""

    def __init__(self, array: np.ndarray, version: HeldVersion) -> None:
        self._held = array, version
        self.__array_interface__ = {
            "version": 3, "data": (array.ctypes.data, False), "shape": (array.nbytes,), "typestr": "|u1",
        }  # fmt: skip


class DeviceArray:
    """A tensor in the memory of a device, as `RunOptions(fetch_on_device=True)` gives it.

    It owns its memory, which goes with the last reference, and never changes. Feed it, hand it to another library by
    DLPack (without a copy where the device shares its memory, else as a copy on the host), or get it with `numpy()`.
    version: of the variable whose array it is.
    """

    __slots__ = ("_version", "array", "home")

    def __init__(self, array: Array, home: Device, version: HeldVersion | None = None) -> None:
        self.array = array
        self.home = home
        self._version = version

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype of its elements."""
        dtype: np.dtype[Any] = np.dtype(self.array.dtype)
        return dtype

    @property
    def shape(self) -> StaticShape:
        """Its sizes."""
        return tuple(self.array.shape)

    @property
    def device(self) -> str:
        """The name of its device, such as ``/device:ACME:0``."""
        return self.home.spec

    def numpy(self) -> np.ndarray:
        """Returns the values on the host: a copy, or read-only where they are in the memory of a variable."""
        found = self._on_host()
        if self._version is not None:
            found.flags.writeable = False
        return found

    def _on_host(self) -> np.ndarray:
        """Returns what the device gives; what shares the memory of a variable keeps its
        version from being written over.
        """
        found = self.home.copy_out(self.array)
        if (
            self._version is None
            or not isinstance(self.array, np.ndarray)
            or not np.may_share_memory(found, self.array)
        ):
            return found
        if found.dtype.hasobject or not found.flags.c_contiguous:
            return found.copy()
        return np.asarray(_VersionMemory(found, self._version)).view(found.dtype).reshape(found.shape)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        found = self.numpy()
        shared = isinstance(self.array, np.ndarray) and np.may_share_memory(found, self.array)
        if copy is False and not shared:
            raise ValueError(f"{self!r} needs a copy to be on the host; copy=False forbids it")
        return np.array(found, dtype, copy=copy if shared or not found.flags.writeable else None)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.home.dlpack_device or HOST

    def __dlpack__(self, *, dl_device: tuple[int, int] | None = None, copy: bool | None = None, **options: Any) -> Any:
        """Returns a capsule of the array, or of a host copy where the device does not share its
        memory or `dl_device` asks.

        BufferError for a third device, or where a copy is needed and `copy` is False.
        """
        own = self.__dlpack_device__()
        wanted = own if dl_device is None else tuple(map(int, dl_device))
        if wanted not in (own, HOST):
            raise BufferError(f"{self!r} is on DLPack device {own}; it goes there or to {HOST}, not to {wanted}")
        if copy and self.home.dlpack_device == HOST:
            return self.home.to_dlpack(self.home.copy_in(np.array(self.numpy()))).__dlpack__(**options)
        if own == HOST and self._version is not None:
            return self._on_host().__dlpack__(**options)
        if own == HOST or (wanted == own and not copy):
            if self._version is not None:
                self._version.version.keep()
            return self.home.to_dlpack(self.array).__dlpack__(**options)
        if copy is False:
            raise BufferError(f"{self!r} needs a copy to be on the host; copy=False forbids it")
        if wanted == HOST:
            return self.numpy().__dlpack__()
        return self.home.to_dlpack(self.home.copy_in(self.numpy())).__dlpack__(**options)

    def __repr__(self) -> str:
        return f"<DeviceArray {self.dtype} {format_shape(self.shape)} on {self.device}>"
