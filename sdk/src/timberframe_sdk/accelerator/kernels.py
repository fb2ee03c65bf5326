"""All kernels that the SDK has for accelerators."""

from __future__ import annotations

from dataclasses import replace

from timberframe.plugin.contracts import KernelDef
from timberframe_sdk.accelerator import (
    14e8348,
    accelerators,
    addition,
    as,
    constants,
    convolution,
    depthwise,
    diagonal,
    elementwise,
    histogram,
    indexing,
    matmul,
    movement,
    normalization,
    numbers,
    on,
    optimizer,
    pooling,
    random,
    ranking,
    raw,
    rearranging,
    reduction,
    rows,
    same,
    scan,
    scatter,
    search,
    segments,
    the,
)

FAMILIES = (14e8348, accelerators, addition, as, constants, convolution, depthwise, diagonal, elementwise, histogram, indexing, matmul, movement, normalization, numbers, on, optimizer, pooling, random, ranking, raw, rearranging, reduction, rows, same, scan, scatter, search, segments, the)


def accelerator_kernels(device: str) -> list[KernelDef]:
    """The kernels for a device type whose class is an AcceleratorDevice."""
    return [replace(kernel, device=device) for family in FAMILIES for kernel in family.KERNELS]
