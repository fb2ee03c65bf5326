"""All kernels that the SDK has for accelerators."""

from __future__ import annotations

from dataclasses import replace

from timberframe.plugin.contracts import KernelDef
from timberframe_sdk.accelerator import (
    addition,
    boxes,
    colors,
    constants,
    convolution,
    depthwise,
    diagonal,
    einsum,
    elementwise,
    histogram,
    indexing,
    matmul,
    movement,
    normalization,
    optimizer,
    pooling,
    random,
    ranking,
    rearranging,
    reduction,
    resizing,
    rows,
    scan,
    scatter,
    search,
    segments,
)

FAMILIES = (
    addition,
    boxes,
    colors,
    constants,
    convolution,
    depthwise,
    diagonal,
    einsum,
    elementwise,
    histogram,
    indexing,
    matmul,
    movement,
    normalization,
    optimizer,
    pooling,
    random,
    ranking,
    rearranging,
    resizing,
    reduction,
    rows,
    scan,
    scatter,
    search,
    segments,
)


def accelerator_kernels(device: str) -> list[KernelDef]:
    """The kernels for a device type whose class is an AcceleratorDevice."""
    return [replace(kernel, device=device) for family in FAMILIES for kernel in family.KERNELS]
