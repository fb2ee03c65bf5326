"""tf.metrics: values over several batches."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import timberframe as tf

pytestmark = pytest.mark.usefixtures("session")

LABELS = np.array([[0, 1, 1, 0], [1, 1, 0, 0]])
SCORES = np.array([[0.1, 0.9, 0.4, 0.8], [0.7, 0.2, 0.3, 0.6]], np.float32)


def over(session: tf.Session, metric: Callable[[Any, Any], Any]) -> tuple[Any, Any]:
    """Returns the last update's value, and the value after it, of a metric over two batches."""
    labels, scores = tf.placeholder(tf.int64, [4]), tf.placeholder(tf.float32, [4])
    value, update = metric(labels, scores)
    session.run(tf.local_variables_initializer())
    for i in range(2):
        last = session.run(update, {labels: LABELS[i], scores: SCORES[i]})
    return last, session.run(value)


@pytest.mark.parametrize(
    ("metric", "wanted"),
    [
        (lambda y, p: tf.metrics.mean(p), SCORES.mean()),
        (lambda y, p: tf.metrics.mean_tensor(p), SCORES.mean(0)),
        (lambda y, p: tf.metrics.accuracy(y, p > 0.5), ((SCORES > 0.5) == LABELS).mean()),
        (lambda y, p: tf.metrics.mean_absolute_error(y, p), np.abs(SCORES - LABELS).mean()),
        (lambda y, p: tf.metrics.root_mean_squared_error(y, p), np.sqrt(((SCORES - LABELS) ** 2).mean())),
        (lambda y, p: tf.metrics.percentage_below(p, 0.35), 0.375),
        (lambda y, p: tf.metrics.precision(y, p > 0.5), 2 / 4),
        (lambda y, p: tf.metrics.recall(y, p > 0.5), 2 / 4),
        (lambda y, p: tf.metrics.true_positives(y, p > 0.5), 2),
        (lambda y, p: tf.metrics.false_negatives_at_thresholds(y, p, [0.15, 0.5]), [0, 2]),
        (lambda y, p: tf.metrics.recall_at_thresholds(y, p, [0.15, 0.5]), [1, 0.5]),
        (lambda y, p: tf.metrics.auc(y, p), 10 / 16),
    ],
)  # fmt: skip
def test_values_are_of_all_batches(session: tf.Session, metric: Any, wanted: Any) -> None:
    for got in over(session, metric):
        np.testing.assert_allclose(got, wanted, rtol=1e-4, atol=1e-6)


def test_weights_leave_values_out(session: tf.Session) -> None:
    _, value = over(session, lambda y, p: tf.metrics.mean(p, tf.cast(y, tf.float32)))
    assert value == pytest.approx(SCORES[LABELS == 1].mean())


def test_initializing_again_forgets(session: tf.Session) -> None:
    value, update = tf.metrics.mean([1.0, 2.0])
    session.run(tf.local_variables_initializer())
    session.run(update)
    session.run(tf.local_variables_initializer())
    assert session.run(value) == 0.0


def test_intersection_over_union(session: tf.Session) -> None:
    value, update = tf.metrics.mean_iou([0, 1, 1], [0, 0, 1], 2)
    session.run(tf.local_variables_initializer())
    assert session.run(update).tolist() == [[1, 0], [1, 1]]
    assert session.run(value) == pytest.approx(0.5)


def test_a_confusion_matrix_grows_from_batch_to_batch() -> None:
    from timberframe.metrics.confusion import streaming_confusion_matrix

    labels = tf.placeholder(tf.int64, [None])
    value, update = streaming_confusion_matrix(labels, [0, 2, 2], 3, [1.0, 1.0, 0.5])
    with tf.Session() as session:
        session.run(tf.local_variables_initializer())
        session.run(update, {labels: [0, 1, 2]})
        session.run(update, {labels: [0, 0, 0]})
        assert session.run(value).tolist() == [[2, 0, 1.5], [0, 0, 1], [0, 0, 0.5]]


def test_the_best_predictions(session: tf.Session) -> None:
    scores = [[0.1, 0.7, 0.2], [0.5, 0.1, 0.4]]
    recall, precision = tf.metrics.recall_at_k([[2], [1]], scores, 2), tf.metrics.precision_at_k([[2], [1]], scores, 2)
    session.run(tf.local_variables_initializer())
    assert session.run([recall[1], precision[1]]) == [0.5, 0.25]


def test_collections_get_value_and_update(session: tf.Session) -> None:
    value, update = tf.metrics.mean(1.0, metrics_collections="values", updates_collections=["updates"])
    assert tf.get_collection("values") == [value]
    assert tf.get_collection("updates") == [update]
    assert [v.op.name for v in tf.get_collection(tf.GraphKeys.METRIC_VARIABLES)] == ["mean/total", "mean/count"]


def test_confusion_matrix(session: tf.Session) -> None:
    assert session.run(tf.confusion_matrix([0, 1, 1], [0, 0, 1])).tolist() == [[1, 0], [1, 1]]
    assert session.run(tf.confusion_matrix([0], [0], 2, weights=[0.5], dtype=tf.float32)).tolist() == [[0.5, 0], [0, 0]]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: tf.metrics.accuracy(np.ones((2, 3, 4)), np.ones(2)), r"predictions have shape \(2,\) and labels"),
        (lambda: tf.metrics.accuracy(np.ones(2), np.ones(3)), "incompatible"),
        (lambda: tf.metrics.mean(np.ones(2), np.ones((2, 2, 2))), r"weights have shape \(2, 2, 2\) for values"),
        (lambda: tf.metrics.auc(np.ones(2), np.ones(2), curve="X"), "curve is 'X'"),
        (lambda: tf.metrics.auc(np.ones(2), np.ones(2), num_thresholds=1), "num_thresholds is 1; it must be 2 or more"),
        (lambda: tf.metrics.sensitivity_at_specificity(np.ones(2), np.ones(2), 2.0), "2.0 is given; a number in"),
    ],
)
def test_wrong_arguments(call: Any, message: str) -> None:
    with pytest.raises(tf.errors.InvalidArgumentError, match=message):
        call()
