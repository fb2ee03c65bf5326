"""`tf.*` functions of matrix decompositions, linear equations and determinants."""

from __future__ import annotations

from typing import Any

from timberframe.api.arrays import matrix_transpose
from timberframe.api.reduction import reduce_sum
from timberframe_core.dtypes import float64
from timberframe_core.graph.apply import apply_op, convert_to_tensor
from timberframe_core.graph.operation import Tensor

__all__ = [
    "cholesky",
    "cholesky_solve",
    "matrix_determinant",
    "matrix_inverse",
    "matrix_solve",
    "matrix_solve_ls",
    "matrix_triangular_solve",
    "qr",
    "self_adjoint_eig",
    "self_adjoint_eigvals",
    "svd",
]

NAMESPACES = {
    "linalg": (
        "adjoint", "cholesky", "cholesky_solve", "det", "eigh", "eigvalsh", "inv", "logdet", "lstsq", "qr",
        "slogdet", "solve", "svd", "triangular_solve",
    ),
}  # fmt: skip


def qr(input: Any, full_matrices: bool = False, name: str | None = None) -> list[Tensor]:
    """[q, r]: matrices as a product of orthonormal columns and upper triangular r; full_matrices makes q square."""
    parts: list[Tensor] = apply_op("Qr", [input], {"full_matrices": full_matrices}, name)
    return parts


def cholesky(input: Any, name: str | None = None) -> Tensor:
    """Returns the lower triangular factors of positive definite matrices, of which only the
    lower triangles are read.
    """
    result: Tensor = apply_op("Cholesky", [input], None, name)
    return result


def cholesky_solve(chol: Any, rhs: Any, name: str | None = None) -> Tensor:
    """Returns the x for which a x = rhs, where `chol` are the factors that `cholesky` gives of the matrices a."""
    lower = matrix_triangular_solve(chol, rhs)
    return matrix_triangular_solve(chol, lower, adjoint=True, name=name or "cholesky_solve")


def matrix_inverse(input: Any, adjoint: bool = False, name: str | None = None) -> Tensor:
    """Returns the inverses of the matrices, or of their adjoints; a singular one is an error."""
    result: Tensor = apply_op("MatrixInverse", [input], {"adjoint": adjoint}, name)
    return result


def matrix_solve(matrix: Any, rhs: Any, adjoint: bool = False, name: str | None = None) -> Tensor:
    """Returns the x for which matrix x = rhs, or the adjoint of matrix in its place; a singular matrix is an error."""
    result: Tensor = apply_op("MatrixSolve", [matrix, rhs], {"adjoint": adjoint}, name)
    return result


def matrix_solve_ls(
    matrix: Any, rhs: Any, l2_regularizer: Any = 0.0, fast: bool = True, name: str | None = None
) -> Tensor:
    """Returns the x of least |matrix x - rhs|^2 + l2_regularizer |x|^2; without `fast`,
    dependent columns are no error.
    """
    inputs = [matrix, rhs, convert_to_tensor(l2_regularizer, float64)]
    result: Tensor = apply_op("MatrixSolveLs", inputs, {"fast": fast}, name)
    return result


def matrix_triangular_solve(
    matrix: Any, rhs: Any, lower: bool = True, adjoint: bool = False, name: str | None = None
) -> Tensor:
    """Returns the x for which matrix x = rhs, reading one triangle of the matrices alone; batches broadcast."""
    result: Tensor = apply_op("MatrixTriangularSolve", [matrix, rhs], {"lower": lower, "adjoint": adjoint}, name)
    return result


def matrix_determinant(input: Any, name: str | None = None) -> Tensor:
    """Returns the determinants of the matrices."""
    result: Tensor = apply_op("MatrixDeterminant", [input], None, name)
    return result


def slogdet(input: Any, name: str | None = None) -> list[Tensor]:
    """[sign, log_abs_determinant]: the determinants as a sign and the logarithm of their modulus."""
    parts: list[Tensor] = apply_op("LogMatrixDeterminant", [input], None, name)
    return parts


def logdet(matrix: Any, name: str | None = None) -> Tensor:
    """Returns the logarithms of the determinants of self-adjoint positive definite matrices."""
    factor = cholesky(matrix)
    diagonal = apply_op("MatrixDiagPart", [factor])
    if diagonal.dtype.is_complex:
        diagonal = apply_op("Real", [diagonal], {"Tout": diagonal.dtype.real_dtype})
    total = reduce_sum(apply_op("Log", [diagonal]), [-1])
    result: Tensor = apply_op("Mul", [total, convert_to_tensor(2, total.dtype)], None, name or "logdet")
    return result


def self_adjoint_eig(tensor: Any, name: str | None = None) -> list[Tensor]:
    """[e, v]: eigenvalues in rising order and, in columns, eigenvectors; only the lower triangles are read."""
    parts: list[Tensor] = apply_op("SelfAdjointEigV2", [tensor], {"compute_v": True}, name)
    return parts


def self_adjoint_eigvals(tensor: Any, name: str | None = None) -> Tensor:
    """Returns the eigenvalues of self-adjoint matrices in rising order."""
    values: Tensor = apply_op("SelfAdjointEigV2", [tensor], {"compute_v": False}, name)[0]
    return values


def svd(tensor: Any, full_matrices: bool = False, compute_uv: bool = True, name: str | None = None) -> Any:
    """[s, u, v] with tensor = u s v*: values in falling order and vectors; s alone if not compute_uv."""
    attrs = {"compute_uv": compute_uv, "full_matrices": full_matrices}
    parts: list[Tensor] = apply_op("Svd", [tensor], attrs, name)
    return parts if compute_uv else parts[0]


def adjoint(matrix: Any, name: str | None = None) -> Tensor:
    """Returns the conjugate transposes of the matrices."""
    return matrix_transpose(matrix, name=name or "adjoint", conjugate=True)


det = matrix_determinant
eigh = self_adjoint_eig
eigvalsh = self_adjoint_eigvals
inv = matrix_inverse
lstsq = matrix_solve_ls
solve = matrix_solve
triangular_solve = matrix_triangular_solve
