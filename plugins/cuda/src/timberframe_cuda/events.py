"""Pending work on a stream."""

from __future__ import annotations

from typing import Any

import cupy
import numpy as np

from timberframe_cuda.memory import finished


class Enqueued:
    """A Pending: an event, and the page-locked array that is filled when it comes."""

    def __init__(self, device: Any, event: cupy.cuda.Event, value: np.ndarray | None) -> None:
        self._device, self._event, self._value = device, event, value
        self._over = False

    def done(self) -> bool:
        self._over = self._over or finished(self._event)
        return self._over

    def result(self) -> np.ndarray | None:
        with self._device.calling():
            self._event.synchronize()
        self._over = True
        return self._value

    def __del__(self) -> None:
        if (
            not self._over and self._value is not None and not self.done()
        ):  # nobody waits any more, but the device still writes
            self._device.pinned.keep(self._value, self._event)
