"""What the gradients of matrix decompositions are made of; batches of any rank, also where it is unknown.

The formulas are those of M. Giles, "An extended collection of matrix derivative results" (2008), in the conventions of
`timberframe_core.ops.definition.gradients`.
"""

from __future__ import annotations

from typing import Any

from timberframe_core.dtypes import int32
from timberframe_core.ops.definition.gradients import apply_op, constant, zeros_like


def matmul(x: Any, y: Any, adjoint_x: bool = False, adjoint_y: bool = False) -> Any:
    """Returns the products of the matrices, or of their adjoints."""
    return apply_op("BatchMatMulV2", [x, y], {"adj_x": adjoint_x, "adj_y": adjoint_y})


def adjoint(x: Any) -> Any:
    """Returns the conjugate transposes of the matrices."""
    op = "ConjugateTranspose" if x.dtype.is_complex else "Transpose"
    if x.static_shape is not None:
        rank = len(x.static_shape)
        return apply_op(op, [x, constant([*range(rank - 2), rank - 1, rank - 2], int32)])
    rank = apply_op("Rank", [x])
    first = apply_op("Range", [constant(0, int32), rank - 2, constant(1, int32)])
    last = constant([rank - 1, rank - 2], int32)
    return apply_op(op, [x, apply_op("ConcatV2", [[first, last], constant(0, int32)])])


def diagonal(x: Any) -> Any:
    """Returns the main diagonals of the matrices."""
    return apply_op("MatrixDiagPart", [x])


def diagonal_matrix(x: Any) -> Any:
    """Square matrices with these diagonals."""
    return apply_op("MatrixDiag", [x])


def with_diagonal(x: Any, values: Any) -> Any:
    """Returns the matrices with their diagonals replaced."""
    return apply_op("MatrixSetDiag", [x, values])


def triangle(x: Any, lower: bool) -> Any:
    """Returns the lower or upper triangles of the matrices, diagonal included, and zeros elsewhere."""
    spans = (-1, 0) if lower else (0, -1)
    return apply_op("MatrixBandPart", [x, *(constant(n, int32) for n in spans)])


def scalars(x: Any) -> Any:
    """Returns one number for each matrix, in a shape that broadcasts against the matrices."""
    for _ in range(2):
        x = apply_op("ExpandDims", [x, constant(-1, int32)])
    return x


def halved(x: Any) -> Any:
    """Returns half of x."""
    return x * constant(0.5, x.dtype)


def real_part(x: Any) -> Any:
    """x without its imaginary part, in the same dtype."""
    if not x.dtype.is_complex:
        return x
    return apply_op("Cast", [apply_op("Real", [x], {"Tout": x.dtype.real_dtype})], {"DstT": x.dtype})


def differences_inverted(x: Any) -> Any:
    """Returns the matrices 1 / (x[j] - x[i]), with zeros on the diagonal.

    Equal elements give zero and not infinity: d / (d^2 + 1e-20) stands for the inverse, as in TensorFlow.
    """
    across = apply_op("ExpandDims", [x, constant(-2, int32)]) - apply_op("ExpandDims", [x, constant(-1, int32)])
    return with_diagonal(inverted(across), zeros_like(x))


def inverted(x: Any) -> Any:
    """x / (x^2 + 1e-20), which is 1 / x but for the smallest x."""
    return x * apply_op("Reciprocal", [x * x + constant(1e-20, x.dtype)])


def columns(x: Any, begin: Any, end: Any) -> Any:
    """Returns the columns of the matrices from begin up to end; None means from the first, up to the last."""
    attrs = {"ellipsis_mask": 1, "begin_mask": 2 * (begin is None), "end_mask": 2 * (end is None)}
    spans = [constant([0, 0 if n is None else n], int32) for n in (begin, end)]
    return apply_op("StridedSlice", [x, *spans, constant([1, 1], int32)], attrs)
