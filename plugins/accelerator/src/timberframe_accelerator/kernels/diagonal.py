"""Accelerator kernels of diagonals and bands of matrices."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from timberframe_accelerator.kernels.indexing import FIXED_SIZE, bits_name
from timberframe_accelerator.launches import Source, failing, index_name, index_type, spread_rows
from timberframe_sdk import InvalidArgumentError, KernelDef, KernelNode, Launcher
from timberframe_sdk.declare import kernel
from timberframe_sdk.plans.diagonals import DIAGONAL_TYPES, diagonals

KERNELS: list[KernelDef] = []

_ALL = {"T": FIXED_SIZE}
_SOME = {"T": tuple(t for t in DIAGONAL_TYPES if not t.startswith("complex"))}
_VERSIONS = ("", "V2", "V3")


class _Matrices:
    """What the kernels of a node share: the function, count and sizes."""

    def __init__(self, node: KernelNode, name: str) -> None:
        device: Any = node.device
        _, rows, columns, lower, upper, longest, *sides = diagonals(node)
        sizes = [v.size for v in (node.inputs[0], node.outputs[0])]
        source = Source.file("diagonal.h", T=bits_name(node.outputs[0].dtype), INDEX=index_name(*sizes), TINDEX="int32")
        self.function = device.function(source, name)
        index, self.size = index_type(*sizes), node.outputs[0].size
        length = max(longest if name == "tf_matrix_diag_part" else columns, 1)
        numbers = [index(n) for n in (self.size // length, rows, columns, lower, upper, longest)]
        self.numbers = *numbers, *(np.int32(s) for s in sides)
        self.items, self.group = spread_rows(length, self.size // length)

    def __call__(self, *arguments: Any) -> None:
        if self.size:
            self.function(self.items, self.group, *arguments, *self.numbers)


@kernel(KERNELS, [f"MatrixDiagPart{v}" for v in _VERSIONS], "", types=_ALL)
@kernel(KERNELS, "DiagPart", "", types=_SOME)
def matrix_diag_part(node: KernelNode) -> Launcher:
    """Diagonals as rows, with padding where they are shorter than the longest."""
    run, padded = _Matrices(node, "tf_matrix_diag_part"), np.int32(len(node.inputs) > 1)
    return lambda x, *rest: run(x, rest[0], padded, rest[-1])


@kernel(KERNELS, [f"MatrixDiag{v}" for v in _VERSIONS], "", types=_ALL)
@kernel(KERNELS, "Diag", "", types=_SOME)
def matrix_diag(node: KernelNode) -> Launcher:
    """Matrices with these diagonals, and padding elsewhere."""
    run, padded, whole = _Matrices(node, "tf_matrix_diag"), np.int32(len(node.inputs) > 1), np.int32(0)
    return lambda x, *rest: run(x, rest[0], padded, whole, rest[-1])


@kernel(KERNELS, [f"MatrixSetDiag{v}" for v in _VERSIONS], "", types=_ALL, inplace=((0, 0),))
def matrix_set_diag(node: KernelNode) -> Launcher:
    """The matrices, with these diagonals."""
    run, padded, whole = _Matrices(node, "tf_matrix_diag"), np.int32(0), np.int32(1)
    return lambda x, packed, out: run(packed, x, padded, whole, out)


@kernel(KERNELS, "MatrixBandPart", "", types=_ALL, inplace=((0, 0),), status=True)
def band_part(node: KernelNode) -> Launcher:
    """Zeros outside a band of each matrix."""
    from timberframe_ops.array.band import BAND_TOO_WIDE

    device: Any = node.device
    x, index = node.inputs[0], index_type(node.inputs[0].size)
    types = {"T": bits_name(x.dtype), "TINDEX": node.inputs[1].dtype.name, "INDEX": index_name(x.size)}
    function = device.function(Source.file("diagonal.h", **types), "tf_matrix_band_part")
    lines, number = math.prod(x.shape[:-1]), node.number
    (items, group), sizes = spread_rows(x.shape[-1], lines), [index(n) for n in (lines, *x.shape[-2:])]

    def launch(*arrays: Any) -> None:
        *tensors, status = arrays
        function(items, group, *tensors, *sizes, status, number)

    return failing(launch, *((InvalidArgumentError, message) for message in BAND_TOO_WIDE))
