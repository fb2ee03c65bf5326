"""Parameters of the kernels of diagonals and bands of matrices."""

from __future__ import annotations

import math
from typing import NamedTuple

from timberframe_core.plugin.contracts import KernelNode

DIAGONAL_TYPES = ("float16", "float32", "float64", "int32", "int64", "complex64", "complex128", "bfloat16")
"""What Diag and DiagPart take."""


class Diagonals(NamedTuple):
    """Diagonals `lower` to `upper` of `batch` matrices, packed as one row of `longest` positions for each.

    left_above, left_below: whether diagonals above and below the main one fill their row from the left; the main one
    does if either says so.
    """

    batch: int
    rows: int
    columns: int
    lower: int
    upper: int
    longest: int
    left_above: bool
    left_below: bool


def diagonals(node: KernelNode) -> Diagonals:
    """Returns the diagonals that a node reads or writes."""
    from timberframe_ops.array.diagonal import LEFT_LEFT, diagonal_range, packed_length

    if node.op in ("Diag", "DiagPart"):
        size = node.inputs[0].size if node.op == "Diag" else node.outputs[0].size
        return Diagonals(1, size, size, 0, 0, size, True, True)
    matrices = (node.inputs if node.op.startswith("MatrixDiagPart") else node.outputs)[0].shape
    index = 2 if node.op.startswith("MatrixSetDiag") else 1
    k = diagonal_range(node.const(index)) if len(node.inputs) > index else (0, 0)
    above, below = (side == "LEFT" for side in str(node.attrs.get("align", LEFT_LEFT)).split("_"))
    rows, columns = matrices[-2:]
    return Diagonals(math.prod(matrices[:-2]), rows, columns, *k, packed_length(rows, columns, *k), above, below)
