"""Kernels of csrc/linalg/diagonal.c: diagonals and bands of matrices."""

from __future__ import annotations

import math

from timberframe.dtypes import NUMERIC
from timberframe.ops.diagonal import LEFT_LEFT, diagonal_range, packed_length
from timberframe.plugin.contracts import KernelDef, KernelNode
from timberframe_cpu.native import native
from timberframe_sdk.native import Native

_ALL = {"T": (*(t.name for t in NUMERIC), "bool")}
_DIAGONAL_TYPES = {"T": ("float16", "float32", "float64", "int32", "int64", "complex64", "complex128", "bfloat16")}
_BAND_REASONS = (
    "num_lower is {0} for {1} rows; it must be negative or at most that",
    "num_upper is {0} for {1} columns; it must be negative or at most that",
)


def _diagonals(node: KernelNode, prefix: str, matrices: tuple[int, ...], k: tuple[int, int], padded: bool) -> Native:
    rows, columns = matrices[-2:]
    sides = [side == "LEFT" for side in str(node.attrs.get("align", LEFT_LEFT)).split("_")]
    longest = packed_length(rows, columns, *k)
    bytes_ = node.outputs[0].dtype.itemsize
    return native(f"{prefix}_{bytes_}", math.prod(matrices[:-2]), rows, columns, *k, longest, *sides, padded)


def _matrix_diag_part(node: KernelNode) -> Native:
    padded = len(node.inputs) > 1
    return _diagonals(node, "matrix_diag_part", node.inputs[0].shape, _k(node, 1), padded)


def _matrix_diag(node: KernelNode) -> Native:
    padded = len(node.inputs) > 1
    return _diagonals(node, "matrix_diag", node.outputs[0].shape, _k(node, 1), padded)


def _matrix_set_diag(node: KernelNode) -> Native:
    return _diagonals(node, "matrix_set_diag", node.outputs[0].shape, _k(node, 2), False)


def _k(node: KernelNode, i: int) -> tuple[int, int]:
    return diagonal_range(node.const(i)) if len(node.inputs) > i else (0, 0)


def _diag(node: KernelNode) -> Native:
    size = node.inputs[0].size
    return _diagonals(node, "matrix_diag", (size, size), (0, 0), False)


def _diag_part(node: KernelNode) -> Native:
    size = node.outputs[0].size
    return _diagonals(node, "matrix_diag_part", (size, size), (0, 0), False)


def _band_part(node: KernelNode) -> Native:
    shape = node.inputs[0].shape
    name = f"matrix_band_part_{node.inputs[0].dtype.itemsize}"
    return native(name, math.prod(shape[:-1]), *shape[-2:], reasons=_BAND_REASONS)


KERNELS = [
    *(KernelDef(f"MatrixDiagPart{v}", "CPU", _matrix_diag_part, _ALL) for v in ("", "V2", "V3")),
    *(KernelDef(f"MatrixDiag{v}", "CPU", _matrix_diag, _ALL) for v in ("", "V2", "V3")),
    *(KernelDef(f"MatrixSetDiag{v}", "CPU", _matrix_set_diag, _ALL, inplace=((0, 0),)) for v in ("", "V2", "V3")),
    KernelDef("MatrixBandPart", "CPU", _band_part, _ALL, inplace=((0, 0),)),
    KernelDef("Diag", "CPU", _diag, _DIAGONAL_TYPES),
    KernelDef("DiagPart", "CPU", _diag_part, _DIAGONAL_TYPES),
]
