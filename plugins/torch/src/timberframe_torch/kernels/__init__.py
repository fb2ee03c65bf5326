"""The table of ops: each module has one family, as functions of torch."""

from timberframe_sdk import KernelDef
from timberframe_torch.kernels import (
    convolution,
    elementwise,
    indexing,
    movement,
    normalization,
    optimizer,
    pooling,
    products,
    reductions,
)

KERNELS: list[KernelDef] = [
    kernel
    for family in (
        elementwise, reductions, products, convolution, pooling, normalization, indexing, movement, optimizer,
    )
    for kernel in family.KERNELS
]  # fmt: skip
"""Of every backend; what one of them lacks shows when it is launched."""
