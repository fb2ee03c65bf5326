"""Pending work on a queue."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from timberframe_opencl.memory import device_error

if TYPE_CHECKING:
    import pyopencl as cl
else:
    from timberframe_opencl import lazy as cl


class Enqueued:
    """A Pending: an event, and the host array that it fills.

    abandoned: keeps the event where nobody waits for it any more, since dropping it would wait, and the queue still
    writes the array.
    """

    def __init__(self, spec: str, event: cl.Event, value: np.ndarray | None, abandoned: list[Any]) -> None:
        self._spec, self._event, self._value, self._abandoned = spec, event, value, abandoned

    def done(self) -> bool:
        return self._event.command_execution_status <= cl.command_execution_status.COMPLETE  # negative: an error

    def result(self) -> np.ndarray | None:
        try:
            self._event.wait()
        except cl.Error as e:
            raise device_error(self._spec, e) from e
        return self._value

    def __del__(self) -> None:
        if not self.done():
            self._abandoned.append(self._event)
