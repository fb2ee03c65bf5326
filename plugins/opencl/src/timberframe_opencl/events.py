"""Pending work on a queue."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from timberframe_sdk import OpError

if TYPE_CHECKING:
    import pyopencl as cl
else:
    from timberframe_opencl import lazy as cl


class Enqueued:
    """A Pending: an event, and the host array that it fills.

    as_error: words what the driver reports. abandoned: keeps the event where nobody waits for it any more, since
    dropping it would wait, and the queue still writes the array.
    """

    def __init__(
        self,
        as_error: Callable[[cl.Error], OpError],
        event: cl.Event,
        value: np.ndarray | None,
        abandoned: list[Any],
    ) -> None:
        self._as_error, self._event, self._value, self._abandoned = as_error, event, value, abandoned

    def done(self) -> bool:
        return self._event.command_execution_status <= cl.command_execution_status.COMPLETE  # negative: an error

    def result(self) -> np.ndarray | None:
        try:
            self._event.wait()
        except cl.Error as e:
            raise self._as_error(e) from e
        return self._value

    def __del__(self) -> None:
        if not self.done():
            self._abandoned.append(self._event)
