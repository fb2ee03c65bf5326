"""Kernels of csrc/linalg that stand on LAPACK: decompositions of matrices, one by one through a batch."""

from __future__ import annotations

import math
from collections.abc import Callable

from timberframe_cpu.native import native
from timberframe_ops.linalg.solvers import SINGULAR
from timberframe_sdk import KernelDef, KernelNode, UnimplementedError
from timberframe_sdk.native import Native

TYPES = ("float32", "float64", "complex64", "complex128")  # in the order of csrc/common/lapack.h
_REFUSED = "LAPACK refused argument {1} for matrix {0}; its arguments must be valid"
_BLOCK = 64  # columns that LAPACK works on at once; its workspace counts in them
_SLOTS, _SLOT_WORK, _SLOT_MEMORY = 32, 2**20, 2**28


def length(count: int) -> int:
    """Returns a number of elements as LAPACK takes the length of a workspace."""
    return min(max(count, 1), 2**31 - 1)


def matrix_kernel(
    node: KernelNode, name: str, fault: str, extra: list[int], workspace: int, work: int, *more: str
) -> Native:
    """Returns the kernel `name` for the node's matrices; see matrix_job in csrc/linalg/matrices.h.

    fault: message for a matrix at fault, {0} its number, {1} the row or column. extra: the parameters after the common
    ones. workspace: bytes that one matrix takes. work: operations that it costs, by which slots are counted. more:
    messages for the kernel's own reasons.
    """
    count = math.prod(node.outputs[0].shape[:-2] if node.op == "MatrixTriangularSolve" else node.inputs[0].shape[:-2])
    largest = max(d for v in node.inputs for d in (0, *v.shape[-2:]))
    if largest >= 2**31:
        raise UnimplementedError(f"matrices of {largest} rows or columns; LAPACK takes less than 2^31")
    slots = 1
    if count * work >= _SLOT_WORK:
        slots = max(1, min(count, _SLOTS, _SLOT_MEMORY // max(workspace, 1)))
    each = -(-max(workspace, 1) // 64) * 64
    node.workspace(slots * each)
    dtype = node.inputs[0].dtype.name
    number = TYPES.index("float32" if dtype == "float16" else dtype)
    return native(name, number, count, slots, each, *extra, reasons=(fault, _REFUSED, *more))


def _qr(node: KernelNode) -> Native:
    dtype, (rows, columns) = node.inputs[0].dtype, node.inputs[0].shape[-2:]
    half = dtype.name == "float16"  # computed in float32
    least, width = min(rows, columns), node.outputs[0].shape[-1]
    lwork = length(_BLOCK * max(rows, columns))
    elements = rows * columns + least + lwork + half * (rows * width + node.outputs[1].shape[-2] * columns)
    extra = [rows, columns, width, lwork, int(half)]
    workspace = elements * (4 if half else dtype.itemsize)
    return matrix_kernel(node, "qr", "", extra, workspace, 4 * rows * columns * rows)


def _cholesky(node: KernelNode) -> Native:
    from timberframe_ops.linalg.decompositions import NOT_POSITIVE_DEFINITE

    rows = node.inputs[0].shape[-1]
    return matrix_kernel(node, "cholesky", NOT_POSITIVE_DEFINITE, [rows], 0, rows**3)


def _factored(name: str, *attrs: str, fault: str = "") -> Callable[[KernelNode], Native]:
    """Returns the builder of a kernel of csrc/linalg/solve.c that factors square matrices;
    attrs: flags that it gets.
    """

    def build(node: KernelNode) -> Native:
        rows = node.inputs[0].shape[-1]
        columns = [v.shape[-1] for v in node.inputs[1:]]
        workspace = rows * rows * node.inputs[0].dtype.itemsize + rows * 4
        extra = [rows, *columns, *(int(node.attrs[a]) for a in attrs)]
        return matrix_kernel(node, name, fault, extra, workspace, rows * rows * (rows + sum(columns)))

    return build


def _inverse(node: KernelNode) -> Native:
    dtype, rows = node.inputs[0].dtype, node.inputs[0].shape[-1]
    half = dtype.name == "float16"  # computed in float32
    workspace = rows * 4 + rows * rows * (12 if half else dtype.itemsize)
    extra = [rows, int(node.attrs["adjoint"]), int(half)]
    return matrix_kernel(node, "matrix_inverse", SINGULAR, extra, workspace, 2 * rows**3)


def _triangular_solve(node: KernelNode) -> Native:
    a, b = (v.shape for v in node.inputs)
    rows, columns = node.outputs[0].shape[-2:]
    sizes = node.outputs[0].shape[:-2]
    strides = [x for dims in (a[:-2], b[:-2]) for x in _batch_strides(dims, len(sizes))]
    extra = [rows, columns, int(node.attrs["lower"]), int(node.attrs["adjoint"]), len(sizes), *sizes, *strides]
    return matrix_kernel(node, "matrix_triangular_solve", "", extra, 0, rows * rows * columns)


def _batch_strides(dims: tuple[int, ...], rank: int) -> list[int]:
    """In how many matrices a batch of these sizes moves on along each of `rank` dimensions."""
    strides, step = [], 1
    for size in reversed(dims):
        strides.append(0 if size == 1 else step)
        step *= size
    return [0] * (rank - len(dims)) + strides[::-1]


def _padded(nbytes: int) -> int:
    """`nbytes` and what aligns the next part of a workspace."""
    return nbytes + 16


def _cholesky_grad(node: KernelNode) -> Native:
    rows = node.inputs[0].shape[-1]
    workspace = 2 * rows * rows * node.inputs[0].dtype.itemsize
    return matrix_kernel(node, "cholesky_grad", "", [rows], workspace, 4 * rows**3)


def _solve_ls(node: KernelNode) -> Native:
    """Returns the length of LAPACK's work: as the documentation of gelsy asks, and what blocks
    take; 0 stands for `fast`.
    """
    from timberframe_ops.linalg.least_squares import DEPENDENT, NEGATIVE_REGULARIZER

    dtype, (rows, columns) = node.inputs[0].dtype, node.inputs[0].shape[-2:]
    wanted, least, most = node.inputs[1].shape[-1], min(rows, columns), max(rows, columns)
    lwork, elements = 0, least * (least + wanted)
    if not node.attrs["fast"]:
        lwork = length(3 * least + 3 * columns + 1 + wanted + _BLOCK * (columns + wanted + least))
        elements = rows * columns + most * wanted + lwork + 2 * columns
    extra = [rows, columns, wanted, lwork]
    workspace, work = elements * dtype.itemsize + columns * 4, most * least * (least + wanted)
    return matrix_kernel(node, "matrix_solve_ls", DEPENDENT, extra, workspace, work, NEGATIVE_REGULARIZER)


def _self_adjoint_eig(node: KernelNode) -> Native:
    """Returns lengths of workspaces: as the documentation of LAPACK's syevd and heevd asks, and what blocks take."""
    from timberframe_ops.linalg.spectral import NO_EIGENVALUES

    dtype, rows, vectors = node.inputs[0].dtype, node.inputs[0].shape[-1], node.attrs["compute_v"]
    real = dtype.itemsize // (2 if dtype.kind == "c" else 1)
    if dtype.kind == "c":
        lwork, lrwork = length(rows * rows + (2 + _BLOCK) * rows), length(1 + 5 * rows + 2 * rows * rows)
    else:
        lwork, lrwork = length(1 + (6 + _BLOCK) * rows + 2 * rows * rows), 0
    liwork = 3 + 5 * rows
    parts = rows * rows * dtype.itemsize, rows * real, lwork * dtype.itemsize, lrwork * real, liwork * 4
    extra = [rows, int(vectors), lwork, lrwork, liwork]
    return matrix_kernel(node, "self_adjoint_eig", NO_EIGENVALUES, extra, sum(map(_padded, parts)), 10 * rows**3)


def _svd(node: KernelNode) -> Native:
    """Returns lengths of workspaces: as the documentation of LAPACK's gesdd asks, and what blocks take."""
    dtype, (rows, columns) = node.inputs[0].dtype, node.inputs[0].shape[-2:]
    vectors, full = node.attrs["compute_uv"], node.attrs["full_matrices"]
    real = dtype.itemsize // (2 if dtype.kind == "c" else 1)
    least, most = min(rows, columns), max(rows, columns)
    lwork = length(4 * least * least + 7 * least + most + _BLOCK * (least + most))
    lrwork = length(max(5 * least * (least + 1), 2 * most * least + 2 * least * least + least, 7 * least))
    lrwork = lrwork if dtype.kind == "c" else 0
    right = columns * (columns if full else least) if vectors else 0
    elements = (rows * columns, right, lwork)
    parts = *(e * dtype.itemsize for e in elements), least * real, lrwork * real, 8 * least * 4
    fault = "matrix {0} has no singular values that could be found; its elements must be finite"
    extra = [rows, columns, int(vectors), int(full), lwork, lrwork]
    return matrix_kernel(node, "svd", fault, extra, sum(map(_padded, parts)), 20 * rows * columns * least)


KERNELS = [
    KernelDef("Qr", "CPU", _qr, {"T": (*TYPES, "float16")}),
    KernelDef("Cholesky", "CPU", _cholesky, {"T": TYPES}, inplace=((0, 0),)),
    KernelDef(
        "MatrixSolve", "CPU", _factored("matrix_solve", "adjoint", fault=SINGULAR), {"T": TYPES}, inplace=((0, 1),)
    ),
    KernelDef("MatrixInverse", "CPU", _inverse, {"T": (*TYPES, "float16")}),
    KernelDef("MatrixDeterminant", "CPU", _factored("matrix_determinant"), {"T": TYPES}),
    KernelDef("LogMatrixDeterminant", "CPU", _factored("log_matrix_determinant"), {"T": TYPES}),
    KernelDef("MatrixTriangularSolve", "CPU", _triangular_solve, {"T": TYPES}),
    KernelDef("CholeskyGrad", "CPU", _cholesky_grad, {"T": TYPES[:2]}),
    KernelDef("MatrixSolveLs", "CPU", _solve_ls, {"T": TYPES}),
    KernelDef("SelfAdjointEigV2", "CPU", _self_adjoint_eig, {"T": TYPES}),
    KernelDef("Svd", "CPU", _svd, {"T": TYPES}),
]
