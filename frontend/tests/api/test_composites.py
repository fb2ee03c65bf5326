"""Functions made of several ops, and assertions, through a session."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import timberframe as tf

X = np.array([[3.0, 4.0], [0.0, -0.5]], np.float32)


def test_clip_by_norm_scales_down_only(session: tf.Session) -> None:
    np.testing.assert_allclose(session.run(tf.clip_by_norm(X[0], 1.0)), [0.6, 0.8], rtol=1e-6)
    np.testing.assert_allclose(session.run(tf.clip_by_norm(X, 1.0, [1])), [[0.6, 0.8], [0, -0.5]], rtol=1e-6)


def test_clip_by_norm_of_zeros_is_zero(session: tf.Session) -> None:
    assert session.run(tf.clip_by_norm([0.0, 0.0], 1.0)).tolist() == [0, 0]


@pytest.mark.filterwarnings("ignore:overflow encountered")
def test_the_gradient_of_clip_by_norm_is_finite_where_the_norm_is_not(session: tf.Session) -> None:
    x = tf.constant([-1.7976931348623157e308], tf.float64)
    assert session.run(tf.gradients(tf.clip_by_norm(x, 1.0), x)[0]).tolist() == [0]


@pytest.mark.filterwarnings("ignore:overflow encountered")
def test_the_gradient_of_a_norm_that_overflows_is_zero(session: tf.Session) -> None:
    x = tf.constant([1.0, 1.7976931348623157e308], tf.float64)
    assert session.run(tf.gradients(tf.norm(x), x)[0]).tolist() == [0, 0]


def test_clip_by_global_norm_scales_all_alike(session: tf.Session) -> None:
    clipped, norm = tf.clip_by_global_norm([X[:1], None, [12.0]], 6.5)
    assert clipped[1] is None
    first, last, size = session.run([clipped[0], clipped[2], norm])
    assert size == 13
    np.testing.assert_allclose([*first[0], *last], [1.5, 2, 6], rtol=1e-6)


def test_eye_in_batches(session: tf.Session) -> None:
    assert session.run(tf.eye(2, 3, [4], tf.int32)).tolist() == [np.eye(2, 3).tolist()] * 4


@pytest.mark.parametrize("indexing", ["xy", "ij"])
@pytest.mark.parametrize("lengths", [(3,), (3, 2), (2, 3, 4)])
def test_meshgrid_is_numpys(session: tf.Session, lengths: tuple[int, ...], indexing: Any) -> None:
    vectors = [np.arange(n) for n in lengths]
    grids = session.run(tf.meshgrid(*vectors, indexing=indexing))
    for got, want in zip(grids, np.meshgrid(*vectors, indexing=indexing), strict=True):
        np.testing.assert_array_equal(got, want)


def test_zero_fraction(session: tf.Session) -> None:
    assert session.run(tf.math.zero_fraction(X)) == 0.25


def test_crelu_doubles_the_axis(session: tf.Session) -> None:
    assert session.run(tf.nn.crelu(X)).tolist() == [[3, 4, 0, 0], [0, 0, 0, 0.5]]


def test_embedding_lookup_clips_rows(session: tf.Session) -> None:
    rows = session.run(tf.nn.embedding_lookup(X, [[0], [1]], max_norm=1.0))
    np.testing.assert_allclose(rows, [[[0.6, 0.8]], [[0, -0.5]]], rtol=1e-6)


def test_logistic_loss_does_not_overflow(session: tf.Session) -> None:
    loss = tf.nn.sigmoid_cross_entropy_with_logits(labels=[1.0, 0.0, 1.0], logits=[1000.0, 1000.0, 0.0])
    np.testing.assert_allclose(session.run(loss), [0, 1000, np.log(2)], rtol=1e-6)


ASSERTIONS: list[tuple[Callable[..., Any], list[float], list[float]]] = [
    (lambda x: tf.assert_equal(x, 1.0), [1, 1], [1, 2]),
    (lambda x: tf.assert_none_equal(x, 1.0), [0, 2], [1, 2]),
    (lambda x: tf.assert_less(x, 2.0), [1, 1], [1, 2]),
    (lambda x: tf.assert_less_equal(x, 2.0), [1, 2], [1, 3]),
    (lambda x: tf.assert_greater(x, 0.0), [1, 2], [0, 1]),
    (lambda x: tf.assert_greater_equal(x, 0.0), [0, 2], [-1, 1]),
    (tf.assert_positive, [1, 2], [0, 1]),
    (tf.assert_negative, [-1, -2], [0, -1]),
    (tf.assert_non_negative, [0, 2], [-1, 1]),
    (tf.assert_non_positive, [0, -2], [1, -1]),
]


@pytest.mark.parametrize(("check", "good", "bad"), ASSERTIONS)
def test_assertion_fails_in_the_run(
    check: Callable[..., Any], good: list[float], bad: list[float], session: tf.Session
) -> None:
    x = tf.placeholder(tf.float32, [None])
    with tf.control_dependencies([check(x)]):
        y = tf.identity(x)
    assert session.run(y, {x: good}).tolist() == good
    with pytest.raises(tf.errors.InvalidArgumentError, match="must hold everywhere"):
        session.run(y, {x: bad})


def test_assertion_known_to_fail_raises_at_once(session: tf.Session) -> None:
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"assert_positive: sizes; x > y is false for x = \[1 0\]"):
        tf.assert_positive([1, 0], message="sizes")


def test_assertion_of_a_rank(session: tf.Session) -> None:
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"has shape \(2, 2\); it must have rank 3"):
        tf.assert_rank(X, 3)
    x = tf.placeholder(tf.float32, None)
    check = tf.assert_rank(x, 1)
    session.run(check, {x: [1.0]})
    with pytest.raises(tf.errors.InvalidArgumentError):
        session.run(check, {x: 1.0})


def test_norm_carries_its_name(session: tf.Session) -> None:
    assert [tf.norm(X).op.name, tf.norm(X, name="length").op.name] == ["norm", "length"]


def test_an_identity_matrix_of_an_unknown_size_has_a_rank() -> None:
    n = tf.placeholder(tf.int32, [])
    assert [tf.eye(n).shape.as_list(), tf.eye(n, 3).shape.as_list()] == [[None, None], [None, 3]]
    assert tf.eye(n, batch_shape=[2]).shape.as_list() == [2, None, None]
