"""tf.contrib.metrics and tf.contrib.losses, which take the predictions first."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import timberframe as tf

metrics, losses = tf.contrib.metrics, tf.contrib.losses
RNG = np.random.default_rng(2)
MADE, WANTED = RNG.random((2, 4)).astype(np.float32), RNG.integers(0, 2, (2, 4)).astype(np.float32)


@pytest.mark.parametrize(
    ("loss", "same"),
    [
        (lambda: losses.mean_squared_error(MADE, WANTED), lambda: tf.losses.mean_squared_error(WANTED, MADE)),
        (lambda: losses.absolute_difference(MADE, WANTED), lambda: tf.losses.absolute_difference(WANTED, MADE)),
        (lambda: losses.log_loss(MADE, WANTED), lambda: tf.losses.log_loss(WANTED, MADE)),
        (
            lambda: losses.sigmoid_cross_entropy(MADE, WANTED, label_smoothing=0.1),
            lambda: tf.losses.sigmoid_cross_entropy(WANTED, MADE, label_smoothing=0.1),
        ),
        (
            lambda: losses.softmax_cross_entropy(MADE, WANTED, [1.0, 3.0]),
            lambda: tf.losses.softmax_cross_entropy(WANTED, MADE, [1.0, 3.0]),
        ),
        (
            lambda: losses.sparse_softmax_cross_entropy(MADE, [[1], [3]]),
            lambda: tf.losses.sparse_softmax_cross_entropy([1, 3], MADE),
        ),
        (lambda: losses.cosine_distance(MADE, WANTED, 1), lambda: tf.losses.cosine_distance(WANTED, MADE, 1)),
        (
            lambda: losses.mean_squared_error(MADE, WANTED, [1.0, 0.0]),
            lambda: tf.losses.mean_squared_error(WANTED[:1], MADE[:1]),
        ),
    ],
)
def test_losses_are_those_of_tf_losses(session: tf.Session, loss: Callable[[], Any], same: Callable[[], Any]) -> None:
    a, b = session.run([loss(), same()])
    assert a == pytest.approx(b)
    assert len(tf.losses.get_losses()) == 2


def test_slim_has_these_losses(session: tf.Session) -> None:
    slim = tf.contrib.slim
    a = slim.losses.softmax_cross_entropy(logits=MADE, onehot_labels=WANTED)
    assert session.run(a) == pytest.approx(session.run(tf.losses.softmax_cross_entropy(WANTED, MADE)))
    assert tf.losses.get_losses()[0] is a


def test_hinge_loss_is_one_for_each_element(session: tf.Session) -> None:
    y = session.run(losses.hinge_loss(MADE, WANTED))
    np.testing.assert_allclose(y, np.maximum(0, 1 - (2 * WANTED - 1) * MADE), rtol=1e-6)
    assert tf.losses.get_losses() == []


def test_pairs_of_errors(session: tf.Session) -> None:
    ours, theirs = losses.mean_pairwise_squared_error(MADE, WANTED), tf.losses.mean_pairwise_squared_error(WANTED, MADE)
    errors = MADE - WANTED
    squares = [[(a - b) ** 2 for i, a in enumerate(row) for b in row[i + 1 :]] for row in errors]
    assert session.run([ours, theirs]) == pytest.approx([2 * errors.var(1).sum(), np.mean(squares, 1).sum()], rel=1e-4)


def test_pairs_of_elements_that_count(session: tf.Session) -> None:
    y = tf.losses.mean_pairwise_squared_error([[1.0, 5.0]], [[3.0, 4.0]], weights=[[2.0]])
    assert session.run([y, tf.losses.mean_pairwise_squared_error([[1.0]], [[3.0]])]) == [2 * 9.0, 0.0]


def both(session: tf.Session, made: Any) -> list[Any]:
    """Returns the update and the value after it."""
    session.run(tf.local_variables_initializer())
    value, update = made
    return [session.run(update), session.run(value)]


@pytest.mark.parametrize(
    ("made", "wanted"),
    [
        (lambda: metrics.streaming_accuracy([1, 2, 3], [1, 2, 4]), 2 / 3),
        (lambda: metrics.streaming_precision([1, 1, 0], [1, 0, 1]), 1 / 2),
        (lambda: metrics.streaming_recall([1, 0, 0, 0], [1, 1, 1, 1], [2.0, 1.0, 1.0, 1.0]), 2 / 5),
        (lambda: metrics.streaming_mean_squared_error([1.0, 2.0], [1.0, 5.0]), 4.5),
        (lambda: metrics.streaming_mean([1.0, 2.0]), 1.5),
        (lambda: metrics.streaming_percentage_less([1.0, 2.0], 1.5), 0.5),
        (lambda: metrics.streaming_false_positive_rate([1, 1, 0, 0], [0, 1, 0, 0]), 1 / 3),
        (lambda: metrics.streaming_false_negative_rate([1, 0, 0, 0], [1, 1, 0, 0]), 1 / 2),
        (lambda: metrics.streaming_recall_at_k([[0.1, 0.5, 0.4], [0.7, 0.1, 0.2]], [2, 1], 2), 1 / 2),
        (lambda: metrics.streaming_sparse_recall_at_k([[0.1, 0.5, 0.4]], [[2, 0]], 2), 1 / 2),
        (lambda: metrics.sparse_recall_at_top_k(np.int64([[2, 0]]), np.int64([[1, 2]])), 1 / 2),
        (lambda: metrics.streaming_sparse_precision_at_top_k(np.int64([[1, 2]]), np.int64([[2, 0]])), 1 / 2),
        (lambda: metrics.count([1.0, 2.0, 3.0], [1.0, 0.0, 2.5]), 3.5),
        (lambda: metrics.count([[1.0, 2.0]]), 2.0),
        (lambda: metrics.cohen_kappa([0, 1, 1, 2], [0, 1, 2, 2], 3), (3 - 1.25) / (4 - 1.25)),
        (lambda: metrics.cohen_kappa([0, 1, 1], [0, 1, 0], 2, [1.0, 1.0, 0.0]), 1.0),
        (lambda: tf.metrics.average_precision_at_k(np.int64([[2, 0]]), [[0.1, 0.5, 0.4]], 2), 1 / 4),
    ],
)  # fmt: skip
def test_metrics(session: tf.Session, made: Callable[[], Any], wanted: float) -> None:
    assert both(session, made()) == pytest.approx([wanted, wanted])


def test_covariance_over_batches(session: tf.Session) -> None:
    x, y = tf.placeholder(tf.float32, [None]), tf.placeholder(tf.float32, [None])
    (value, update), (_, r) = metrics.streaming_covariance(x, y), metrics.streaming_pearson_correlation(x, y)
    session.run(tf.local_variables_initializer())
    assert np.isnan(session.run(value))
    data = RNG.random((2, 9)).astype(np.float32) + 5
    for part in (slice(0, 2), slice(2, 3), slice(3, 9)):
        got = session.run([update, r], {x: data[0, part], y: data[1, part]})
    np.testing.assert_allclose(got, [np.cov(data)[0, 1], np.corrcoef(data)[0, 1]], rtol=1e-3)
    assert session.run(value) == got[0]


def test_labels_as_a_sparse_tensor(session: tf.Session) -> None:
    labels = tf.SparseTensor([[0, 0], [0, 1], [1, 0]], np.int64([0, 2, 1]), [2, 2])
    scores = [[0.1, 0.5, 0.4], [0.7, 0.2, 0.1]]
    assert both(session, tf.metrics.recall_at_k(labels, scores, 2)) == pytest.approx([2 / 3, 2 / 3])


def test_metrics_put_together(session: tf.Session) -> None:
    made = {"mean": metrics.streaming_mean([1.0]), "accuracy": metrics.streaming_accuracy([1], [1])}
    values, updates = metrics.aggregate_metric_map(made)
    assert (values, updates) == ({k: v[0] for k, v in made.items()}, {k: v[1] for k, v in made.items()})
    assert metrics.aggregate_metrics(*made.values()) == ([v for v, _ in made.values()], [u for _, u in made.values()])


def test_accuracy_of_one_batch(session: tf.Session) -> None:
    made = [metrics.accuracy([1, 2], [1, 3]), metrics.accuracy([1, 2], [1, 3], [3.0, 1.0])]
    assert session.run(made) == [0.5, 0.75]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: losses.mean_squared_error(MADE[0], WANTED[0], np.ones((4, 1))), "must not have more axes"),
        (lambda: losses.mean_squared_error(MADE), "labels is None"),
        (lambda: metrics.cohen_kappa([0], [0], 1), "num_classes is 1"),
        (lambda: tf.metrics.average_precision_at_k([[1]], [[0.5]], 0), "k is 0"),
    ],
)
def test_wrong_arguments(call: Callable[[], Any], message: str) -> None:
    with pytest.raises(tf.errors.InvalidArgumentError, match=message):
        call()
