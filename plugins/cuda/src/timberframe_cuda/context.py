"""GPUs as the process has them: what all devices on one share, errors of CUDA, and whether it still works."""

from __future__ import annotations

from functools import cache
from weakref import WeakSet

import cupy

from timberframe_sdk import Allocator, InternalError, OpError, ResourceExhaustedError, UnavailableError

DRIVER_ERRORS = cupy.cuda.runtime.CUDARuntimeError, cupy.cuda.driver.CUDADriverError
LASTING = {
    214, 220, 226,  # cudaErrorECCUncorrectable, cudaErrorNvlinkUncorrectable, cudaErrorContained
    700, 702, 709, 710,  # cudaErrorIllegalAddress, cudaErrorLaunchTimeout, cudaErrorContextIsDestroyed, cudaErrorAssert
    714, 715, 716, 717, 718, 719,  # from cudaErrorHardwareStackError, cudaErrorIllegalInstruction,
    #                                cudaErrorMisalignedAddress, cudaErrorInvalidAddressSpace, cudaErrorInvalidPc to
    #                                cudaErrorLaunchFailure
    721, 810, 911,  # cudaErrorTensorMemoryLeak, cudaErrorMpsClientTerminated, cudaErrorExternalDevice
}  # fmt: skip
"""Errors after which every call on the GPU fails until the process ends (driver_types.h)."""
_OUT_OF_MEMORY = 2  # cudaErrorMemoryAllocation, CUDA_ERROR_OUT_OF_MEMORY
_NOT_READY = 600  # cudaErrorNotReady


class Kernels:
    """The kernels that a device launched since its work was last known to have ended well."""

    def __init__(self) -> None:
        self.first = self.last = ""

    def launched(self, name: str) -> None:
        """Notes a launch."""
        self.first = self.first or name
        self.last = name

    def launched_all(self, captured: Kernels) -> None:
        """Notes the launch of a graph."""
        self.launched(captured.first)
        self.last = captured.last

    def ended(self) -> None:
        """Notes that all work has ended without an error."""
        self.first = self.last = ""

    def __str__(self) -> str:
        if not self.first:
            return "no kernel was under way"
        if self.first == self.last:
            return f"kernel '{self.first}' was under way"
        return f"kernels from '{self.first}' to '{self.last}' were under way"


class Context:
    """The state of a GPU in this process, for all devices on it. number: CUDA's number of the GPU.

    lost: why the GPU does nothing any more; empty while it works.
    """

    def __init__(self, number: int) -> None:
        self.number = number
        self.gpu = cupy.cuda.Device(number)
        self.lost = ""
        self.allocators: WeakSet[Allocator] = WeakSet()

    def check(self, spec: str) -> None:
        """Raises UnavailableError where the GPU is lost."""
        if self.lost:
            raise UnavailableError(f"{spec}: {self.lost}")

    def error(self, spec: str, error: RuntimeError, kernels: Kernels) -> OpError:
        """Returns the error for what CUDA or CuPy reports. Errors of a kernel are reported by some later call.

        kernels: those of the device that made the call.
        """
        status = getattr(error, "status", None)  # errors of CuPy itself have none
        if status in LASTING and not self.lost:
            self.lost = (
                f"the GPU is lost to {error}, while {kernels}; restart the process to use it again, "
                "with CUDA_LAUNCH_BLOCKING=1 to learn which kernel it is"
            )
        if self.lost:
            return UnavailableError(f"{spec}: {self.lost}")
        if status == _OUT_OF_MEMORY:
            return ResourceExhaustedError(f"{spec}: {error}; less memory in use at a time is required")
        if status is None:
            return InternalError(f"{spec}: CuPy reports {error}")
        return InternalError(f"{spec}: CUDA reports {error}, perhaps of work that was enqueued before")


@cache
def context(number: int) -> Context:
    """Returns the process's context of a GPU."""
    return Context(number)


def finished(event: cupy.cuda.Event) -> bool:
    """Returns whether the work before an event has ended, even with an error."""
    return bool(cupy.cuda.runtime.eventQuery(event.ptr) != _NOT_READY)
