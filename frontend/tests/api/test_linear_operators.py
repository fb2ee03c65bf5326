"""`tf.linalg.LinearOperator*` against the dense matrices that they stand for."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import timberframe as tf

pytestmark = pytest.mark.usefixtures("graph")
random = np.random.default_rng(4)
SQUARE = random.normal(size=(2, 3, 3)) + 3 * np.eye(3)
DIAGONAL = random.uniform(0.5, 2.0, size=(2, 3))
linalg = tf.linalg
OPERATORS = {
    "full": (lambda: linalg.LinearOperatorFullMatrix(SQUARE), SQUARE),
    "positive": (
        lambda: linalg.LinearOperatorFullMatrix(
            SQUARE @ SQUARE.swapaxes(1, 2), is_self_adjoint=True, is_positive_definite=True
        ),
        SQUARE @ SQUARE.swapaxes(1, 2),
    ),
    "triangular": (lambda: linalg.LinearOperatorLowerTriangular(SQUARE), np.tril(SQUARE)),
    "diagonal": (lambda: linalg.LinearOperatorDiag(DIAGONAL), DIAGONAL[..., None] * np.eye(3)),
    "identity": (lambda: linalg.LinearOperatorIdentity(3, [2], tf.float64), np.stack([np.eye(3)] * 2)),
    "scaled": (
        lambda: linalg.LinearOperatorScaledIdentity(3, tf.constant([2.0, -0.5], tf.float64)),
        np.array([2.0, -0.5])[:, None, None] * np.eye(3),
    ),
    "composition": (
        lambda: linalg.LinearOperatorLowerTriangular(SQUARE).matmul(linalg.LinearOperatorDiag(DIAGONAL)),
        np.tril(SQUARE) * DIAGONAL[:, None, :],
    ),
}


def run(value: Any) -> Any:
    with tf.Session() as session:
        return session.run(value)


@pytest.mark.parametrize("name", OPERATORS)
def test_an_operator_does_what_its_matrices_do(name: str) -> None:
    make, dense = OPERATORS[name]
    operator = make()
    x = random.normal(size=(2, 3, 4))
    cases = [
        (operator.to_dense(), dense),
        (operator.matmul(x), dense @ x),
        (operator.matmul(x, adjoint=True), dense.swapaxes(1, 2) @ x),
        (operator.matmul(x.swapaxes(1, 2), adjoint_arg=True), dense @ x),
        (operator.matvec(x[..., 0]), (dense @ x)[..., 0]),
        (operator.solve(x), np.linalg.solve(dense, x)),
        (operator.solve(x, adjoint=True), np.linalg.solve(dense.swapaxes(1, 2), x)),
        (operator.solvevec(x[..., 0]), np.linalg.solve(dense, x)[..., 0]),
        (operator.determinant(), np.linalg.det(dense)),
        (operator.log_abs_determinant(), np.log(np.abs(np.linalg.det(dense)))),
        (operator.diag_part(), np.diagonal(dense, axis1=1, axis2=2)),
        (operator.trace(), np.trace(dense, axis1=1, axis2=2)),
        (operator.add_to_tensor(np.ones((2, 3, 3))), dense + 1),
        (operator.shape_tensor(), [2, 3, 3]),
        (operator.batch_shape_tensor(), [2]),
    ]
    for found, (_, wanted) in zip(run([value for value, _ in cases]), cases, strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-9, atol=1e-12)
    assert operator.shape.as_list() == [2, 3, 3]
    assert operator.is_square
    assert (operator.tensor_rank, operator.range_dimension.value, operator.domain_dimension.value) == (3, 3, 3)


def test_solving_by_an_operator_that_is_not_square_names_its_shape() -> None:
    operator = linalg.LinearOperatorFullMatrix(np.ones((2, 3)))
    with pytest.raises(ValueError, match=r"solve of matrices of shape \(2, 3\); they must be square"):
        operator.solve(np.ones((2, 1)))


@pytest.mark.parametrize("make", [
    lambda **known: linalg.LinearOperatorDiag(DIAGONAL, **known),
    lambda **known: linalg.LinearOperatorScaledIdentity(3, 2.0, **known),
    lambda **known: linalg.LinearOperatorIdentity(3, **known),
])  # fmt: skip
def test_a_diagonal_is_not_taken_for_what_it_cannot_be(make: Any) -> None:
    for known in ("is_square", "is_self_adjoint"):
        with pytest.raises(ValueError, match=f"{known} is False; matrices of a .*diagonal are"):
            make(**{known: False})
    assert (make().is_square, make().is_self_adjoint) == (True, True)


def test_a_complex_diagonal_is_not_known_to_be_self_adjoint() -> None:
    for operator in (linalg.LinearOperatorDiag([1j, 2]), linalg.LinearOperatorScaledIdentity(2, 1j)):
        assert operator.is_self_adjoint is None


def test_gradients_pass_through_a_triangular_solution() -> None:
    matrix = tf.constant(np.tril(SQUARE[0]))
    solved = linalg.LinearOperatorLowerTriangular(matrix).solvevec(np.ones(3))
    inverse = np.linalg.inv(np.tril(SQUARE[0]))
    expected = -np.tril(np.outer(inverse.T @ np.ones(3), inverse @ np.ones(3)))
    np.testing.assert_allclose(run(tf.gradients(tf.reduce_sum(solved), matrix)[0]), expected, rtol=1e-9)
