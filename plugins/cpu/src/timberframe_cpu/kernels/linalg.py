"""Kernels of csrc/linalg: products of matrices and of vectors."""

from __future__ import annotations

import math

import numpy as np

from timberframe_cpu.broadcast import check_rank
from timberframe_cpu.kernels.convolution import WIDEST_LANES
from timberframe_cpu.native import built_isa, isa, native
from timberframe_cpu.packing import (
    MatrixKey,
    c_name,
    conv_shape,
    is_narrow,
    multiplies_pairs,
    prepare_packed,
    region_offsets,
    variant,
)
from timberframe_ops.math.matmul import MIXED_TYPES
from timberframe_sdk import FLOATING, INTEGER, KernelDef, KernelNode
from timberframe_sdk.native import Native
from timberframe_sdk.plans.convolution import Window

BEYOND_BLAS = "product of {0} x {2} and {2} x {1} matrices; their sizes must be below 2^31"
_LARGE = 2**22  # multiplications: below, cutting a product into blocks costs more than a second thread gains
_LARGE_TILED = 2**21  # the same where csrc/linalg/panel_gemm.c serves the dtype
_LEAST_BLOCK = 64  # rows or columns
_PACKED_WEIGHTS = 2**16  # elements of a matrix from which on it is packed
_PACKED_ROWS = 512  # most rows that a packed matrix is multiplied by
_PACKED_TYPES = ("float32", "float64", "float16", "bfloat16", "int32")
_TILED_COLUMNS, _TILED_BLOCK = 64, 2**20  # its blocks: columns in multiples of so many, and least multiplications


