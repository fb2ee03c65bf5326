"""Kernels of csrc/linalg that stand on LAPACK: decompositions of matrices, one by one through a batch."""

from __future__ import annotations

import math

from timberframe.plugin.contracts import KernelDef, KernelNode
from timberframe_cpu.native import native
from timberframe_sdk.native import Native

TYPES = ("float32", "float64", "complex64", "complex128")  # in the order of csrc/common/lapack.h
_REFUSED = "LAPACK refused argument {1} for matrix {0}; its arguments must be valid"
_BLOCK = 64  # columns that LAPACK works on at once; its workspace counts in them
_SLOTS, _SLOT_WORK, _SLOT_MEMORY = 32, 2**20, 2**28


def length(count: int) -> int:
    """A number of elements as LAPACK takes the length of a workspace."""
    return min(max(count, 1), 2**31 - 1)


def matrix_kernel(node: KernelNode, name: str, fault: str, extra: list[int], workspace: int, work: int) -> Native:
    """The kernel `name` for the node's matrices; see matrix_job in csrc/linalg/matrices.h.

    fault: words for a matrix at fault, {0} its number, {1} the row or column. extra: the parameters behind the common
    ones. workspace: bytes that one matrix takes. work: operations that it costs, by which slots are counted.
    """
    count = math.prod(node.inputs[0].shape[:-2])
    slots = 1
    if count * work >= _SLOT_WORK:
        slots = max(1, min(count, _SLOTS, _SLOT_MEMORY // max(workspace, 1)))
    each = -(-max(workspace, 1) // 64) * 64
    node.workspace(slots * each)
    number = TYPES.index(node.inputs[0].dtype.name)
    return native(name, number, count, slots, each, *extra, reasons=(fault, _REFUSED))


def _qr(node: KernelNode) -> Native:
    rows, columns = node.inputs[0].shape[-2:]
    least = min(rows, columns)
    lwork = length(_BLOCK * max(rows, columns))
    elements = rows * columns + least + lwork
    extra = [rows, columns, node.outputs[0].shape[-1], lwork]
    return matrix_kernel(node, "qr", "", extra, elements * node.inputs[0].dtype.itemsize, 4 * rows * columns * rows)


def _cholesky(node: KernelNode) -> Native:
    rows = node.inputs[0].shape[-1]
    fault = "matrix {0} is not positive definite: it has no factor at row {1}; the input must be positive definite"
    return matrix_kernel(node, "cholesky", fault, [rows], 0, rows**3)


KERNELS = [
    KernelDef("Qr", "CPU", _qr, {"T": TYPES}),
    KernelDef("Cholesky", "CPU", _cholesky, {"T": TYPES}, inplace=((0, 0),)),
]
