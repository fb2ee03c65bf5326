"""Qr and Cholesky."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from timberframe_core.dtypes import int32
from timberframe_core.errors import InvalidArgumentError, UnimplementedError
from timberframe_core.ops.definition.accuracy import Bound, Residual
from timberframe_core.ops.definition.gradients import apply_op, constant, size_of
from timberframe_core.ops.definition.opdef import Attrs, InferenceContext, define_op
from timberframe_core.ops.definition.samples import Arg, ErrorSample, Sample
from timberframe_core.ops.definition.shape_functions import late_errors, merge_shapes
from timberframe_core.shapes import Shape, format_shape
from timberframe_ops.linalg.matrices import (
    COMPLEXES,
    REALS,
    SOURCE,
    SQUARES,
    TEST_RATIO,
    TYPES,
    adjoint,
    by_type,
    matrix_shape,
    norm,
    orthonormal,
    positive_definite,
    random_matrices,
    residual,
    square_shape,
)  # fmt: skip
from timberframe_ops.linalg.matrix_gradients import adjoint as graph_adjoint
from timberframe_ops.linalg.matrix_gradients import (
    columns,
    diagonal,
    diagonal_matrix,
    halved,
    matmul,
    real_part,
    triangle,
    with_diagonal,
)


def _qr_shape(c: InferenceContext) -> list[Shape]:
    shape = matrix_shape(c)
    if shape is None:
        return [None, None]
    batch, (rows, columns) = shape[:-2], shape[-2:]
    if c.attrs["full_matrices"]:
        return [(*batch, rows, rows), (*batch, rows, columns)]
    least = 0 if 0 in (rows, columns) else None if rows is None or columns is None else min(rows, columns)
    return [(*batch, rows, least), (*batch, least, columns)]


def _qr(attrs: Attrs, input: Any) -> tuple[Any, Any]:
    rows, columns = input.shape[-2:]
    if 0 not in input.shape:
        q, r = np.linalg.qr(input, "complete" if attrs["full_matrices"] else "reduced")
        return q, r
    least = rows if attrs["full_matrices"] else min(rows, columns)
    identity = np.broadcast_to(np.eye(rows, least, dtype=input.dtype), (*input.shape[:-2], rows, least))
    return identity, np.zeros((*input.shape[:-2], least, columns), input.dtype)


def _qr_laws(attrs: Attrs, inputs: Any, outputs: Any, u: float) -> Any:
    (a,), (q, r) = inputs, outputs
    return (
        residual("input - q r", a - q @ r, norm(a), u),
        orthonormal("q* q - 1", q, u),
        ("r below its diagonal", norm(np.tril(r, -1)), 0.0),
    )


_RECTANGLES = ((1, 1), (5, 3), (3, 5), (2, 4, 4), (2, 3, 7, 2), (0, 3), (3, 0), (0, 2, 2), (67, 35), (35, 67), (1, 5))


def _qr_samples() -> Iterator[Sample]:
    for full in (False, True):
        yield from by_type(random_matrices, _RECTANGLES, full_matrices=full)
    yield Sample([Arg(values=np.diag([2.0, -3.0, 0.0]))], {}, {"T": REALS})
    yield Sample([Arg(values=np.zeros((2, 3)))])


def _divided(x: Any, r: Any) -> Any:
    """x times the inverse adjoint of upper triangular r."""
    return graph_adjoint(apply_op("MatrixTriangularSolve", [r, graph_adjoint(x)], {"lower": False}))


def _tall_qr_gradient(q: Any, r: Any, q_grad: Any, r_grad: Any) -> Any:
    """Returns the gradient of matrices that are no wider than high.

    See D. Roberts and L. Roberts, "QR and LQ Decomposition Matrix Backpropagation Algorithms" (2020).
    """
    of_q, of_r = matmul(q, q_grad, adjoint_x=True), matmul(r, r_grad, adjoint_y=True)
    skew = of_q - graph_adjoint(of_q) + of_r - graph_adjoint(of_r)
    inside = matmul(q, r_grad + _divided(triangle(skew, lower=True), r))
    total = inside + _divided(q_grad - matmul(q, of_q), r)
    if not q.dtype.is_complex:
        return total
    turned = diagonal(of_r - graph_adjoint(of_q))
    phase = diagonal_matrix(turned - real_part(turned))
    return total + _divided(matmul(q, graph_adjoint(phase)), r)


def _qr_gradient(op: Any, q_grad: Any, r_grad: Any) -> list[Any]:
    """Returns the gradient: matrices that are wider than high are seen as [x, y]: x gives q, and y
    is q times the rest of r.
    """
    (a,), (q, r) = op.inputs, op.outputs
    shape = a.static_shape
    rows, cols = (None, None) if shape is None else shape[-2:]
    if op.attrs["full_matrices"] and (rows is None or cols is None or rows > cols):
        raise UnimplementedError(
            f"Qr '{op.name}': the gradient is requested of matrices {format_shape((rows, cols))} with full_matrices; "
            "they must be known to have no more rows than columns",
            op.name,
        )
    if rows is not None and cols is not None and rows >= cols:
        return [_tall_qr_gradient(q, r, q_grad, r_grad)]
    width = size_of(a, -2, -1)  # where it is no less than the number of columns, y and what comes of it are empty
    y, rest_grad = columns(a, width, None), columns(r_grad, width, None)
    inner = q_grad + matmul(y, rest_grad, adjoint_y=True)
    x_grad = _tall_qr_gradient(q, columns(r, None, width), inner, columns(r_grad, None, width))
    return [apply_op("ConcatV2", [[x_grad, matmul(q, rest_grad)], constant(-1, int32)])]


define_op(
    "Qr",
    inputs=["input: T"],
    outputs=["q: T", "r: T"],
    attrs=["full_matrices: bool = false", TYPES],
    doc=(
        "Matrices as q r, q having orthonormal columns and r being upper triangular; the sign of r's diagonal is free. "
        "With full_matrices q is square, else it has no more columns than are needed."
    ),
    shape=_qr_shape,
    reference=_qr,
    accuracy=Residual(_qr_laws, SOURCE),
    gradient=_qr_gradient,
    gradient_notes=("partly_refused",),
    samples=_qr_samples,
    errors=lambda: [ErrorSample([Arg((3,))], r"input 0 has shape \(3,\); it must have rank 2 or more")],
)


NOT_POSITIVE_DEFINITE = (
    "matrix {0} is not positive definite: it has no factor at row {1}; the input must be positive definite"
)


def _cholesky(attrs: Attrs, input: Any) -> Any:
    if 0 in input.shape:
        return input
    lower = np.tril(input, -1)
    diagonal = np.real(np.diagonal(input, axis1=-2, axis2=-1))[..., None] * np.eye(input.shape[-1])
    whole = lower + adjoint(lower) + diagonal
    try:
        return np.linalg.cholesky(whole)
    except np.linalg.LinAlgError:
        raise InvalidArgumentError(_without_factor(whole)) from None


def _without_factor(matrices: np.ndarray) -> str:
    """Returns the message for the first matrix that has no Cholesky factor."""
    found = ((i, k) for i, m in enumerate(matrices.reshape(-1, *matrices.shape[-2:])) for k in _rows_without_factor(m))
    return NOT_POSITIVE_DEFINITE.format(*next(found))


def _rows_without_factor(matrix: np.ndarray) -> Iterator[int]:
    """Yields the rows up to which the matrix has no factor, the first of them first."""
    for k in range(len(matrix)):
        try:
            np.linalg.cholesky(matrix[: k + 1, : k + 1])
        except np.linalg.LinAlgError:
            yield k


def _cholesky_laws(attrs: Attrs, inputs: Any, outputs: Any, u: float) -> Any:
    (a,), (lower,) = inputs, outputs
    wrong = np.tril(a - lower @ adjoint(lower))
    return residual("input - l l*", wrong, norm(a), u), ("l above its diagonal", norm(np.triu(lower, 1)), 0.0)


def _cholesky_samples() -> Iterator[Sample]:
    yield from by_type(positive_definite, SQUARES)
    above = positive_definite((4, 4)) + np.triu(np.full((4, 4), 1e3), 1)  # which is not read
    yield Sample([Arg(values=above)], {}, {"T": (*REALS, *COMPLEXES)})


def _cholesky_errors() -> Iterator[ErrorSample]:
    types = {"T": (*REALS, *COMPLEXES)}
    wrong = r"matrix 0 is not positive definite: .* row 1"
    yield ErrorSample([Arg(values=[[1.0, 2.0], [2.0, 1.0]])], wrong, types=types)
    batch = np.stack([np.eye(3), np.eye(3), np.diag([1.0, 1.0, 0.0])])
    yield ErrorSample([Arg(values=batch)], "matrix 2 is not positive definite: .* row 2", types=types)
    yield ErrorSample([Arg((2, 3))], r"input 0 has shape \(2, 3\); its matrices must be square")
    yield ErrorSample([Arg((3,))], "must have rank 2 or more")


def _cholesky_gradient(op: Any, grad: Any) -> list[Any]:
    """Returns the gradient of the self-adjoint matrix, both of whose triangles are taken to change alike."""
    lower = op.outputs[0]
    inverse = apply_op("MatrixTriangularSolve", [lower, diagonal_matrix(apply_op("OnesLike", [diagonal(lower)]))])
    middle = matmul(lower, grad, adjoint_x=True)
    middle = _half_lower(middle)
    gradient = matmul(matmul(inverse, middle, adjoint_x=True), inverse)
    return [halved(gradient + graph_adjoint(gradient))]


define_op(
    "Cholesky",
    inputs=["input: T"],
    outputs=["output: T"],
    attrs=[TYPES],
    doc="The lower triangular l with a positive diagonal for which l l* is the input; only its lower triangle is read.",
    shape=lambda c: [square_shape(c)],
    reference=_cholesky,
    accuracy=Residual(_cholesky_laws, SOURCE),
    gradient=_cholesky_gradient,
    gradient_notes=("both_triangles",),
    samples=_cholesky_samples,
    errors=_cholesky_errors,
)


def _mirrored(lower: Any) -> Any:
    return (lower + np.swapaxes(lower, -1, -2)) / 2


def _cholesky_grad(attrs: Attrs, factor: Any, grad: Any) -> Any:
    if 0 in factor.shape:
        return factor
    lower = np.tril(factor)
    middle = np.swapaxes(lower, -1, -2) @ np.tril(grad)
    middle = np.tril(middle) * (1 - 0.5 * np.eye(lower.shape[-1]))
    inverse = np.linalg.inv(lower)
    return _mirrored(np.swapaxes(inverse, -1, -2) @ middle @ inverse)


def _cholesky_grad_error(attrs: Attrs, inputs: Any, expected: Any, u: float) -> Any:
    """Returns two solves with l, and a product: each err relative to the condition of l
    (Higham, 2nd ed., section 8.1).
    """
    lower, grad = np.tril(inputs[0]), np.tril(inputs[1])
    if 0 in lower.shape:
        return np.zeros(expected.shape)
    inverse = np.linalg.inv(lower)
    size = norm(lower) * norm(inverse)
    error = TEST_RATIO * lower.shape[-1] * u * size**2 * norm(inverse) * norm(grad)
    return np.broadcast_to(error[..., None, None], expected.shape)


def _cholesky_grad_samples() -> Iterator[Sample]:
    for shape in SQUARES:
        lower = np.linalg.cholesky(positive_definite(shape)) if 0 not in shape else np.zeros(shape)
        yield Sample([Arg(values=lower), Arg(values=random_matrices(shape, False, 1))], types={"T": REALS})
    above = np.eye(3) * 2 + np.triu(np.full((3, 3), 1e3), 1)  # which is not read
    yield Sample([Arg(values=above), Arg(values=above)], types={"T": REALS})


def _cholesky_grad_gradient(op: Any, grad: Any) -> list[Any]:
    """With P, S and the output as in the kernel's formula: the same steps, taken back."""
    lower, given = triangle(op.inputs[0], lower=True), triangle(op.inputs[1], lower=True)
    gradient = halved(grad + graph_adjoint(grad))
    right = graph_adjoint(_solved(lower, graph_adjoint(gradient)))  # gradient l^-T
    inner = _half_lower(_solved(lower, right))
    product = triangle(matmul(lower, inner), lower=True)
    of_lower = matmul(given, inner, adjoint_y=True) - constant(2, grad.dtype) * matmul(op.outputs[0], right)
    return [triangle(of_lower, lower=True), product]


