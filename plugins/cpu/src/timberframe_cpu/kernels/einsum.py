"""The kernel of csrc/linalg/einsum.c: an einsum as copies and a batch of matrix products."""

from __future__ import annotations

from timberframe_cpu.kernels.linalg import BEYOND_BLAS, aligned, gemm_parameters
from timberframe_cpu.native import native
from timberframe_sdk import KernelDef, KernelNode, as_dtype
from timberframe_sdk.native import Native
from timberframe_sdk.plans.einsum import Copy, EinsumPlan, Products, Walk, plan_einsum


class _Words:
    """The words of the kernel's parameters, and the workspace that they refer to."""

    def __init__(self, itemsize: int) -> None:
        self.itemsize = itemsize
        self.workspace = 0

    def reserve(self, size: int) -> int:
        """Returns the offset of room for so many elements."""
        start = self.workspace
        self.workspace += aligned(size * self.itemsize)
        return start

    def copy(self, copy: Copy) -> list[int]:
        """Returns the step that makes an operand dense."""
        to = 0 if copy.direct else self.reserve(copy.walk.size)
        return [int(not copy.direct), to, *_walk(copy.walk), *_walk(copy.summed)]

    def products(self, products: Products) -> list[int]:
        swaps = int(products.swaps[0]), int(products.swaps[1])
        gemm = gemm_parameters(products.rows, products.columns, products.depth, swaps, (), ())
        return [*gemm[:5], products.batch, *gemm[6:8], 1, products.batch, 1, 1]

    def words(self, plan: EinsumPlan) -> list[int]:
        copies = [word for copy in plan.copies for word in self.copy(copy)]
        if plan.products is None:
            assert plan.scatter is not None
            return [1, *copies, 0, *[0] * 12, 0, 1, int(plan.diagonal), *_walk(plan.scatter)]
        steps = [2, *copies, 1, *self.products(plan.products)]
        if plan.scatter is None:
            return [*steps, 0, 0, 0, 0, 0]
        return [*steps, self.reserve(plan.scatter.size), 1, int(plan.diagonal), *_walk(plan.scatter)]


def _walk(walk: Walk) -> list[int]:
    """Returns a walk of einsum.c."""
    return [len(walk.counts), walk.size, *walk.counts, *walk.strides]


def _einsum(node: KernelNode) -> Native:
    dtype = as_dtype(node.outputs[0].dtype)
    half = dtype.name in ("float16", "bfloat16")
    parameters = _Words(4 if half else dtype.size)
    words = parameters.words(plan_einsum(node, dense=not half))
    node.workspace(parameters.workspace + 64)  # never empty: the kernel takes it for granted
    return native(f"einsum_{str(node.outputs[0].dtype).removeprefix('u')}", *words, reasons=(BEYOND_BLAS,))


_TYPES = ("float32", "float64", "float16", "bfloat16", "int32", "int64", "complex64", "complex128")

KERNELS = [KernelDef("Einsum", "CPU", _einsum, {"T": _TYPES})]
