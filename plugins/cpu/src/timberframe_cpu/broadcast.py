"""How native elementwise kernels walk operands that broadcast: the parameters that csrc/common/broadcast.h reads."""

from __future__ import annotations

import math
from collections.abc import Sequence

from timberframe_cpu.loops import OPERANDS
from timberframe_sdk import MAX_RANK, StaticShape, UnimplementedError
from timberframe_sdk.elementwise.fusion import merged_dims

SHORT_RUN = 64
"""Inner runs below this many elements are gathered into blocks, which the loops then vectorise."""
DENSE, SCALAR, ROW, OTHER = range(4)

CHEAP, COSTLY = 32_768, 4_096
"""Elements that one thread takes at a time: of an addition, of a power."""


def broadcast_walk(
    shapes: Sequence[StaticShape],
    out_shape: StaticShape,
    itemsizes: Sequence[int],
    out_itemsize: int,
    grain: int = CHEAP,
) -> tuple[int, ...]:
    """Returns the parameter words for operands of these shapes and element sizes in bytes; see
    the header for their order.
    """
    dims = merged_dims(shapes, out_shape)
    inner, inner_strides = dims[0] if dims else (max(1, math.prod(out_shape)), (1,) * len(shapes))
    outer = dims[1:]
    check_rank(len(dims))
    words = [len(outer), inner, out_itemsize, grain, int(bool(outer) and inner < SHORT_RUN)]
    for k in range(OPERANDS):
        if k < len(shapes):
            words += [inner_strides[k] * itemsizes[k], itemsizes[k], _repeat([s[k] for _, s in dims])]
        else:
            words += [0, 0, SCALAR]
    for size, strides in outer:
        scaled = [s * b for s, b in zip(strides, itemsizes, strict=True)]
        words += [size, *scaled, *[0] * (OPERANDS - len(shapes))]
    return tuple(words)


def check_rank(merged: int) -> None:
    """Raises UnimplementedError where more dimensions are left after merging than kernels have loop counters for."""
    if merged > MAX_RANK:
        raise UnimplementedError(f"{merged} dimensions of different strides; the CPU's kernels walk up to {MAX_RANK}")


def _repeat(strides: Sequence[int]) -> int:
    """Returns how an operand with these strides, innermost first, repeats."""
    if all(strides):
        return DENSE
    if not any(strides):
        return SCALAR
    return ROW if not any(strides[1:]) else OTHER
