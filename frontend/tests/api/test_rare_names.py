"""Names that few programs use, beside NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import timberframe as tf

X = np.arange(1, 13, dtype=np.float32).reshape(3, 4)


def value(made: Any) -> Any:
    with tf.Session() as session:
        return session.run(made)


def test_products_of_matrices_and_vectors() -> None:
    np.testing.assert_allclose(value(tf.linalg.matvec(X, X[0])), X @ X[0])
    np.testing.assert_allclose(value(tf.linalg.matvec(X, X[:, 0], transpose_a=True)), X.T @ X[:, 0])


def test_normalized_rows_and_their_norms() -> None:
    made, norms = value(tf.linalg.normalize(X, axis=1))
    wanted = np.linalg.norm(X, axis=1, keepdims=True)
    np.testing.assert_allclose(norms, wanted, rtol=1e-6)
    np.testing.assert_allclose(made, X / wanted, rtol=1e-6)


@pytest.mark.parametrize("side", ["left", "right"])
def test_places_in_sorted_sequences(side: Any) -> None:
    sequence, values = np.array([1, 3, 3, 7]), np.array([0, 3, 5, 9])
    assert value(tf.searchsorted(sequence, values, side)).tolist() == np.searchsorted(sequence, values, side).tolist()
    with pytest.raises(tf.errors.InvalidArgumentError, match="side is 'middle'"):
        tf.searchsorted(sequence, values, "middle")


@pytest.mark.parametrize(("repeats", "axis"), [(2, None), ([1, 0, 3], 0), (3, -1), ([0, 0, 0], 0)])
def test_repeated_elements(repeats: Any, axis: int | None) -> None:
    np.testing.assert_array_equal(value(tf.repeat(X, repeats, axis)), np.repeat(X, repeats, axis))


def test_codes_of_errors() -> None:
    assert (tf.errors.OK, tf.errors.NOT_FOUND, tf.errors.UNAUTHENTICATED) == (0, 5, 16)
    assert tf.errors.exception_type_from_error_code(tf.errors.NOT_FOUND) is tf.errors.NotFoundError
    assert tf.errors.error_code_from_exception_type(tf.errors.UnauthenticatedError) == 16


def test_signatures_of_classifiers_and_regressions() -> None:
    examples, scores = tf.placeholder(tf.string, [None], "examples"), tf.placeholder(tf.float32, [None, 2], "scores")
    classifier = tf.saved_model.classification_signature_def(examples, None, scores)
    assert classifier.method_name == tf.saved_model.signature_constants.CLASSIFY_METHOD_NAME
    assert {key: info.name for key, info in classifier.outputs.items()} == {"scores": "scores:0"}
    assert tf.saved_model.regression_signature_def(examples, scores).inputs["inputs"].name == "examples:0"
    with pytest.raises(tf.errors.InvalidArgumentError, match="'inputs' has dtype float32; it must be string"):
        tf.saved_model.regression_signature_def(scores, scores)
    with pytest.raises(tf.errors.InvalidArgumentError, match="classes or scores"):
        tf.saved_model.classification_signature_def(examples, None, None)


def test_a_cosine_times_a_straight_fall() -> None:
    steps = np.arange(0, 13, 3)
    passed = np.minimum(steps, 10) / 10
    wanted = 0.5 * ((0.1 + 1 - passed) * 0.5 * (1 + np.cos(np.pi * 2 * 0.75 * passed)) + 0.01)
    made = [tf.train.linear_cosine_decay(0.5, step, 10, 0.75, 0.1, 0.01) for step in steps.tolist()]
    np.testing.assert_allclose(value(made), wanted, rtol=1e-5)


@pytest.mark.parametrize(("strength", "wanted"), [(0.0, [2.9, -0.2]), (1.0, [2.8, -0.1])])
def test_proximal_descent_shrinks_weights(strength: float, wanted: list[float]) -> None:
    v = tf.Variable([3.0, -0.1])
    step = tf.train.ProximalGradientDescentOptimizer(0.1, strength).minimize(tf.reduce_sum(v))
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        session.run(step)
        np.testing.assert_allclose(session.run(v), wanted, rtol=1e-5)


def test_what_is_no_global_step_is_refused() -> None:
    tf.train.assert_global_step(tf.constant(3))
    for wrong in (3, tf.constant(1.0), tf.constant([1])):
        with pytest.raises(TypeError, match="global step"):
            tf.train.assert_global_step(wrong)


def test_conversions_check_the_dtype_of_what_stays() -> None:
    sparse = tf.SparseTensor([[0]], [1.0], [2])
    assert tf.convert_to_tensor_or_sparse_tensor(sparse, tf.float32) is sparse
    with pytest.raises(TypeError, match="of dtype float32"):
        tf.convert_to_tensor_or_sparse_tensor(sparse, tf.int32)


def test_sizes_at_positions_of_shapes() -> None:
    assert tf.dimension_at_index(tf.TensorShape([2, 3]), -1).value == 3
    assert tf.dimension_at_index(tf.TensorShape(None), 5).value is None


def test_tensors_of_graphs_are_symbolic() -> None:
    assert tf.is_symbolic_tensor(tf.constant(1.0))
    assert not tf.is_symbolic_tensor(np.ones(3))
