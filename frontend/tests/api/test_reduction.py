"""Reductions, softmax, products, einsum and norms, as users call them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import timberframe as tf

X = np.arange(1, 13, dtype=np.float32).reshape(3, 4)


@pytest.fixture(autouse=True)
def _graph() -> Any:
    with tf.Graph().as_default():
        yield


def run(fetch: Any, feeds: Any = None) -> Any:
    with tf.Session(graph=tf.get_default_graph()) as session:
        return session.run(fetch, feeds)


def test_no_axis_means_all_of_them() -> None:
    assert run(tf.reduce_sum(X)) == 78


def test_all_axes_of_an_unknown_rank_are_found_at_run_time() -> None:
    x = tf.placeholder(tf.float32, None)
    assert run(tf.reduce_max(x), {x: X}) == 12


def test_older_argument_names_are_taken() -> None:
    assert run(tf.reduce_mean(X, reduction_indices=[1], keep_dims=True)).tolist() == [[2.5], [6.5], [10.5]]


def test_both_names_of_one_argument_are_refused() -> None:
    with pytest.raises(tf.errors.InvalidArgumentError, match="axis and reduction_indices are both given"):
        tf.reduce_sum(X, axis=0, reduction_indices=0)


def test_logsumexp_neither_overflows_nor_fails_on_infinities() -> None:
    rows = np.array([[1000, 1000], [-np.inf, -np.inf], [np.inf, 0]], np.float32)
    np.testing.assert_allclose(run(tf.reduce_logsumexp(rows, axis=1)), [1000 + np.log(2), -np.inf, np.inf], rtol=1e-6)


def test_variance_and_standard_deviation() -> None:
    variance, deviation = run([tf.math.reduce_variance(X, 0), tf.math.reduce_std(X)])
    np.testing.assert_allclose(variance, X.var(0), rtol=1e-6)
    np.testing.assert_allclose(deviation, X.std(), rtol=1e-6)


def test_count_nonzero_counts_in_int64() -> None:
    count = run(tf.count_nonzero(np.array([[0, 1], [2, 0]], np.int32)))
    assert count == 2
    assert count.dtype == np.int64


def test_argmax_gives_the_index_dtype_that_is_asked_for() -> None:
    found = run(tf.argmax(X, 1, output_type=tf.int32))
    assert found.tolist() == [3, 3, 3]
    assert found.dtype == np.int32


@pytest.mark.parametrize("axis", [0, 1, -1, -2])
def test_softmax_along_any_axis(axis: int) -> None:
    expected = np.exp(X) / np.exp(X).sum(axis, keepdims=True)
    np.testing.assert_allclose(run(tf.nn.softmax(X, axis=axis)), expected, rtol=1e-5)


def test_softmax_along_an_axis_of_an_unknown_rank() -> None:
    x = tf.placeholder(tf.float32, None)
    expected = np.exp(X) / np.exp(X).sum(0)
    np.testing.assert_allclose(run(tf.nn.softmax(x, axis=-2), {x: X}), expected, rtol=1e-5)


def test_matrices_take_the_plain_op_and_batches_the_batched_one() -> None:
    assert tf.matmul(X, X, transpose_b=True).op.type == "MatMul"
    assert tf.matmul(X[None], X[None], transpose_b=True).op.type == "BatchMatMulV2"


def test_transpose_and_adjoint_exclude_each_other() -> None:
    with pytest.raises(tf.errors.InvalidArgumentError, match="transpose_a and adjoint_a are both set"):
        tf.matmul(X, X, transpose_a=True, adjoint_a=True)


def test_transposed_batches_are_not_conjugated() -> None:
    a = np.array([[[1j, 2], [3, 4j]]], np.complex64)
    np.testing.assert_allclose(run(tf.matmul(a, a, transpose_a=True)), np.swapaxes(a, 1, 2) @ a)


def test_einsum_without_an_arrow_keeps_labels_that_occur_once() -> None:
    np.testing.assert_allclose(run(tf.einsum("ij,jk", X, X.T)), X @ X.T)


def test_einsum_of_three_operands() -> None:
    np.testing.assert_allclose(run(tf.einsum("ij,kj,kl->il", X, X, X)), X @ X.T @ X, rtol=1e-6)


def test_einsum_error_names_the_label() -> None:
    with pytest.raises(tf.errors.InvalidArgumentError, match="label 'j' has sizes 4 and 3"):
        tf.einsum("ij,jk->ik", X, X)


@pytest.mark.parametrize("axes", [1, [[0], [0]], [[0, 1], [0, 1]], 0])
def test_tensordot(axes: Any) -> None:
    other = X.T if axes == 1 else X
    np.testing.assert_allclose(run(tf.tensordot(X, other, axes)), np.tensordot(X, other, axes))


ORDERS = [("euclidean", None), (1, 0), (np.inf, 1), (3, 1), ("fro", (0, 1)), (1, (0, 1))]


@pytest.mark.parametrize(("order", "axis"), ORDERS)
def test_norms(order: Any, axis: Any) -> None:
    plain = None if order in ("euclidean", "fro") else order
    expected = np.linalg.norm(X.ravel() if axis is None else X, plain, axis)
    np.testing.assert_allclose(run(tf.norm(X, order, axis)), expected, rtol=1e-5)


def test_diagonals_go_in_and_out() -> None:
    square = X[:, :3]
    zeroed = tf.linalg.set_diag(square, [0.0, 0.0, 0.0])
    assert run(tf.linalg.diag_part(zeroed)).tolist() == [0, 0, 0]
    assert run(tf.trace(square)) == np.trace(square)
    assert run(tf.linalg.diag([1.0, 2.0])).tolist() == [[1, 0], [0, 2]]


def test_shape_arithmetic_with_reductions_runs_on_the_host() -> None:
    x = tf.placeholder(tf.float32, [None, 3, 4])
    flat = tf.reshape(x, [-1, tf.reduce_prod(tf.shape(x)[1:])])
    assert flat.shape.as_list() == [None, 12]


@pytest.mark.parametrize("name", ["segment_max", "segment_min", "unsorted_segment_max", "unsorted_segment_min"])
def test_the_extreme_of_a_segment_with_nan_is_nan(name: str) -> None:
    count = [3] if name.startswith("unsorted") else []
    made = getattr(tf.math, name)(tf.constant([np.nan, 1.0, 2.0, np.nan, 3.0]), [0, 0, 1, 1, 2], *count)
    assert run(made).tolist() == pytest.approx([np.nan, np.nan, 3.0], nan_ok=True)


@pytest.mark.parametrize(("name", "infinity"), [("segment_max", -np.inf), ("segment_min", np.inf)])
def test_the_extreme_of_a_segment_of_infinities_is_infinite(name: str, infinity: float) -> None:
    assert run(getattr(tf.math, name)(tf.constant([infinity] * 2), [0, 0])).tolist() == [infinity]
