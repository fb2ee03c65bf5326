"""Products of matrices."""

from __future__ import annotations

from typing import Any

from timberframe_sdk import KernelDef, KernelNode
from timberframe_torch import lazy as torch
from timberframe_torch.launches import COMPLEX, FLOATS, Function, torch_kernel

KERNELS: list[KernelDef] = []
_TYPES = (*FLOATS, "int32", "int64", *COMPLEX)


@torch_kernel(KERNELS, "MatMul", {"T": _TYPES})
def mat_mul(node: KernelNode) -> Function:
    """The product of two matrices, either of them transposed."""
    turn_a, turn_b = node.attrs["transpose_a"], node.attrs["transpose_b"]
    return lambda a, b: torch.mm(a.t() if turn_a else a, b.t() if turn_b else b)


@torch_kernel(KERNELS, ("BatchMatMul", "BatchMatMulV2"), {"T": _TYPES})
def batch_mat_mul(node: KernelNode) -> Function:
    """Products of matrices, either of them transposed and conjugated; outer dimensions broadcast."""

    def turned(x: Any, turn: bool) -> Any:
        return x.mH if turn and x.is_complex() else x.mT if turn else x

    return lambda x, y: torch.matmul(turned(x, node.attrs["adj_x"]), turned(y, node.attrs["adj_y"]))
