"""Which accelerators there are, by the names that tests ask for them."""

from __future__ import annotations

from typing import Any

from timberframe_core.config import SessionConfig
from timberframe_core.plugin.accelerators import accelerators
from timberframe_core.runtime.devices import devices_for


def accelerator_names() -> list[str]:
    """Returns the names of all accelerators."""
    found = devices_for(SessionConfig())
    return [d.name for d in accelerators(found, next((d for d in found if d.host_memory), None))]


def is_gpu_available(cuda_only: bool = False, min_cuda_compute_capability: Any = None) -> bool:
    """Returns whether there is an accelerator; cuda_only: of type CUDA. min_cuda_compute_capability changes nothing."""
    return any("CUDA" in name for name in accelerator_names()) if cuda_only else bool(accelerator_names())


def gpu_device_name() -> str:
    """Returns the name of the first accelerator, empty if there is none."""
    return next(iter(accelerator_names()), "")


def is_built_with_cuda() -> bool:
    """Returns whether there is a CUDA device: its plugin is a package of its own."""
    return is_gpu_available(cuda_only=True)
