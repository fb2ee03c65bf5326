"""A device for tests and comparison that computes every op by its reference, beside whatever device the CPU is.

Once a program has called ``timberframe_sdk.register_plugin("reference", reference_device)``, nodes that no other device
can run go to it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import timberframe_sdk as sdk
from timberframe_sdk.reference_cpu import MEMORY, ReferenceCpu

TYPE = "REFERENCE"


class ReferenceDevice(ReferenceCpu):
    """Tensors of all dtypes, strings included, as NumPy arrays."""

    type = TYPE


@sdk.hookimpl
def timberframe_devices(config: Mapping[str, Any]) -> list[sdk.Device]:
    limit = sdk.memory_limit(config, TYPE, MEMORY, accelerator=False)
    return [ReferenceDevice(i, limit) for i in range(sdk.device_count(config, TYPE, 1, accelerator=False))]


@sdk.hookimpl
def timberframe_kernels() -> list[sdk.KernelDef]:
    return []
