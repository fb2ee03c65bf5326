"""CUDA devices of Timberframe: every NVIDIA GPU is ``/device:CUDA:i``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from timberframe_sdk import Device, KernelDef, OpDef, UnavailableError, hookimpl

timberframe_contract = (2, 14)  # the version of timberframe_sdk.CONTRACT that this is written for


@hookimpl
def timberframe_devices(config: Mapping[str, Any]) -> list[Device]:
    """The GPUs that CUDA sees; UnavailableError says what is missing: CuPy, a driver, or a GPU."""
    try:
        from timberframe_cuda.device import devices
        from timberframe_cuda.precompile import compiling_devices
    except ImportError as e:
        raise UnavailableError(f"CuPy does not load: {e}; install timberframe-cuda[cuda12] or [cuda13]") from e

    return cast(
        list[Device], compiling_devices() or devices(config)
    )  # a protocol's attributes are invariant, so mypy sees no CudaDevice


@hookimpl
def timberframe_kernels() -> list[KernelDef]:
    """The SDK's kernels in CUDA C++; those of products call cuBLAS where it is installed."""
    from timberframe_accelerator.kernels import accelerator_kernels

    return accelerator_kernels("CUDA")


@hookimpl
def timberframe_generated_kernels(op: OpDef) -> list[KernelDef]:
    """The kernels that an op's source gives."""
    from timberframe_accelerator.kernels import generated_kernels

    return generated_kernels("CUDA", op)
