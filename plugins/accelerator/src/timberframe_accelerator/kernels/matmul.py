"""Accelerator kernels of matrix products."""

from __future__ import annotations

from timberframe_accelerator.product import Product
from timberframe_accelerator.stages import BufferView, Stages
from timberframe_ops.math.matmul import MIXED_TYPES
from timberframe_sdk import KernelDef, KernelNode, Launcher
from timberframe_sdk.declare import kernel

KERNELS: list[KernelDef] = []

_MATRIX_TYPES = ("float32", "float64", "float16", "bfloat16", "int32", "int64")


def _launcher(node: KernelNode, swaps: tuple[bool, bool]) -> Launcher:
    """Returns the product of the node's two inputs, whose last two dimensions are matrices."""
    x, y = (v.shape for v in node.inputs)
    rows, columns = node.outputs[0].shape[-2:]
    product = Product(rows, columns, x[-2 if swaps[0] else -1], swaps, x[:-2], y[:-2])
    stages = Stages(node)
    types = node.inputs[0].dtype, node.inputs[1].dtype, node.outputs[0].dtype
    product.add(stages, (BufferView(0), BufferView(1)), BufferView(stages.result), types)
    return stages.launcher()


@kernel(KERNELS, "MatMul", "", types={"T": _MATRIX_TYPES})
def matmul(node: KernelNode) -> Launcher:
    """The product of two matrices, each of which may lie transposed."""
    return _launcher(node, (node.attrs["transpose_a"], node.attrs["transpose_b"]))


@kernel(KERNELS, "BatchMatMul", "", types={"T": _MATRIX_TYPES})
@kernel(KERNELS, "BatchMatMulV2", "", types={"T": (*_MATRIX_TYPES, "int16")})
def batch_matmul(node: KernelNode) -> Launcher:
    """Products of the matrices of two batches that broadcast."""
    return _launcher(node, (node.attrs["adj_x"], node.attrs["adj_y"]))


KERNELS += [
    KernelDef("BatchMatMulV3", "", batch_matmul, {"Ta": (x,), "Tb": (y,), "Tout": (z,)})
    for x, y, z in MIXED_TYPES
    if "complex" not in z
]
