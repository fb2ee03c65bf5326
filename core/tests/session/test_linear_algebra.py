"""Matrix decompositions through the public functions, and their gradients."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import timberframe as tf

RNG = np.random.default_rng(7)
SQUARE = RNG.uniform(-1, 1, (2, 4, 4)) + 4 * np.eye(4)
DEFINITE = SQUARE @ np.swapaxes(SQUARE, 1, 2)


def run(fetches: Any, feeds: Any = None) -> Any:
    with tf.Session() as session:
        return session.run(fetches, feeds)


@pytest.fixture(autouse=True)
def graph() -> Any:
    with tf.Graph().as_default() as made:
        yield made


def test_cholesky_solve_undoes_the_product() -> None:
    x = tf.constant(RNG.uniform(-1, 1, (2, 4, 3)))
    solved = tf.cholesky_solve(tf.cholesky(DEFINITE), tf.matmul(DEFINITE, x))
    found, expected = run([solved, x])
    np.testing.assert_allclose(found, expected, rtol=1e-9)  # condition below 100, 13 digits left


def test_logdet_is_the_logarithm_of_the_determinant() -> None:
    both = run([tf.linalg.logdet(DEFINITE), tf.log(tf.linalg.det(DEFINITE)), tf.linalg.slogdet(DEFINITE)[1]])
    np.testing.assert_allclose(both[0], both[1], rtol=1e-12)
    np.testing.assert_allclose(both[0], both[2], rtol=1e-12)


def test_svd_without_vectors_gives_the_values_alone() -> None:
    values = tf.svd(SQUARE, compute_uv=False)
    assert isinstance(values, tf.Tensor)
    np.testing.assert_allclose(run(values), np.linalg.svd(SQUARE, compute_uv=False), rtol=1e-12)


def test_eigenvectors_of_a_large_matrix_are_orthonormal() -> None:
    x = RNG.uniform(-1, 1, (130, 130))
    values, vectors = run(tf.self_adjoint_eig(x + x.T))
    np.testing.assert_allclose(vectors.T @ vectors, np.eye(130), atol=1e-12)
    np.testing.assert_allclose((x + x.T) @ vectors, vectors * values, atol=1e-11)


def test_singular_matrix_in_a_batch_is_named() -> None:
    batch = np.stack([np.eye(2), np.ones((2, 2))])
    with pytest.raises(tf.errors.InvalidArgumentError, match="matrix 1 is singular"):
        run(tf.matrix_inverse(batch))


BUILDS: dict[str, Any] = {
    "inverse": (tf.matrix_inverse, SQUARE),
    "determinant": (tf.matrix_determinant, SQUARE),
    "qr of tall matrices": (lambda x: tf.qr(x)[1], SQUARE[:, :, :3]),
    "qr of wide matrices": (lambda x: tf.qr(x)[0], SQUARE[:, :3]),
    "eigenvalues": (lambda x: tf.self_adjoint_eigvals(x + tf.matrix_transpose(x)), SQUARE * np.arange(1, 5)),
    "cholesky": (lambda x: tf.cholesky(tf.matmul(x, x, transpose_b=True)), SQUARE),
    "singular vectors": (lambda x: tf.square(tf.svd(x)[1]), SQUARE[:, :3]),
}


@pytest.mark.parametrize("name", BUILDS)
def test_gradient_agrees_with_differences_for_unknown_shapes(name: str) -> None:
    build, value = BUILDS[name]
    x = tf.placeholder(tf.float64)
    loss = tf.reduce_sum(tf.sin(build(x)) * 1.5)
    (grad,) = tf.gradients(loss, [x])
    step = RNG.uniform(-1, 1, value.shape)
    with tf.Session() as session:
        slope = float(np.sum(session.run(grad, {x: value}) * step))
        # h of 1e-5 leaves errors of h^2 and of 1e-16 / h
        high, low = (session.run(loss, {x: value + h * step}) for h in (1e-5, -1e-5))
    np.testing.assert_allclose(slope, (high - low) / 2e-5, rtol=1e-6, atol=1e-7)
