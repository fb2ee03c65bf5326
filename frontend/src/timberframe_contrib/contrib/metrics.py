"""`tf.contrib.metrics`: the metrics of `tf.metrics` with the predictions first, and some that it lacks."""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Mapping
from typing import Any

import numpy as np

from timberframe import metrics
from timberframe.api.comparison import equal, less_equal
from timberframe.api.framework import control_dependencies, name_scope
from timberframe.api.reduction import reduce_mean, reduce_sum
from timberframe.api.search import in_top_k
from timberframe.api.selection import cast, where_v2
from timberframe.api.sets import set_difference as set_difference
from timberframe.api.sets import set_intersection as set_intersection
from timberframe.api.sets import set_size as set_size
from timberframe.api.sets import set_union as set_union
from timberframe.boundary import guard
from timberframe.metrics.confusion import confusion_matrix as confusion_matrix
from timberframe.metrics.state import Metric, added, fitted, metric, metric_variable, ratio, total, weighted
from timberframe.metrics.thresholds import f1_score as f1_score
from timberframe_core.dtypes import float32, int64
from timberframe_core.errors import InvalidArgumentError
from timberframe_core.graph.apply import apply_op, convert_to_tensor

__all__ = [
    "accuracy", "aggregate_metric_map", "aggregate_metrics", "cohen_kappa", "confusion_matrix", "count", "f1_score",
    "set_difference", "set_intersection", "set_size", "set_union", "sparse_recall_at_top_k", "streaming_accuracy",
    "streaming_auc", "streaming_covariance",
    "streaming_false_negative_rate", "streaming_false_negatives", "streaming_false_negatives_at_thresholds",
    "streaming_false_positive_rate", "streaming_false_positives", "streaming_false_positives_at_thresholds",
    "streaming_mean", "streaming_mean_absolute_error", "streaming_mean_cosine_distance", "streaming_mean_iou",
    "streaming_mean_relative_error", "streaming_mean_squared_error", "streaming_mean_tensor",
    "streaming_pearson_correlation", "streaming_percentage_less", "streaming_precision",
    "streaming_precision_at_thresholds", "streaming_recall", "streaming_recall_at_k",
    "streaming_recall_at_thresholds", "streaming_root_mean_squared_error",
    "streaming_sensitivity_at_specificity", "streaming_sparse_average_precision_at_k",
    "streaming_sparse_precision_at_k", "streaming_sparse_precision_at_top_k", "streaming_sparse_recall_at_k",
    "streaming_specificity_at_sensitivity", "streaming_true_negatives", "streaming_true_negatives_at_thresholds",
    "streaming_true_positives", "streaming_true_positives_at_thresholds",
]  # fmt: skip


def _predictions_first(name: str, of: Metric) -> Metric:
    """Returns a metric whose first two arguments, labels and predictions, come the other way round."""
    own = inspect.signature(of)
    labels, predictions, *others = own.parameters.values()
    signature = own.replace(parameters=[predictions, labels, *others])

    @functools.wraps(of)
    def function(*args: Any, **kwargs: Any) -> tuple[Any, Any]:
        return of(**signature.bind(*args, **kwargs).arguments)

    function.__name__ = function.__qualname__ = name
    function.__module__ = __name__
    function.__doc__ = f"`tf.metrics.{of.__name__}` with the predictions first."
    function.__signature__ = signature  # type: ignore[attr-defined]  # what inspect reads
    return function


