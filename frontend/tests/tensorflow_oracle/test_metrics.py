"""tf.metrics gives TensorFlow's values and updates, batch after batch, from variables of the same names."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import timberframe

RNG = np.random.default_rng(0)
CLASSES = RNG.integers(0, 3, (3, 8))
SCORES = RNG.random((3, 8)).astype(np.float32)
TRUTH = RNG.random((3, 8)) < SCORES
WEIGHTS = RNG.random((3, 8)).astype(np.float32)
PAIRS = RNG.integers(0, 5, (3, 8, 2))  # some are no class
ROWS = RNG.random((3, 8, 3)).astype(np.float32)

METRICS: dict[str, Callable[[Any, int, Any], Any]] = {
    "mean": lambda m, i, w: m.mean(SCORES[i], w),
    "mean_tensor": lambda m, i, w: m.mean_tensor(SCORES[i], w),
    "accuracy": lambda m, i, w: m.accuracy(CLASSES[i], CLASSES[i - 1], w),
    "mean_absolute_error": lambda m, i, w: m.mean_absolute_error(SCORES[i], SCORES[i - 1], w),
    "mean_relative_error": lambda m, i, w: m.mean_relative_error(SCORES[i], SCORES[i - 1], np.float32(TRUTH[i]), w),
    "mean_squared_error": lambda m, i, w: m.mean_squared_error(SCORES[i], SCORES[i - 1], w),
    "root_mean_squared_error": lambda m, i, w: m.root_mean_squared_error(SCORES[i], SCORES[i - 1], w),
    "percentage_below": lambda m, i, w: m.percentage_below(SCORES[i], 0.3, w),
    "true_positives": lambda m, i, w: m.true_positives(TRUTH[i], SCORES[i] > 0.5, w),
    "true_negatives": lambda m, i, w: m.true_negatives(TRUTH[i], SCORES[i] > 0.5, w),
    "false_positives": lambda m, i, w: m.false_positives(TRUTH[i], SCORES[i] > 0.5, w),
    "false_negatives": lambda m, i, w: m.false_negatives(TRUTH[i], SCORES[i] > 0.5, w),
    "precision": lambda m, i, w: m.precision(TRUTH[i], SCORES[i] > 0.5, w),
    "recall": lambda m, i, w: m.recall(TRUTH[i], SCORES[i] > 0.5, w),
    "mean_iou": lambda m, i, w: m.mean_iou(CLASSES[i], CLASSES[i - 1], 4, w),
    "mean_per_class_accuracy": lambda m, i, w: m.mean_per_class_accuracy(CLASSES[i], CLASSES[i - 1], 3, w),
    "auc": lambda m, i, w: m.auc(TRUTH[i], SCORES[i], w),
    "auc_pr": lambda m, i, w: m.auc(TRUTH[i], SCORES[i], w, 20, curve="PR", summation_method="careful_interpolation"),
    "auc_minoring": lambda m, i, w: m.auc(TRUTH[i], SCORES[i], w, 20, summation_method="minoring"),
    "auc_thresholds": lambda m, i, w: m.auc(TRUTH[i], SCORES[i], w, thresholds=[0.2, 0.7]),
    "precision_at_thresholds": lambda m, i, w: m.precision_at_thresholds(TRUTH[i], SCORES[i], [0.2, 0.7], w),
    "recall_at_thresholds": lambda m, i, w: m.recall_at_thresholds(TRUTH[i], SCORES[i], [0.2, 0.7], w),
    "true_positives_at_thresholds": lambda m, i, w: m.true_positives_at_thresholds(TRUTH[i], SCORES[i], [0.2], w),
    "false_negatives_at_thresholds": lambda m, i, w: m.false_negatives_at_thresholds(TRUTH[i], SCORES[i], [0.2], w),
    "sensitivity": lambda m, i, w: m.sensitivity_at_specificity(TRUTH[i], SCORES[i], 0.6, w),
    "specificity": lambda m, i, w: m.specificity_at_sensitivity(TRUTH[i], SCORES[i], 0.6, w),
    "recall_at_k": lambda m, i, w: m.recall_at_k(CLASSES[i], ROWS[i], 2, None, w),
    "recall_of_class": lambda m, i, w: m.recall_at_k(CLASSES[i], ROWS[i], 2, 1, w),
    "average_precision": lambda m, i, w: m.average_precision_at_k(PAIRS[i], ROWS[i], 2, w),
    "precision_at_k": lambda m, i, w: m.precision_at_k(CLASSES[i], ROWS[i], 2, None, w),
    "precision_of_class": lambda m, i, w: m.precision_at_k(CLASSES[i], ROWS[i], 2, 1, w),
}


class Tensors:
    """The metrics of a library, with arrays given as tensors, which some of TensorFlow's need."""

    def __init__(self, tf: Any) -> None:
        self.tf = tf

    def __getattr__(self, name: str) -> Any:
        function, constant = getattr(self.tf.metrics, name), self.tf.constant
        return lambda *args, **kwargs: function(
            *(constant(x) if isinstance(x, np.ndarray) else x for x in args), **kwargs
        )


def batches(tf: Any, metric: Callable[[Any, int, Any], Any], weighted: bool) -> tuple[list[Any], list[str]]:
    """Updates and values after each batch, and the names of the variables."""
    found: list[Any] = []
    with tf.Graph().as_default() as graph, tf.Session(graph=graph) as session:
        with tf.variable_scope("first"):
            value, update = metric(Tensors(tf), 0, WEIGHTS[0] if weighted else None)
        names = sorted(v.op.name for v in tf.local_variables())
        session.run(tf.local_variables_initializer())
        for _ in range(2):
            found += [session.run(update), session.run(value)]
    return found, names


@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
@pytest.mark.parametrize("name", METRICS)
def test_values_and_updates(name: str, weighted: bool) -> None:
    tensorflow = pytest.importorskip("tensorflow").compat.v1
    theirs, their_names = batches(tensorflow, METRICS[name], weighted)
    ours, our_names = batches(timberframe, METRICS[name], weighted)
    assert our_names == their_names
    for a, b in zip(theirs, ours, strict=True):
        np.testing.assert_allclose(b, a, rtol=2e-6, atol=1e-7)
        assert np.asarray(b).dtype == np.asarray(a).dtype


def test_confusion_matrix() -> None:
    tensorflow = pytest.importorskip("tensorflow").compat.v1
    for arguments in ({}, {"num_classes": 5}, {"weights": WEIGHTS[0], "dtype": "float32"}):
        made = []
        for tf in (tensorflow, timberframe):
            with tf.Graph().as_default() as graph, tf.Session(graph=graph) as session:
                made.append(session.run(tf.confusion_matrix(CLASSES[0], CLASSES[1], **arguments)))
        np.testing.assert_allclose(made[1], made[0], rtol=1e-6)
