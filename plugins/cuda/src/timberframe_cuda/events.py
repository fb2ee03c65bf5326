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
    """A Pending: a copy to the host, in order with the work of the device. target: where the GPU writes it."""

    def __init__(
        self,
        device: Any,
        event: cupy.cuda.Event,
        target: Place | np.ndarray,
        dtype: np.dtype[Any],
        shape: tuple[int, ...],
    ) -> None:
        super().__init__(device, event)
        self._target, self._dtype, self._shape = target, dtype, shape
        self._taking = threading.Lock()

    def result(self) -> np.ndarray:
        super().result()
        with self._taking:
            if isinstance(self._target, Place):
                place, made = self._target, np.empty(self._shape, self._dtype)
                made.reshape(-1).view(np.uint8)[:] = place.memory[: made.nbytes]
                self._target, place.free = made, True
            return self._target

    def __del__(self) -> None:
        if isinstance(self._target, Place) or not self._over:  # nobody waits any more, but the GPU may still write
            self._device.results.drop(self._event, self._target)