def _solved(lower: Any, x: Any) -> Any:
    return apply_op("MatrixTriangularSolve", [lower, x])


def _half_lower(x: Any) -> Any:
    """Returns the lower triangles with half of their diagonals."""
    return triangle(with_diagonal(x, halved(diagonal(x))), lower=True)


@late_errors
def _cholesky_grad_shape(c: InferenceContext) -> list[Shape]:
    return [merge_shapes(c, square_shape(c), square_shape(c, 1), "l and grad")]


define_op(
    "CholeskyGrad",
    inputs=["l: T", "grad: T"],
    outputs=["output: T"],
    attrs=["T: {half, float, double}"],
    doc="The gradient of a matrix from its Cholesky factor l and that of the factor; lower triangles are read.",
    shape=_cholesky_grad_shape,
    reference=_cholesky_grad,
    accuracy=Bound(_cholesky_grad_error, SOURCE),
    gradient=_cholesky_grad_gradient,
    samples=_cholesky_grad_samples,
    errors=lambda: [
        ErrorSample([Arg((2, 3)), Arg((2, 3))], r"input 0 has shape \(2, 3\); its matrices must be square"),
        ErrorSample([Arg((2, 2)), Arg((3, 3))], r"l and grad have shapes \(2, 2\) and \(3, 3\); they must be equal"),
    ],
)
