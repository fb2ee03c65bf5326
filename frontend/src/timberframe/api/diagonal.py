"""`tf.*` functions of the diagonals and bands of matrices."""

from __future__ import annotations

from typing import Any

from timberframe_core.graph.apply import apply_op, convert_to_tensor
from timberframe_core.graph.operation import Tensor

__all__ = ["matrix_band_part", "matrix_diag", "matrix_diag_part", "matrix_set_diag"]

NAMESPACES = {"linalg": ("band_part", "diag", "diag_part", "set_diag")}


def matrix_band_part(input: Any, num_lower: Any, num_upper: Any, name: str | None = None) -> Tensor:
    """Returns matrices with zeros outside a band of diagonals below and above the main one; a
    negative number means all.
    """
    result: Tensor = apply_op("MatrixBandPart", [input, num_lower, num_upper], None, name)
    return result


def matrix_diag(
    diagonal: Any,
    name: str | None = "diag",
    k: Any = 0,
    num_rows: Any = -1,
    num_cols: Any = -1,
    padding_value: Any = 0,
    align: str = "RIGHT_LEFT",
) -> Tensor:
    """Returns matrices with the given diagonals k and padding_value elsewhere."""
    x = convert_to_tensor(diagonal)
    padding = convert_to_tensor(padding_value, x.dtype.base_dtype)
    result: Tensor = apply_op("MatrixDiagV3", [x, k, num_rows, num_cols, padding], {"align": align}, name)
    return result


def matrix_diag_part(
    input: Any, name: str | None = "diag_part", k: Any = 0, padding_value: Any = 0, align: str = "RIGHT_LEFT"
) -> Tensor:
    """Returns the diagonals k of matrices, padded with padding_value to one length."""
    x = convert_to_tensor(input)
    padding = convert_to_tensor(padding_value, x.dtype.base_dtype)
    result: Tensor = apply_op("MatrixDiagPartV3", [x, k, padding], {"align": align}, name)
    return result


def matrix_set_diag(
    input: Any, diagonal: Any, name: str | None = "set_diag", k: Any = 0, align: str = "RIGHT_LEFT"
) -> Tensor:
    """Returns the matrices with their diagonals k replaced."""
    result: Tensor = apply_op("MatrixSetDiagV3", [input, diagonal, k], {"align": align}, name)
    return result


band_part = matrix_band_part
diag = matrix_diag
diag_part = matrix_diag_part
set_diag = matrix_set_diag