def block_size(size: int) -> int:
    """Returns rows (or columns) of the blocks that threads share, for a product of this many;
    it depends on nothing else.
    """
    if size < 2 * _LEAST_BLOCK:
        return size
    return math.ceil(size / max(2, size // 512))


def gemm_parameters(
    rows: int,
    columns: int,
    depth: int,
    transposes: tuple[int, int],
    x: tuple[int, ...],
    y: tuple[int, ...],
    tiled: bool = False,
) -> list[int]:
    """Returns the parameters of gemm_batch (csrc/linalg/gemm.h); x and y are the batch dimensions of the operands.

    tiled: whether csrc/linalg/panel_gemm.c serves the dtype; columns are cut into any number of its panels for nothing.
    """
    rank = max(len(x), len(y))
    x, y = (1,) * (rank - len(x)) + x, (1,) * (rank - len(y)) + y
    batch = [b if a == 1 else a for a, b in zip(x, y, strict=True)]
    if math.prod(y) == 1 and not transposes[0]:  # one matrix on the right: the batch is more rows
        rows, batch, x, y, rank = rows * math.prod(batch), [], (), (), 0
    block_rows, block_columns = max(rows, 1), max(columns, 1)
    work = rows * columns * depth
    if tiled and columns >= max(2 * _TILED_COLUMNS, min(rows, 4 * _TILED_COLUMNS)):
        if work >= _LARGE_TILED:
            block_columns = _TILED_COLUMNS * math.ceil(_TILED_BLOCK / (rows * depth * _TILED_COLUMNS))
    elif work >= (_LARGE_TILED if tiled else _LARGE):
        if rows >= columns:
            block_rows = block_size(rows)
        else:
            block_columns = block_size(columns)
    check_rank(rank)
    strides = [_batch_strides(dims) for dims in (x, y)]
    blocks = [math.prod(batch), block_rows, block_columns]
    return [rows, columns, depth, *transposes, *blocks, rank, *batch, *strides[0], *strides[1]]


def _batch_strides(dims: tuple[int, ...]) -> list[int]:
    strides, step = [], 1
    for size in reversed(dims):
        strides.append(0 if size == 1 else step)
        step *= size
    return strides[::-1]


def aligned(nbytes: int) -> int:
    """`nbytes` rounded up to the alignment of tensors."""
    return -(-nbytes // 64) * 64


def matmul_native(node: KernelNode, parameters: list[int]) -> Native:
    """Returns the product kernel for the node's dtypes, with the workspace that it needs."""
    x, z = node.inputs[0].dtype.name, node.outputs[0].dtype.name
    kind = "half" if z in ("float16", "bfloat16") else "bytes" if x != z else z
    wide = [*node.inputs, *(node.outputs if kind == "half" else ())]
    if kind in ("half", "bytes"):
        node.workspace(64 + sum(aligned(v.size * 4) for v in wide))  # never empty: the kernel takes it for granted
    return native(f"matmul_{kind}", *parameters, reasons=(BEYOND_BLAS,))


def packed_native(node: KernelNode, rows: int, depth: int, columns: int, transposed: bool) -> Native | None:
    """Returns the product with the second operand packed once; None where that is not possible, or is slower.

    It is slower for few weights, which a near cache holds in any form, and for so many rows that packing in each run
    costs nothing.
    """
    weights, dtype, pairs = depth * columns, node.inputs[1].dtype, multiplies_pairs(node, depth)
    if isa() == "scalar" or weights < _PACKED_WEIGHTS or columns < WIDEST_LANES or not rows:
        return None
    if rows > _PACKED_ROWS and not pairs:
        return None
    image = 1, Window(1, 1, 1, 1, 1, 0), Window(rows, rows, 1, 1, 1, 0), (1, depth, columns)  # of one row of pixels
    kind = "_pairs" if pairs else ""
    pack = native(c_name(f"conv2d_pack{kind}", dtype), *conv_shape(*image))
    key, rows_of = MatrixKey(variant(pack), transposed, pairs), _columns_first if transposed else np.ascontiguousarray
    if not prepare_packed(node, 1, pack, columns, key, rows_of, pairs):
        return None
    narrow, nbytes = is_narrow(dtype), 4 if is_narrow(dtype) else dtype.itemsize
    copied = (0 if narrow else rows * depth // 2) if pairs else narrow * rows * depth
    offsets, total = region_offsets([nbytes * n for n in (copied, 0, narrow * rows * columns, 0, depth)])
    node.workspace(total)
    return native(c_name(f"conv2d_packed{kind}", dtype), *conv_shape(*image, False, offsets))


def _columns_first(x: np.ndarray) -> np.ndarray:
    """Returns the matrix whose transpose x is."""
    return np.ascontiguousarray(np.swapaxes(x, -1, -2))


def is_tiled(node: KernelNode) -> bool:
    """Returns whether csrc/linalg/panel_gemm.c computes products of the node's dtype here."""
    return built_isa() == "avx512" and node.outputs[0].dtype.name in ("float32", "float16", "bfloat16")


def _matmul(node: KernelNode) -> Native:
    rows, columns = node.outputs[0].shape
    swap_a, swap_b = node.attrs["transpose_a"], node.attrs["transpose_b"]
    depth = node.inputs[0].shape[0 if swap_a else 1]
    if not swap_a and _is_packable(node) and (packed := packed_native(node, rows, depth, columns, swap_b)):
        return packed
    swaps = int(swap_a), int(swap_b)
    return matmul_native(node, gemm_parameters(rows, columns, depth, swaps, (), (), is_tiled(node)))


def _batch_matmul(node: KernelNode) -> Native:
    x, y = (v.shape for v in node.inputs)
    rows, columns = node.outputs[0].shape[-2:]
    adjoint = 2 if node.inputs[0].dtype.kind == "c" else 1
    flags = adjoint * node.attrs["adj_x"], adjoint * node.attrs["adj_y"]
    depth = x[-2 if flags[0] else -1]
    if not flags[0] and _is_packable(node):
        packed = packed_native(node, rows * math.prod(x[:-2]), depth, columns, bool(flags[1]))
        if packed:
            return packed
    return matmul_native(node, gemm_parameters(rows, columns, depth, flags, x[:-2], y[:-2], is_tiled(node)))


def _is_packable(node: KernelNode) -> bool:
    """Returns whether there is one matrix on the right, all dtypes being one that csrc/conv packs."""
    x, y = node.inputs
    same = x.dtype == y.dtype == node.outputs[0].dtype
    return same and y.dtype.name in _PACKED_TYPES and math.prod(y.shape[:-2]) == 1


def _cross(node: KernelNode) -> Native:
    dtype = str(node.inputs[0].dtype).removeprefix("u")  # wrapping arithmetic is the same for unsigned integers
    return native(f"cross_{dtype}", node.inputs[0].size // 3)


_FLOATS = ("float32", "float64", "float16", "bfloat16", "complex64", "complex128")
_MATRIX_TYPES = (*_FLOATS, "int32", "int64")

KERNELS = [
    KernelDef("MatMul", "CPU", _matmul, {"T": _MATRIX_TYPES}),
    KernelDef("BatchMatMul", "CPU", _batch_matmul, {"T": _MATRIX_TYPES}),
    KernelDef("BatchMatMulV2", "CPU", _batch_matmul, {"T": (*_MATRIX_TYPES, "int16")}),
    KernelDef("Cross", "CPU", _cross, {"T": tuple(t.name for t in (*INTEGER, *FLOATING[:4]))}),
    *(
        KernelDef("BatchMatMulV3", "CPU", _batch_matmul, {"Ta": (x,), "Tb": (y,), "Tout": (z,)})
        for x, y, z in MIXED_TYPES
    ),
]
