"""`tf.*` functions of matrix decompositions."""

from __future__ import annotations

from typing import Any

from timberframe.graph.apply import apply_op
from timberframe.graph.operation import Tensor

__all__ = ["cholesky", "qr"]

NAMESPACES = {"linalg": ("cholesky", "qr")}


def qr(input: Any, full_matrices: bool = False, name: str | None = None) -> list[Tensor]:
    """[q, r]: matrices as a product of orthonormal columns and upper triangular r; full_matrices makes q square."""
    parts: list[Tensor] = apply_op("Qr", [input], {"full_matrices": full_matrices}, name)
    return parts


def cholesky(input: Any, name: str | None = None) -> Tensor:
    """The lower triangular factors of positive definite matrices, of which only the lower triangles are read."""
    result: Tensor = apply_op("Cholesky", [input], None, name)
    return result
