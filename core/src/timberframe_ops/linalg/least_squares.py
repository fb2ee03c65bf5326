"""MatrixSolveLs: least squares."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from timberframe_core.dtypes import int32
from timberframe_core.errors import InvalidArgumentError, UnimplementedError
from timberframe_core.ops.definition.accuracy import Bound
from timberframe_core.ops.definition.gradients import apply_op, constant, indicator, size_of
from timberframe_core.ops.definition.opdef import Attrs, InferenceContext, define_op
from timberframe_core.ops.definition.samples import Arg, ErrorSample, Sample
from timberframe_core.ops.definition.shape_functions import merge_shapes
from timberframe_core.shapes import Shape, StaticShape, format_shape
from timberframe_ops.linalg.matrices import (
    COMPLEXES,
    REALS,
    SOURCE,
    TEST_RATIO,
    TYPES,
    adjoint,
    matrix_shape,
    norm,
    random_matrices,
)
from timberframe_ops.linalg.matrix_gradients import adjoint as graph_adjoint
from timberframe_ops.linalg.matrix_gradients import diagonal, diagonal_matrix, matmul

NEGATIVE_REGULARIZER = "l2_regularizer is negative; it must be zero or more"
DEPENDENT = "matrix {0} has dependent columns or rows, or nearly so; fast=False or a larger l2_regularizer is required"

_ALL = {"T": (*REALS, *COMPLEXES)}


def _shape(c: InferenceContext) -> list[Shape]:
    a, b = matrix_shape(c), matrix_shape(c, 1)
    c.require_rank(2, 0)
    value = c.value(2)
    if value is not None and float(value) < 0:
        raise c.error(NEGATIVE_REGULARIZER)
    if a is None or b is None:
        return [None]
    if None not in (a[-2], b[-2]) and a[-2] != b[-2]:
        raise c.error(f"matrix has shape {format_shape(a)} and rhs {format_shape(b)}; both must have as many rows")
    batch = merge_shapes(c, a[:-2], b[:-2], "the batch dimensions")
    return [None if batch is None else (*batch, a[-1], b[-1])]


def _parts(matrix: Any) -> tuple[Any, Any, Any, Any]:
    """Singular vectors and values of the matrices, and which values are not zero but for rounding."""
    u, s, vh = np.linalg.svd(matrix, full_matrices=False)
    limit = np.finfo(np.float64).eps * max(matrix.shape[-2:]) * s[..., :1]
    return u, s, vh, s > limit


def _solve(attrs: Attrs, matrix: Any, rhs: Any, l2_regularizer: Any) -> Any:
    if l2_regularizer < 0:
        raise InvalidArgumentError(NEGATIVE_REGULARIZER)
    if 0 in matrix.shape or 0 in rhs.shape:
        return np.zeros((*matrix.shape[:-2], matrix.shape[-1], rhs.shape[-1]), rhs.dtype)
    u, s, vh, full = _parts(matrix)
    weight = float(l2_regularizer) if attrs["fast"] else 0.0
    if attrs["fast"] and not weight and not full.all():
        raise InvalidArgumentError(DEPENDENT.format(np.argmin(full.all(axis=-1))))
    inverse = np.where(full, s / np.where(full, s * s + weight, 1), 0)
    return adjoint(vh) @ (inverse[..., None] * (adjoint(u) @ rhs))


def _error(attrs: Attrs, inputs: Any, expected: Any, u: float) -> Any:
    """Returns the normal equations square the condition of the matrix (Higham, Accuracy and
    Stability, 2nd ed., 20.4).
    """
    matrix, rhs, _ = inputs
    if 0 in matrix.shape or 0 in rhs.shape:
        return np.zeros(expected.shape)
    _, s, _, full = _parts(matrix)
    least = np.min(np.where(full, s, np.inf), axis=-1)
    condition = s[..., 0] / least
    size = norm(expected) + norm(rhs) / least
    error = TEST_RATIO * max(matrix.shape[-2:]) * u * condition**2 * size
    return np.broadcast_to(error[..., None, None], expected.shape)


_CASES: tuple[StaticShape, ...] = ((3, 3), (5, 2), (2, 5), (2, 4, 3), (2, 2, 3), (1, 1), (21, 18), (18, 21))


def _samples() -> Iterator[Sample]:
    for i, shape in enumerate(_CASES):
        rhs = (*shape[:-1], (2, 1, 3)[i % 3])
        for complex_, types in ((False, REALS), (True, COMPLEXES)):
            a = random_matrices(shape, complex_) / max(shape) + 2 * np.eye(shape[-2], shape[-1])
            b = random_matrices(rhs, complex_, 1)
            for fast, weight in ((True, 0.0), (True, 0.5), (False, 0.0)):
                inputs = [Arg(values=a), Arg(values=b), Arg(values=weight, fixed=True)]
                yield Sample(inputs, {"fast": fast}, {"T": types})
    dependent = [Arg(values=np.ones((3, 2)), fixed=True), Arg(values=np.ones((3, 1)), fixed=True)]
    yield Sample([*dependent, Arg(values=0.5, fixed=True)], {"fast": False}, {"T": REALS})
    for empty in ((0, 2), (3, 0)):
        yield Sample([Arg(empty), Arg((empty[0], 2)), Arg(values=0.0)], {"fast": empty[0] == 0})


def _errors() -> Iterator[ErrorSample]:
    b, none = Arg((3, 1)), Arg(values=0.0)
    dependent = Arg(values=np.ones((3, 2)))
    yield ErrorSample([dependent, b, none], "matrix 0 has dependent columns or rows, or nearly so", types=_ALL)
    second = Arg(values=np.stack([np.eye(3, 2), np.ones((3, 2)), np.eye(3, 2)]))
    yield ErrorSample([second, Arg((3, 3, 1)), none], "matrix 1 has dependent columns or rows", types=_ALL)
    yield ErrorSample(
        [Arg((3, 2)), b, Arg(values=-1.0)], "l2_regularizer is negative; it must be zero or more", types=_ALL
    )
    yield ErrorSample([Arg((2, 2)), b, none], r"has shape \(2, 2\) and rhs \(3, 1\); both must have as many rows")
    yield ErrorSample([Arg((3, 2)), Arg((3,)), none], r"input 1 has shape \(3,\); it must have rank 2 or more")
    yield ErrorSample([Arg((3, 2)), b, Arg(values=(0.0,))], "must have rank 0")


def _factor(op: Any, tall: bool, more: Any = None) -> Any:
    """Returns the Cholesky factors of A* A + r, or of A A* + r for wide matrices; r is what the
    op was given, and `more`.
    """
    a, weight = op.inputs[0], apply_op("Cast", [op.inputs[2]], {"DstT": op.inputs[0].dtype})
    gram = matmul(a, a, adjoint_x=tall, adjoint_y=not tall)
    identity = diagonal_matrix(apply_op("OnesLike", [diagonal(gram)]))
    return apply_op("Cholesky", [gram + (weight if more is None else weight + more) * identity])


def _divided(factor: Any, x: Any) -> Any:
    """Returns the solution of the equations whose matrices have these Cholesky factors."""
    y = apply_op("MatrixTriangularSolve", [factor, x])
    return apply_op("MatrixTriangularSolve", [factor, y], {"adjoint": True})


def _tall_gradient(op: Any, grad: Any, factor: Any) -> list[Any]:
    a, b, _ = op.inputs
    z, x = _divided(factor, grad), op.outputs[0]
    outer = matmul(x, z, adjoint_y=True)
    turned = apply_op("Neg", [matmul(a, outer + graph_adjoint(outer))])
    return [turned + matmul(b, z, adjoint_y=True), matmul(a, z), None]


def _wide_gradient(op: Any, grad: Any, factor: Any) -> list[Any]:
    a, b, _ = op.inputs
    b_grad, y = _divided(factor, matmul(a, grad)), _divided(factor, b)
    first = apply_op("Neg", [matmul(b_grad, matmul(y, a, adjoint_x=True))])
    rest = matmul(y, grad - matmul(a, b_grad, adjoint_x=True), adjoint_y=True)
    return [first + rest, b_grad, None]


def _gradient(op: Any, grad: Any) -> list[Any]:
    """That of l2_regularizer is left out, as TensorFlow does.

    Where sizes are unknown both ways are gone, and one is chosen; the other's factor is kept from being singular.
    """
    a = op.inputs[0]
    if not op.attrs["fast"]:
        raise UnimplementedError(
            f"MatrixSolveLs '{op.name}': the gradient is requested with fast=False; it needs fast=True", op.name
        )
    rows, cols = size_of(a, -2, -1), size_of(a, -1, None)
    if isinstance(rows, int) and isinstance(cols, int):
        way = _tall_gradient if rows >= cols else _wide_gradient
        return way(op, grad, _factor(op, rows >= cols))
    wide = apply_op("Less", [constant(rows, int32), constant(cols, int32)])
    added = indicator(wide, a.dtype)
    tall = _tall_gradient(op, grad, _factor(op, True, added))
    others = _wide_gradient(op, grad, _factor(op, False, constant(1, a.dtype) - added))
    return [*(apply_op("SelectV2", [wide, x, y]) for x, y in zip(others[:2], tall[:2], strict=True)), None]


define_op(
    "MatrixSolveLs",
    inputs=["matrix: T", "rhs: T", "l2_regularizer: double"],
    outputs=["output: T"],
    attrs=[TYPES, "fast: bool = true"],
    doc=(
        "The x of least |matrix x - rhs|^2 + l2_regularizer |x|^2 (of least norm where several are). `fast` solves the "
        "normal equations by Cholesky; else a complete orthogonal factorization serves dependent columns too, and "
        "l2_regularizer is ignored."
    ),
    shape=_shape,
    reference=_solve,
    accuracy=Bound(_error, SOURCE),
    gradient=_gradient,
    gradient_notes=("partly_refused",),
    constant_inputs=("l2_regularizer",),
    samples=_samples,
    errors=_errors,
)
