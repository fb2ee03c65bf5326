"""Kernel declarations, one module for each family in csrc/."""

from __future__ import annotations

from importlib import import_module

from timberframe_core.plugin.contracts import KernelDef

FAMILIES = (
    "binary",
    "cast",
    "compare",
    "constants",
    "convolution",
    "convolution3d",
    "decompositions",
    "diagonal",
    "einsum",
    "image",
    "indexing",
    "indexing_strings",
    "linalg",
    "movement",
    "normalization",
    "optimizer",
    "pooling",
    "pooling3d",
    "random",
    "rare",
    "reduction",
    "scan",
    "search",
    "select",
    "softmax",
    "unary",
)
"""Modules of this package, each with a list KERNELS."""


def all_kernels() -> list[KernelDef]:
    """The kernels of all families."""
    return [kernel for name in FAMILIES for kernel in import_module(f"{__name__}.{name}").KERNELS]
