"""OpenCL through pyopencl: replace it by your own driver, if that compiles OpenCL C or CUDA C++."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pyopencl as cl

import timberframe_sdk as sdk
from timberframe_accelerator import DeviceTensor, header_folders
from timberframe_accelerator.opencl_drivers import find_drivers


def devices() -> list[cl.Device]:
    """All devices of all drivers; UnavailableError says that there are none, which is no fault of this package."""
    find_drivers()  # also those that came with pip
    try:
        found = [d for platform in cl.get_platforms() for d in platform.get_devices()]
    except cl.LogicError:
        found = []
    if not found:
        raise sdk.UnavailableError("no OpenCL device was found; install its driver")
    return found


class Event:
    """Something that the queue will do, and the host array that it fills, if any."""

    def __init__(self, event: cl.Event, value: np.ndarray | None = None) -> None:
        self._event, self._value = event, value

    def done(self) -> bool:
        """Whether it has been done; never waits."""
        return self._event.command_execution_status <= cl.command_execution_status.COMPLETE  # negative: an error

    def result(self) -> Any:
        """Waits for it and returns its result, or raises its error."""
        self._event.wait()
        return self._value


class Queue:
    """A device's queue: does what it is given in order. check: raises failures asked for, see `sdk.Failures`."""

    def __init__(self, device: cl.Device, check: Callable[[str], None]) -> None:
        self._check = check
        self.context = cl.Context([device])
        self._queue = cl.CommandQueue(self.context)
        self.alignment = max(64, device.mem_base_addr_align // 8)  # where a part of a buffer may begin

    def memory(self, nbytes: int) -> cl.Buffer:
        try:
            return cl.Buffer(self.context, cl.mem_flags.READ_WRITE, max(nbytes, 1))
        except cl.Error as e:
            raise MemoryError(str(e)) from e

    def part(self, buffer: cl.Buffer, offset: int, nbytes: int) -> cl.Buffer:
        return buffer.get_sub_region(offset, max(nbytes, 1))

    def copy(self, source: Any, target: Any, nbytes: int) -> None:
        """Between buffers of the device."""
        self._check("launch")
        if nbytes:
            cl.enqueue_copy(self._queue, target, source, byte_count=nbytes)

    def write(self, x: np.ndarray, target: Any) -> None:
        """Copies a host array to the device; the caller may change it afterwards."""
        self._check("copy")
        if x.size:
            host = np.require(x, requirements=["C", "A"]).reshape(-1).view(np.uint8)
            cl.enqueue_copy(self._queue, target, host, is_blocking=True)

    def read(self, source: Any, dtype: np.dtype[Any], shape: tuple[int, ...]) -> Event:
        """Copies a tensor to the host: the event's result."""
        self._check("copy")
        x = np.empty(shape, dtype)
        if not x.size:
            return Event(cl.enqueue_marker(self._queue), x)
        event = cl.enqueue_copy(self._queue, x.reshape(-1).view(np.uint8), source, is_blocking=False)
        self._queue.flush()
        return Event(event, x)

    def marker(self) -> Event:
        """Is done when everything before it is."""
        self._check("queue")
        event = cl.enqueue_marker(self._queue)
        self._queue.flush()
        return Event(event)

    def kernel(self, source: str, name: str) -> Callable[..., None]:
        """Compiles a source and returns its kernel `name`, to be called with work-items, group and arguments."""
        options = [*(f"-I{folder}" for folder in header_folders()), "-cl-std=CL1.2"]
        with warnings.catch_warnings(action="ignore", category=cl.CompilerWarning):  # a driver prints a banner
            program = cl.Program(self.context, source).build(options, cache_dir=str(sdk.cache_folder("acmeopencl")))

        def launch(items: tuple[int, ...], group: tuple[int, ...], *arguments: Any) -> None:
            self._check("launch")
            given = (a.handle if isinstance(a, DeviceTensor) else a for a in arguments)
            cl.Kernel(program, name)(self._queue, tuple(items), tuple(group), *given)

        return launch