streaming_mean = metrics.mean
streaming_mean_tensor = metrics.mean_tensor
streaming_percentage_less = metrics.percentage_below
streaming_accuracy = _predictions_first("streaming_accuracy", metrics.accuracy)
streaming_auc = _predictions_first("streaming_auc", metrics.auc)
streaming_false_negatives = _predictions_first("streaming_false_negatives", metrics.false_negatives)
streaming_false_negatives_at_thresholds = _predictions_first(
    "streaming_false_negatives_at_thresholds", metrics.false_negatives_at_thresholds
)
streaming_false_positives = _predictions_first("streaming_false_positives", metrics.false_positives)
streaming_false_positives_at_thresholds = _predictions_first(
    "streaming_false_positives_at_thresholds", metrics.false_positives_at_thresholds
)
streaming_mean_absolute_error = _predictions_first("streaming_mean_absolute_error", metrics.mean_absolute_error)
streaming_mean_cosine_distance = _predictions_first("streaming_mean_cosine_distance", metrics.mean_cosine_distance)
streaming_mean_iou = _predictions_first("streaming_mean_iou", metrics.mean_iou)
streaming_mean_relative_error = _predictions_first("streaming_mean_relative_error", metrics.mean_relative_error)
streaming_mean_squared_error = _predictions_first("streaming_mean_squared_error", metrics.mean_squared_error)
streaming_precision = _predictions_first("streaming_precision", metrics.precision)
streaming_precision_at_thresholds = _predictions_first(
    "streaming_precision_at_thresholds", metrics.precision_at_thresholds
)
streaming_recall = _predictions_first("streaming_recall", metrics.recall)
streaming_recall_at_thresholds = _predictions_first("streaming_recall_at_thresholds", metrics.recall_at_thresholds)
streaming_root_mean_squared_error = _predictions_first(
    "streaming_root_mean_squared_error", metrics.root_mean_squared_error
)
streaming_sensitivity_at_specificity = _predictions_first(
    "streaming_sensitivity_at_specificity", metrics.sensitivity_at_specificity
)
streaming_sparse_average_precision_at_k = _predictions_first(
    "streaming_sparse_average_precision_at_k", metrics.average_precision_at_k
)
streaming_sparse_precision_at_k = _predictions_first("streaming_sparse_precision_at_k", metrics.precision_at_k)
streaming_sparse_recall_at_k = _predictions_first("streaming_sparse_recall_at_k", metrics.recall_at_k)
streaming_specificity_at_sensitivity = _predictions_first(
    "streaming_specificity_at_sensitivity", metrics.specificity_at_sensitivity
)
streaming_true_negatives = _predictions_first("streaming_true_negatives", metrics.true_negatives)
streaming_true_negatives_at_thresholds = _predictions_first(
    "streaming_true_negatives_at_thresholds", metrics.true_negatives_at_thresholds
)
streaming_true_positives = _predictions_first("streaming_true_positives", metrics.true_positives)
streaming_true_positives_at_thresholds = _predictions_first(
    "streaming_true_positives_at_thresholds", metrics.true_positives_at_thresholds
)


