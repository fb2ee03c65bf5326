"""Linear equations: MatrixSolve, MatrixTriangularSolve and MatrixInverse."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from timberframe_core.errors import InvalidArgumentError
from timberframe_core.ops.definition.accuracy import Residual
from timberframe_core.ops.definition.gradients import apply_op, sum_to_shape
from timberframe_core.ops.definition.opdef import Attrs, InferenceContext, define_op
from timberframe_core.ops.definition.samples import Arg, ErrorSample, Sample
from timberframe_core.ops.definition.shape_functions import broadcast_pair, merge_shapes
from timberframe_core.shapes import Shape, StaticShape, format_shape
from timberframe_ops.linalg.matrices import (
    COMPLEXES,
    REALS,
    SOURCE,
    SQUARES,
    TYPES,
    adjoint,
    by_type,
    norm,
    random_matrices,
    residual,
    square_shape,
    well_conditioned,
)
from timberframe_ops.linalg.matrix_gradients import matmul, triangle

_ALL = {"T": (*REALS, *COMPLEXES)}
SINGULAR = "matrix {0} is singular: its pivot {1} is zero; it must be invertible"


def _singular(matrices: np.ndarray) -> str:
    """Returns the message for the first matrix that has no inverse."""
    for i, matrix in enumerate(matrices.reshape(-1, *matrices.shape[-2:])):
        try:
            np.linalg.inv(matrix)
        except np.linalg.LinAlgError:
            return SINGULAR.format(i, _zero_pivot(matrix))
    return "a matrix is singular; it must be invertible"


def _zero_pivot(matrix: np.ndarray) -> int:
    """Returns which pivot of the elimination with row exchanges is zero."""
    rows = np.array(matrix)
    for k in range(len(rows)):
        best = k + int(np.argmax(np.abs(rows[k:, k])))
        if rows[best, k] == 0:
            return k
        rows[[k, best]] = rows[[best, k]]
        rows[k + 1 :] -= np.outer(rows[k + 1 :, k] / rows[k, k], rows[k])
    return len(rows) - 1


def _solved(attrs: Attrs, matrix: Any, rhs: Any) -> Any:
    if 0 in matrix.shape or 0 in rhs.shape:
        return np.zeros((*np.broadcast_shapes(matrix.shape[:-2], rhs.shape[:-2]), *rhs.shape[-2:]), rhs.dtype)
    try:
        return np.linalg.solve(adjoint(matrix) if attrs["adjoint"] else matrix, rhs)
    except np.linalg.LinAlgError:
        raise InvalidArgumentError(_singular(np.asarray(matrix))) from None


def _solve_shape(c: InferenceContext) -> list[Shape]:
    a, b = square_shape(c), _rhs_shape(c)
    if a is None or b is None:
        return [b]
    batch = merge_shapes(c, a[:-2], b[:-2], "the batch dimensions")
    return [None if batch is None else (*batch, *b[-2:])]


def _rhs_shape(c: InferenceContext) -> Shape:
    """Returns the shape of the right-hand sides, which must have as many rows as the matrices."""
    a, b = c.shapes[0], c.shapes[1]
    if b is not None and len(b) < 2:
        raise c.error(f"rhs has shape {format_shape(b)}; it must have rank 2 or more")
    if a is not None and b is not None and None not in (a[-1], b[-2]) and a[-1] != b[-2]:
        raise c.error(
            f"matrix has shape {format_shape(a)} and rhs {format_shape(b)}; rhs must have {a[-1]} rows, one for each "
            "of the matrix"
        )
    return b


def _solve_laws(attrs: Attrs, inputs: Any, outputs: Any, u: float) -> Any:
    a, b = inputs
    a = adjoint(a) if attrs["adjoint"] else a
    scale = norm(a) * norm(outputs[0]) + norm(b)
    return (residual("rhs - matrix x", b - a @ outputs[0], scale, u),)


def _pairs(shapes: Any, make: Any, **attrs: Any) -> Iterator[Sample]:
    for i, shape in enumerate(shapes):
        rhs = (*shape[:-1], (3, 1, 0, 70)[i % 4])
        for complex_, types in ((False, REALS), (True, COMPLEXES)):
            inputs = [Arg(values=make(shape, complex_)), Arg(values=random_matrices(rhs, complex_, 1))]
            yield Sample(inputs, attrs, {"T": types})


def _solve_samples() -> Iterator[Sample]:
    yield from _pairs(SQUARES, well_conditioned)
    yield from _pairs(((2, 2), (3, 4, 4)), well_conditioned, adjoint=True)


def _solve_errors() -> Iterator[ErrorSample]:
    singular = np.stack([np.eye(2), [[1.0, 2.0], [2.0, 4.0]]])
    match = r"matrix 1 is singular: its pivot 1 is zero; it must be invertible"
    yield ErrorSample([Arg(values=singular), Arg((2, 2, 1), special=False)], match, types=_ALL)
    yield ErrorSample([Arg((2, 3)), Arg((2, 1))], r"input 0 has shape \(2, 3\); its matrices must be square")
    yield ErrorSample([Arg((2, 2)), Arg((3, 1))], r"matrix has shape \(2, 2\) and rhs \(3, 1\); rhs must have 2 rows")
    yield ErrorSample([Arg((2, 2)), Arg((2,))], r"rhs has shape \(2,\); it must have rank 2 or more")
    yield ErrorSample([Arg((3, 2, 2)), Arg((2, 2, 1))], r"batch dimensions have shapes \(3,\) and \(2,\)")


def _adjoint_gradient(op: Any, solved: Any) -> Any:
    """Returns the gradient of the matrix of an equation, from that of its right-hand side."""
    x = op.outputs[0]
    left, right = (x, solved) if op.attrs["adjoint"] else (solved, x)
    return apply_op("Neg", [matmul(left, right, adjoint_y=True)])


def _solve_gradient(op: Any, grad: Any) -> list[Any]:
    solved = apply_op("MatrixSolve", [op.inputs[0], grad], {"adjoint": not op.attrs["adjoint"]})
    return [_adjoint_gradient(op, solved), solved]


define_op(
    "MatrixSolve",
    inputs=["matrix: T", "rhs: T"],
    outputs=["output: T"],
    attrs=["adjoint: bool = false", TYPES],
    doc="The x for which matrix x = rhs, by matrix; with `adjoint` the matrices' conjugate transposes are meant.",
    shape=_solve_shape,
    reference=_solved,
    accuracy=Residual(_solve_laws, SOURCE),
    gradient=_solve_gradient,
    samples=_solve_samples,
    errors=_solve_errors,
)


def _triangular_shape(c: InferenceContext) -> list[Shape]:
    a, b = square_shape(c), _rhs_shape(c)
    if a is None or b is None:
        return [None]
    batch = broadcast_pair(c, a[:-2], b[:-2])
    return [None if batch is None else (*batch, *b[-2:])]


def _operand(attrs: Attrs, matrix: Any) -> Any:
    """Returns the triangle of the matrices that is read, or its adjoint."""
    part = np.tril(matrix) if attrs["lower"] else np.triu(matrix)
    return adjoint(part) if attrs["adjoint"] else part


def _triangular(attrs: Attrs, matrix: Any, rhs: Any) -> Any:
    return _solved({"adjoint": False}, _operand(attrs, matrix), rhs)


def _triangular_laws(attrs: Attrs, inputs: Any, outputs: Any, u: float) -> Any:
    return _solve_laws({"adjoint": False}, (_operand(attrs, inputs[0]), inputs[1]), outputs, u)


_BROADCASTS: tuple[tuple[StaticShape, StaticShape], ...] = (
    ((2, 2), (3, 2, 1)),
    ((3, 2, 2), (2, 4)),
    ((2, 1, 3, 3), (4, 3, 2)),
    ((1, 2, 2), (5, 2, 2)),
)


def _dominant(shape: StaticShape, complex_: bool) -> np.ndarray:
    result: np.ndarray = random_matrices(shape, complex_) + 2 * shape[-1] * np.eye(shape[-1])
    return result


def _triangular_samples() -> Iterator[Sample]:
    for lower in (True, False):
        for swapped in (False, True):
            shapes = SQUARES if lower is swapped else ((2, 2), (3, 4, 4))
            yield from _pairs(shapes, _dominant, lower=lower, adjoint=swapped)
    for first, second in _BROADCASTS:
        for complex_, types in ((False, REALS), (True, COMPLEXES)):
            pair = [Arg(values=_dominant(first, complex_)), Arg(values=random_matrices(second, complex_, 1))]
            yield Sample(pair, types={"T": types})


def _triangular_errors() -> Iterator[ErrorSample]:
    yield ErrorSample([Arg((2, 3)), Arg((2, 1))], r"input 0 has shape \(2, 3\); its matrices must be square")
    yield ErrorSample([Arg((2, 2)), Arg((3, 1))], r"rhs \(3, 1\); rhs must have 2 rows")
    yield ErrorSample([Arg((2, 2)), Arg((2,))], r"rhs has shape \(2,\); it must have rank 2 or more")
    yield ErrorSample([Arg((3, 2, 2)), Arg((2, 2, 1))], r"shapes \(3,\) and \(2,\) do not broadcast")


def _triangular_gradient(op: Any, grad: Any) -> list[Any]:
    matrix, rhs = op.inputs
    lower = op.attrs["lower"]
    attrs = {"lower": lower, "adjoint": not op.attrs["adjoint"]}
    solved = apply_op("MatrixTriangularSolve", [matrix, grad], attrs)
    gradient = triangle(_adjoint_gradient(op, solved), lower)
    return [sum_to_shape(gradient, matrix), sum_to_shape(solved, rhs)]


define_op(
    "MatrixTriangularSolve",
    inputs=["matrix: T", "rhs: T"],
    outputs=["output: T"],
    attrs=["lower: bool = true", "adjoint: bool = false", TYPES.replace("{", "{bfloat16, ")],
    doc=(
        "The x for which matrix x = rhs, of whose matrices the lower (or upper) triangle is read; with `adjoint` its "
        "conjugate transpose is meant. Batch dimensions broadcast. Zeros on the diagonal give what division gives."
    ),
    shape=_triangular_shape,
    reference=_triangular,
    accuracy=Residual(_triangular_laws, SOURCE),
    gradient=_triangular_gradient,
    samples=_triangular_samples,
    errors=_triangular_errors,
)


def _inverse(attrs: Attrs, input: Any) -> Any:
    identity = np.broadcast_to(np.eye(input.shape[-1], dtype=input.dtype), input.shape)
    return _solved(attrs, input, identity)


def _inverse_laws(attrs: Attrs, inputs: Any, outputs: Any, u: float) -> Any:
    a = adjoint(inputs[0]) if attrs["adjoint"] else inputs[0]
    x = outputs[0]
    return (residual("matrix x - 1", a @ x - np.eye(a.shape[-1]), norm(a) * norm(x), u),)


def _inverse_samples() -> Iterator[Sample]:
    yield from by_type(well_conditioned, SQUARES)
    yield from by_type(well_conditioned, ((3, 3), (2, 4, 4)), adjoint=True)


def _inverse_errors() -> Iterator[ErrorSample]:
    match = r"matrix 0 is singular: its pivot 1 is zero; it must be invertible"
    yield ErrorSample([Arg(values=[[1.0, 2.0], [2.0, 4.0]])], match, types=_ALL)
    yield ErrorSample([Arg((2, 3))], r"input 0 has shape \(2, 3\); its matrices must be square")
    yield ErrorSample([Arg((3,))], "must have rank 2 or more")


def _inverse_gradient(op: Any, grad: Any) -> list[Any]:
    inverse, swapped = op.outputs[0], op.attrs["adjoint"]
    inner = matmul(grad, inverse, swapped, not swapped)
    return [apply_op("Neg", [matmul(inverse, inner, not swapped)])]


define_op(
    "MatrixInverse",
    inputs=["input: T"],
    outputs=["output: T"],
    attrs=["adjoint: bool = false", TYPES],
    doc="The inverses of the matrices; with `adjoint` those of their conjugate transposes.",
    shape=lambda c: [square_shape(c)],
    reference=_inverse,
    accuracy=Residual(_inverse_laws, SOURCE),
    gradient=_inverse_gradient,
    samples=_inverse_samples,
    errors=_inverse_errors,
)
