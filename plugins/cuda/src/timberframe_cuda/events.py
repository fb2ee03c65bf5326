"""Pending work on a stream."""

from __future__ import annotations

import threading
from typing import Any

import cupy
import numpy as np

from timberframe_cuda.context import finished
from timberframe_cuda.staging import Place


class Marker:
    """A Pending: all that a device was given before an event."""

    def __init__(self, device: Any, event: cupy.cuda.Event) -> None:
        self._device, self._event, self._over = device, event, False

    def done(self) -> bool:
        self._over = self._over or finished(self._event)
        return self._over

    def result(self) -> Any:
        self._device.wait(self._event)
        self._over = True


class Copy(Marker):
    """A Pending: a copy to the host, in order with the work of the device. place: where the GPU writes it."""

    def __init__(
        self, device: Any, event: cupy.cuda.Event, place: Place, dtype: np.dtype[Any], shape: tuple[int, ...]
    ) -> None:
        super().__init__(device, event)
        self._place, self._dtype, self._shape = place, dtype, shape
        self._found: np.ndarray | None = None
        self._taking = threading.Lock()

    def result(self) -> np.ndarray:
        super().result()
        with self._taking:
            if self._found is None:
                found = np.empty(self._shape, self._dtype)
                found.reshape(-1).view(np.uint8)[:] = self._place.memory[: found.nbytes]
                self._found, self._place.free = found, True
            return self._found

    def __del__(self) -> None:
        self._place.free = True
