"""Functions that need the order of dimensions, on tensors whose rank is known only in the run."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import timberframe as tf

X = np.array([[3.0, 1.0, 2.0], [1.0, 5.0, 4.0]], np.float32)
CUBE = np.arange(24, dtype=np.float32).reshape(2, 3, 4)


@pytest.fixture(autouse=True)
def _graph() -> Iterator[None]:
    with tf.Graph().as_default():
        yield


def run(build: Callable[..., Any], *arrays: np.ndarray) -> Any:
    """Returns what build gives for tensors of unknown rank."""
    fed = {tf.placeholder(a.dtype, None): a for a in arrays}
    with tf.Session(graph=tf.get_default_graph()) as session:
        return session.run(build(*fed), fed)


@pytest.mark.parametrize("axis", [0, 1, -1, -2])
@pytest.mark.parametrize("direction", ["ASCENDING", "DESCENDING"])
def test_sort(axis: int, direction: str) -> None:
    step = 1 if direction == "ASCENDING" else -1
    found = run(lambda x: tf.sort(x, axis, direction), X)
    np.testing.assert_array_equal(found, np.flip(np.sort(X, axis), axis) if step < 0 else np.sort(X, axis))


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_argsort(axis: int) -> None:
    np.testing.assert_array_equal(run(lambda x: tf.argsort(x, axis), X), np.argsort(X, axis))


def test_sort_along_an_axis_that_is_not_there_is_refused() -> None:
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"tf\.sort: axis 2 is outside the input's rank 2"):
        tf.sort(tf.constant(X), 2)


@pytest.mark.parametrize(
    ("axes", "a", "b"),
    [
        (1, CUBE, CUBE.T),
        (2, CUBE, CUBE.reshape(3, 4, 2)),
        (0, X, X),
        ([[1], [1]], X, X),
        ([[0, 2], [2, 1]], CUBE, CUBE.reshape(3, 4, 2)),
        ([[-1, 0], [-2, 2]], CUBE, CUBE.reshape(3, 4, 2)),
        ([[], []], X, CUBE),
    ],
)  # fmt: skip
def test_tensordot_is_numpys(axes: Any, a: np.ndarray, b: np.ndarray) -> None:
    np.testing.assert_allclose(run(lambda x, y: tf.tensordot(x, y, axes), a, b), np.tensordot(a, b, axes))


def test_tensordot_over_axes_that_a_run_computes() -> None:
    with tf.Session() as session:
        axes = tf.placeholder(tf.int32, [2, 1])
        found = session.run(tf.tensordot(X, X, axes), {axes: [[1], [1]]})
    np.testing.assert_allclose(found, X @ X.T)


def test_tensordot_splits_axes_that_a_run_computes_once() -> None:
    tf.tensordot(X, X, tf.placeholder(tf.int32, [2, 1]))
    assert [op.type for op in tf.get_default_graph().get_operations()].count("Unpack") == 1


def test_tensordot_of_unknown_ranks_has_a_gradient() -> None:
    (found,) = run(lambda x, y: tf.gradients(tf.tensordot(x, y, [[1], [0]]), [x]), X, CUBE.reshape(3, 2, 4))
    np.testing.assert_allclose(found, np.broadcast_to(CUBE.reshape(3, 8).sum(1), X.shape))


@pytest.mark.parametrize("axes", [3, -1, [[0, 0], [0, 1]]])
def test_tensordot_refuses_axes_that_the_ranks_do_not_have(axes: Any) -> None:
    with pytest.raises(tf.errors.InvalidArgumentError, match="tensordot: axes"):
        tf.tensordot(tf.constant(X), tf.constant(X), axes)


def test_embedding_lookup_clips_whole_rows() -> None:
    found = run(lambda x, ids: tf.nn.embedding_lookup(x, ids, max_norm=1.0), X, np.int32([1, 0]))
    np.testing.assert_allclose(np.linalg.norm(found, axis=1), [1, 1], rtol=1e-6)


@pytest.mark.parametrize("axis", [0, 1, -2])
@pytest.mark.parametrize("known", [True, False], ids=["known", "unknown"])
def test_softmax_cross_entropy_along_any_axis(axis: int, known: bool) -> None:
    def entropy(y: Any) -> Any:
        logits = tf.ensure_shape(y, CUBE.shape) if known else y
        return tf.nn.softmax_cross_entropy_with_logits_v2(labels=logits / 24.0, logits=logits, axis=axis)

    shifted = CUBE - CUBE.max(axis, keepdims=True)
    wanted = -(CUBE / 24 * (shifted - np.log(np.exp(shifted).sum(axis, keepdims=True)))).sum(axis)
    np.testing.assert_allclose(run(entropy, CUBE), wanted, rtol=1e-4)