def sparse_recall_at_top_k(
    labels: Any,
    top_k_predictions: Any,
    class_id: int | None = None,
    weights: Any = None,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> tuple[Any, Any]:
    """`tf.metrics.recall_at_top_k` of the classes top_k_predictions [..., k]."""
    k = convert_to_tensor(top_k_predictions).shape.as_list()[-1]
    return metrics.recall_at_top_k(
        labels, top_k_predictions, k, class_id, weights, metrics_collections, updates_collections, name
    )


def streaming_sparse_precision_at_top_k(
    top_k_predictions: Any,
    labels: Any,
    class_id: int | None = None,
    weights: Any = None,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> tuple[Any, Any]:
    """`tf.metrics.precision_at_top_k` of the classes top_k_predictions [..., k]."""
    k = convert_to_tensor(top_k_predictions).shape.as_list()[-1]
    return metrics.precision_at_top_k(
        labels, top_k_predictions, k, class_id, weights, metrics_collections, updates_collections, name
    )


def streaming_recall_at_k(
    predictions: Any,
    labels: Any,
    k: int,
    weights: Any = None,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> tuple[Any, Any]:
    """Returns how often the label, one class for each row, is among the k best of predictions [batch, classes]."""
    hits = cast(in_top_k(predictions, labels, k), float32)
    return metrics.mean(hits, weights, metrics_collections, updates_collections, name or f"recall_at_{k}")


def _rate(part: Metric, rest: Metric, predictions: Any, labels: Any, weights: Any) -> tuple[Any, Any]:
    pairs = zip(part(labels, predictions, weights), rest(labels, predictions, weights), strict=True)
    value, update = (ratio(a, a + b) for a, b in pairs)
    return value, update


@metric("false_positive_rate")
def streaming_false_positive_rate(predictions: Any, labels: Any, weights: Any = None) -> tuple[Any, Any]:
    """The part of the false labels whose prediction is true; see `tf.metrics.mean` for the other arguments."""
    return _rate(metrics.false_positives, metrics.true_negatives, predictions, labels, weights)


@metric("false_negative_rate")
def streaming_false_negative_rate(predictions: Any, labels: Any, weights: Any = None) -> tuple[Any, Any]:
    """The part of the true labels whose prediction is false; see `tf.metrics.mean` for the other arguments."""
    return _rate(metrics.false_negatives, metrics.true_positives, predictions, labels, weights)


@metric("count")
def count(values: Any, weights: Any = None) -> tuple[Any, Any]:
    """How many values there were, or the sum of their weights; see `tf.metrics.mean` for the other arguments."""
    counted = metric_variable([], float32, "count")
    _, scales = weighted(cast(values, float32), weights)
    return counted.value(), added(counted, total(scales))


@metric("cohen_kappa")
def cohen_kappa(labels: Any, predictions_idx: Any, num_classes: int, weights: Any = None) -> tuple[Any, Any]:
    """Cohen 1960: how far labels and predictions agree beyond chance, 1 where they always do.

    labels, predictions_idx: classes, [batch] or [batch, 1]. See `tf.metrics.mean` for the other arguments.
    """
    if num_classes < 2:
        raise InvalidArgumentError(
            f"tf.contrib.metrics.cohen_kappa: num_classes is {num_classes}; 2 at least are required"
        )
    kind = int64 if weights is None else float32
    matrix = confusion_matrix(labels, predictions_idx, num_classes, kind, weights=weights)
    amounts = [apply_op("DiagPart", [matrix]), reduce_sum(matrix, 0), reduce_sum(matrix, 1)]
    counts = [metric_variable([num_classes], kind, name) for name in ("po", "pe_row", "pe_col")]
    new = [added(c, a) for c, a in zip(counts, amounts, strict=True)]
    return _kappa(*[c.value() for c in counts]), _kappa(*new)


def _kappa(agreed: Any, predicted: Any, true: Any) -> Any:
    agreed, predicted, true = (cast(x, float32) for x in (agreed, predicted, true))
    all_of_them: Any = reduce_sum(predicted)
    by_chance: Any = reduce_sum(apply_op("DivNoNan", [predicted * true, all_of_them]))
    right: Any = reduce_sum(agreed)
    return apply_op("DivNoNan", [right - by_chance, all_of_them - by_chance])


@metric("covariance")
def streaming_covariance(predictions: Any, labels: Any, weights: Any = None) -> tuple[Any, Any]:
    """The covariance of all predictions and labels (Chan et al. 1979), NaN for fewer than two of them.

    weights: how often each counts. See `tf.metrics.mean` for the other arguments.
    """
    made, wanted, weights = fitted(cast(predictions, float32), cast(labels, float32), weights)
    counts, mean_made, mean_wanted, sums = (
        metric_variable([], float32, n) for n in ("count", "mean_prediction", "mean_label", "comoment")
    )
    _, scales = weighted(made, weights)
    batch, before = total(scales), counts.value()
    means = [apply_op("DivNoNan", [total(x * scales), batch]) for x in (made, wanted)]
    after = before + batch
    steps = [m - old.value() for m, old in zip(means, (mean_made, mean_wanted), strict=True)]
    between = steps[0] * steps[1] * apply_op("DivNoNan", [before * batch, after])
    within = total((made - means[0]) * (wanted - means[1]) * scales)
    moves = [apply_op("DivNoNan", [step * batch, after]) for step in steps]
    moved = [added(mean, move) for mean, move in zip((mean_made, mean_wanted), moves, strict=True)]
    with control_dependencies(moved):
        new_count, new_sums = added(counts, batch), added(sums, between + within)
    return _unbiased(sums.value(), counts.value()), _unbiased(new_sums, new_count)


def _unbiased(sums: Any, number: Any) -> Any:
    return where_v2(less_equal(number, 1.0), np.float32(np.nan), sums / (number - 1))


@metric("pearson_r")
def streaming_pearson_correlation(predictions: Any, labels: Any, weights: Any = None) -> tuple[Any, Any]:
    """The covariance of predictions and labels, divided by the root of the product of their variances."""
    both = streaming_covariance(predictions, labels, weights)
    own = streaming_covariance(predictions, predictions, weights), streaming_covariance(labels, labels, weights)
    value, update = (
        c / (apply_op("Sqrt", [a]) * apply_op("Sqrt", [b])) for c, a, b in zip(both, *own, strict=True)
    )  # fmt: skip
    return value, update


def accuracy(predictions: Any, labels: Any, weights: Any = None, name: str | None = None) -> Any:
    """Returns the part of predictions that are equal to their labels, in one batch; weights: of each."""
    with name_scope(name, "accuracy"):
        same = cast(equal(predictions, cast(labels, convert_to_tensor(predictions).dtype)), float32)
        if weights is None:
            return reduce_mean(same)
        made, scales = weighted(same, weights)
        return total(made) / total(scales)


def aggregate_metrics(*value_update_tuples: tuple[Any, Any]) -> tuple[list[Any], list[Any]]:
    """Returns the values of several metrics, and their updates."""
    if not value_update_tuples:
        raise InvalidArgumentError("tf.contrib.metrics.aggregate_metrics: no metric is given; one at least is required")
    values, updates = zip(*value_update_tuples, strict=True)
    return list(values), list(updates)


def aggregate_metric_map(names_to_tuples: Mapping[str, tuple[Any, Any]]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Returns the values of metrics by their names, and the updates."""
    values = {name: value for name, (value, _) in names_to_tuples.items()}
    return values, {name: update for name, (_, update) in names_to_tuples.items()}


guard([sys.modules[__name__]], "tf.contrib.metrics")
