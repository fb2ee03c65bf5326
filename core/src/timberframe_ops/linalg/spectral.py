"""SelfAdjointEigV2 and Svd."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from timberframe_core.errors import InvalidArgumentError, UnimplementedError
from timberframe_core.ops.definition.accuracy import Residual
from timberframe_core.ops.definition.gradients import apply_op
from timberframe_core.ops.definition.opdef import Attrs, InferenceContext, define_op
from timberframe_core.ops.definition.samples import Arg, ErrorSample, Sample
from timberframe_core.shapes import Shape, StaticShape, format_shape
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
)
from timberframe_ops.linalg.matrix_gradients import adjoint as graph_adjoint
from timberframe_ops.linalg.matrix_gradients import (
    columns,
    diagonal,
    diagonal_matrix,
    differences_inverted,
    halved,
    inverted,
    matmul,
    real_part,
    triangle,
    with_diagonal,
)


def _eig_shape(c: InferenceContext) -> list[Shape]:
    shape = square_shape(c)
    none: Shape = (0,)
    return [None if shape is None else shape[:-1], shape if c.attrs["compute_v"] else none]


def self_adjoint(input: Any) -> Any:
    """Returns the self-adjoint matrices that the lower triangles describe."""
    lower = np.tril(input, -1)
    real = np.real(np.diagonal(input, axis1=-2, axis2=-1))[..., None] * np.eye(input.shape[-1])
    return lower + adjoint(lower) + real


NO_EIGENVALUES = "matrix {0} has no eigenvalues that could be found; its elements must be finite"


def _finite(matrices: Any) -> np.ndarray:
    """Returns which matrices have finite elements alone."""
    return np.asarray(np.isfinite(matrices).all(axis=(-2, -1)))


def _eig(attrs: Attrs, input: Any) -> tuple[Any, Any]:
    if 0 in input.shape:
        vectors = input if attrs["compute_v"] else np.zeros(0, input.dtype)
        return np.zeros(input.shape[:-1], input.dtype), vectors
    matrices = self_adjoint(input)
    finite = _finite(matrices)
    if not finite.all():
        raise InvalidArgumentError(NO_EIGENVALUES.format(np.argmin(finite)))
    values, vectors = np.linalg.eigh(matrices)
    return values.astype(input.dtype), vectors if attrs["compute_v"] else np.zeros(0, input.dtype)


def _descents(values: Any) -> Any:
    """By how much each value lies below the one before it."""
    return np.maximum(0, -np.diff(np.real(values), axis=-1))


def _eig_laws(attrs: Attrs, inputs: Any, outputs: Any, u: float) -> Any:
    a, (values, vectors) = self_adjoint(inputs[0]), outputs
    rows = a.shape[-1]
    laws: list[Any] = [("fall of the eigenvalues", _descents(values), 0.0)]
    if attrs["compute_v"]:
        laws.append(residual("input v - v e", a @ vectors - vectors * values[..., None, :], norm(a), u))
        laws.append(orthonormal("v* v - 1", vectors, u))
    else:
        expected = np.linalg.eigvalsh(a) if a.size else np.real(values)
        allowed = (TEST_RATIO * rows * u * norm(a))[..., None]
        laws.append(("error of the eigenvalues", np.abs(values - expected), np.broadcast_to(allowed, values.shape)))
    return laws


def _spread(shape: StaticShape, complex_: bool) -> np.ndarray:
    """Self-adjoint matrices whose eigenvalues lie apart."""
    result: np.ndarray = positive_definite(shape, complex_) + np.diag(3.0 * np.arange(shape[-1]))
    return result


def _eig_samples() -> Iterator[Sample]:
    for vectors in (True, False):
        yield from by_type(_spread, SQUARES, compute_v=vectors)
    yield Sample([Arg(values=_spread((67, 67), complex_=False))], types={"T": (*REALS, *COMPLEXES)})
    yield Sample([Arg(values=np.diag([3.0, 1.0, 1.0, 2.0]))], types={"T": REALS})  # equal eigenvalues
    above = _spread((3, 3), False) + np.triu(np.full((3, 3), 1e3), 1)  # which is not read
    yield Sample([Arg(values=above)], types={"T": (*REALS, *COMPLEXES)})


def _eig_errors() -> Iterator[ErrorSample]:
    wrong = np.stack([np.eye(2), [[1.0, 0.0], [np.nan, 1.0]]])
    match = "matrix 1 has no eigenvalues that could be found; its elements must be finite"
    yield ErrorSample([Arg(values=wrong)], match, types={"T": (*REALS, *COMPLEXES)})
    yield ErrorSample([Arg((2, 3))], r"input 0 has shape \(2, 3\); its matrices must be square")
    yield ErrorSample([Arg((3,))], "must have rank 2 or more")


def _eig_gradient(op: Any, values_grad: Any, vectors_grad: Any) -> list[Any]:
    """Only the lower triangle is read: it gets what both triangles would, and half of that on the diagonal."""
    values, vectors = op.outputs
    middle = diagonal_matrix(values_grad)
    if op.attrs["compute_v"]:
        middle = middle + differences_inverted(values) * matmul(vectors, vectors_grad, adjoint_x=True)
    else:
        _, vectors = apply_op("SelfAdjointEigV2", [op.inputs[0]], {"compute_v": True})
    gradient = matmul(vectors, matmul(middle, vectors, adjoint_y=True))
    lower = triangle(gradient + graph_adjoint(gradient), lower=True)
    return [with_diagonal(lower, halved(diagonal(lower)))]


define_op(
    "SelfAdjointEigV2",
    inputs=["input: T"],
    outputs=["e: T", "v: T"],
    attrs=["compute_v: bool = true", TYPES],
    doc=(
        "Eigenvalues e in rising order, and in v's columns the eigenvectors, of self-adjoint matrices, of which the "
        "lower triangles are read. Vectors are free by a factor of modulus one; without compute_v v is empty."
    ),
    shape=_eig_shape,
    reference=_eig,
    accuracy=Residual(_eig_laws, SOURCE),
    gradient=_eig_gradient,
    gradient_notes=("free_phases",),
    samples=_eig_samples,
    errors=_eig_errors,
)


def _svd_shape(c: InferenceContext) -> list[Shape]:
    shape = matrix_shape(c)
    none: Shape = (0,)
    vectors = c.attrs["compute_uv"]
    if shape is None:
        return [None, None, None] if vectors else [None, none, none]
    batch, (rows, cols) = shape[:-2], shape[-2:]
    least = 0 if 0 in (rows, cols) else None if rows is None or cols is None else min(rows, cols)
    full = c.attrs["full_matrices"]
    if not vectors:
        return [(*batch, least), none, none]
    return [(*batch, least), (*batch, rows, rows if full else least), (*batch, cols, cols if full else least)]


def _svd(attrs: Attrs, input: Any) -> tuple[Any, ...]:
    batch, (rows, cols) = input.shape[:-2], input.shape[-2:]
    least, full, none = min(rows, cols), attrs["full_matrices"], np.zeros(0, input.dtype)
    if 0 in input.shape:
        u, v = (
            np.broadcast_to(np.eye(n, n if full else least), (*batch, n, n if full else least)) for n in (rows, cols)
        )
        s = np.zeros((*batch, least), input.dtype)
    else:
        finite = _finite(input)[..., None, None]
        parts = np.linalg.svd(np.where(finite, input, 0), full_matrices=full)
        u, vh = (np.where(finite, x, np.nan) for x in (parts[0], parts[2]))
        s, v = np.where(finite[..., 0], parts[1], np.nan), adjoint(vh)
    vectors = (u.astype(input.dtype), v.astype(input.dtype)) if attrs["compute_uv"] else (none, none)
    return s.astype(input.dtype), *vectors


def _svd_laws(attrs: Attrs, inputs: Any, outputs: Any, u: float) -> Any:
    (a,), (s, left, right) = inputs, outputs
    laws: list[Any] = [
        ("rise of the singular values", _descents(-s), 0.0),
        ("singular values below zero", np.maximum(0, -np.real(s)), 0.0),
    ]
    if attrs["compute_uv"]:
        least = s.shape[-1]
        rebuilt = (left[..., :least] * s[..., None, :]) @ adjoint(right[..., :least])
        laws.append(residual("input - u s v*", a - rebuilt, norm(a), u))
        laws += [orthonormal("u* u - 1", left, u), orthonormal("v* v - 1", right, u)]
    elif a.size:
        expected = np.linalg.svd(a, compute_uv=False)
        allowed = (TEST_RATIO * max(a.shape[-2:]) * u * norm(a))[..., None]
        laws.append(("error of the singular values", np.abs(s - expected), np.broadcast_to(allowed, s.shape)))
    return laws


_RECTANGLES = ((1, 1), (5, 3), (3, 5), (2, 4, 4), (2, 3, 5, 2), (0, 3), (3, 0), (0, 2, 2), (37, 20), (20, 37))


def _svd_samples() -> Iterator[Sample]:
    yield from by_type(random_matrices, _RECTANGLES)
    yield from by_type(random_matrices, _RECTANGLES, full_matrices=True)
    yield from by_type(random_matrices, ((3, 4), (2, 5, 2), (0, 2)), compute_uv=False)
    yield Sample([Arg(values=np.zeros((2, 3)))])


def _svd_gradient(op: Any, s_grad: Any, u_grad: Any, v_grad: Any) -> list[Any]:
    a = op.inputs[0]
    outer = diagonal_matrix(real_part(s_grad))
    if not op.attrs["compute_uv"]:
        _, u, v = apply_op("Svd", [a], {"compute_uv": True})
        return [matmul(u, matmul(outer, v, adjoint_y=True))]
    full = op.attrs["full_matrices"]
    sizes: Any = (None, None) if a.static_shape is None else a.static_shape[-2:]
    rows, cols = sizes
    known = None not in sizes
    if full and (not known or abs(rows - cols) > 1):
        raise UnimplementedError(
            f"Svd '{op.name}': the gradient of all singular vectors is requested, of matrices "
            f"{format_shape(sizes)}; with full_matrices their sizes must be known and differ by one at most",
            op.name,
        )
    s, u, v = op.outputs
    if not known:
        found = _vectors_gradient(op, outer, s, (u, u_grad), (v, v_grad))
        return [found + _outside_gradient(s, (u, u_grad), v) + graph_adjoint(_outside_gradient(s, (v, v_grad), u))]
    if rows > cols:  # the adjoint has its vectors exchanged
        return [graph_adjoint(_wide_gradient(op, outer, s, (v, v_grad), (u, u_grad), (cols, rows)))]
    return [_wide_gradient(op, outer, s, (u, u_grad), (v, v_grad), (rows, cols))]


Vectors = tuple[Any, Any]
"""Singular vectors of one side, and their gradient."""


def _vectors_gradient(op: Any, outer: Any, s: Any, left: Vectors, right: Vectors) -> Any:
    """Returns what changes singular values, and turns the vectors within the space that they span.

    See J. Townsend, "Differentiating the Singular Value Decomposition" (2016), and for complex matrices S. Wan and
    S. Zhang, "Automatic differentiation for complex valued SVD" (2019).
    """
    (u, u_grad), (v, v_grad) = left, right
    values, factors = diagonal_matrix(s), differences_inverted(s * s)
    turned = matmul(v, v_grad, adjoint_x=True)
    of_u, of_v = factors * matmul(u, u_grad, adjoint_x=True), factors * turned
    middle = outer + matmul(of_u + graph_adjoint(of_u), values) + matmul(values, of_v + graph_adjoint(of_v))
    if op.inputs[0].dtype.is_complex:
        phase = diagonal_matrix(diagonal(turned))
        middle = middle + halved(matmul(diagonal_matrix(inverted(s)), graph_adjoint(phase) - phase))
    return matmul(u, matmul(middle, v, adjoint_y=True))


def _outside_gradient(s: Any, own: Vectors, other: Any) -> Any:
    """Returns what turns vectors out of the space that they span."""
    vectors, grad = own
    outside = grad - matmul(vectors, matmul(vectors, grad, adjoint_x=True))
    return matmul(matmul(outside, diagonal_matrix(inverted(s))), other, adjoint_y=True)


def _wide_gradient(op: Any, outer: Any, s: Any, left: Vectors, right: Vectors, sizes: tuple[int, int]) -> Any:
    """Returns the gradient for matrices that are no higher than wide."""
    rows, cols = sizes
    v, v_grad = right
    if op.attrs["full_matrices"]:
        right = columns(v, None, rows), columns(v_grad, None, rows)
    total = _vectors_gradient(op, outer, s, left, right)
    if rows == cols:
        return total
    total = total + graph_adjoint(_outside_gradient(s, right, left[0]))
    if op.attrs["full_matrices"]:
        second, second_grad = columns(v, rows, cols), columns(v_grad, rows, cols)
        rest = matmul(matmul(right[0], second_grad, adjoint_x=True), second, adjoint_y=True)
        total = total - matmul(matmul(left[0], diagonal_matrix(inverted(s))), rest)
    return total


define_op(
    "Svd",
    inputs=["input: T"],
    outputs=["s: T", "u: T", "v: T"],
    attrs=["compute_uv: bool = true", "full_matrices: bool = false", TYPES],
    doc=(
        "Matrices as u s v*: singular values s in falling order, and orthonormal columns of u and v, free by a factor "
        "that both share. With full_matrices u and v are square; without compute_uv both are empty. A matrix that is "
        "not finite gives NaN."
    ),
    shape=_svd_shape,
    reference=_svd,
    accuracy=Residual(_svd_laws, SOURCE),
    gradient=_svd_gradient,
    gradient_notes=("free_phases", "partly_refused"),
    samples=_svd_samples,
    errors=lambda: [ErrorSample([Arg((3,))], r"input 0 has shape \(3,\); it must have rank 2 or more")],
)
