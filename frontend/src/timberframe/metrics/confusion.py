"""Metrics that count right and wrong decisions."""

from __future__ import annotations

from typing import Any

from timberframe.api.arrays import reshape
from timberframe.api.framework import control_dependencies, name_scope
from timberframe.api.reduction import reduce_max
from timberframe.api.selection import cast
from timberframe.metrics.state import added, fitted, metric, metric_variable, ratio, total
from timberframe_core.dtypes import bool_, float32, float64, int32, int64
from timberframe_core.graph.apply import apply_op, convert_to_tensor


def _count(label: bool, prediction: bool, labels: Any, predictions: Any, weights: Any) -> tuple[Any, Any]:
    """Returns the sum of weights where label and prediction are as said."""
    made, wanted, weights = fitted(cast(predictions, bool_), cast(labels, bool_), weights)
    sides = [apply_op("Equal", [wanted, label]), apply_op("Equal", [made, prediction])]
    hits = cast(apply_op("LogicalAnd", sides), float32)
    if weights is not None:
        hits = apply_op("Mul", [hits, cast(weights, float32)])
    counts = metric_variable([], name="count")
    update = added(counts, total(hits))
    return counts.value(), update


@metric("true_positives")
def true_positives(labels: Any, predictions: Any, weights: Any = None) -> tuple[Any, Any]:
    """How often label and prediction are true: (value, update); see `mean` for the other arguments."""
    return _count(True, True, labels, predictions, weights)


@metric("true_negatives")
def true_negatives(labels: Any, predictions: Any, weights: Any = None) -> tuple[Any, Any]:
    """How often label and prediction are false: (value, update); see `mean` for the other arguments."""
    return _count(False, False, labels, predictions, weights)


@metric("false_positives")
def false_positives(labels: Any, predictions: Any, weights: Any = None) -> tuple[Any, Any]:
    """How often a prediction is true and its label false: (value, update); see `mean` for the other arguments."""
    return _count(False, True, labels, predictions, weights)


@metric("false_negatives")
def false_negatives(labels: Any, predictions: Any, weights: Any = None) -> tuple[Any, Any]:
    """How often a prediction is false and its label true: (value, update); see `mean` for the other arguments."""
    return _count(True, False, labels, predictions, weights)


@metric("precision")
def precision(labels: Any, predictions: Any, weights: Any = None) -> tuple[Any, Any]:
    """The part of true predictions whose label is true; see `mean` for the other arguments and the result."""
    hits, more_hits = true_positives(labels, predictions, weights)
    false, more_false = false_positives(labels, predictions, weights)
    return ratio(hits, hits + false), ratio(more_hits, more_hits + more_false)


@metric("recall")
def recall(labels: Any, predictions: Any, weights: Any = None) -> tuple[Any, Any]:
    """The part of true labels whose prediction is true; see `mean` for the other arguments and the result."""
    hits, more_hits = true_positives(labels, predictions, weights)
    missed, more_missed = false_negatives(labels, predictions, weights)
    return ratio(hits, hits + missed), ratio(more_hits, more_hits + more_missed)


def confusion_matrix(
    labels: Any,
    predictions: Any,
    num_classes: Any = None,
    dtype: Any = int32,
    name: str | None = None,
    weights: Any = None,
) -> Any:
    """[classes, classes]: how often row's label came with column's prediction; weights: of each.

    num_classes: one more than the largest class if None.
    """

    with name_scope(name, "confusion_matrix", [labels, predictions, weights]):
        made, wanted, weights = fitted(predictions, labels, weights)
        made, wanted = cast(made, int64), cast(wanted, int64)
        if num_classes is None:
            num_classes = apply_op("AddV2", [apply_op("Maximum", [reduce_max(made), reduce_max(wanted)]), 1])
        classes = cast(convert_to_tensor(num_classes), int64)
        ones = apply_op("OnesLike", [cast(made, dtype)])
        values = ones if weights is None else apply_op("Mul", [cast(weights, dtype), ones])
        places = apply_op("Pack", [[wanted, made]], {"axis": 1})
        return apply_op("ScatterNd", [places, values, apply_op("Pack", [[classes, classes]])])


def streaming_confusion_matrix(labels: Any, predictions: Any, num_classes: int, weights: Any = None) -> tuple[Any, Any]:
    """Returns the variable of a confusion matrix over all batches, and its update; float64 [num_classes, num_classes].

    TensorFlow has it in a module of its own, from which metrics of several classes import it.
    """
    total_matrix = metric_variable([num_classes, num_classes], float64, "total_confusion_matrix")
    flat = [reshape(cast(x, int64), [-1]) for x in (labels, predictions)]
    scale = None if weights is None else reshape(weights, [-1])
    now = confusion_matrix(flat[0], flat[1], num_classes, float64, weights=scale)
    return total_matrix, added(total_matrix, now)


def _sums(matrix: Any) -> tuple[Any, Any, Any]:
    """By columns, by rows, and the diagonal, as float32."""
    sums = [cast(apply_op("Sum", [matrix, [axis]]), float32) for axis in (0, 1)]
    return sums[0], sums[1], cast(apply_op("MatrixDiagPart", [matrix]), float32)


@metric("mean_iou")
def mean_iou(labels: Any, predictions: Any, num_classes: int, weights: Any = None) -> tuple[Any, Any]:
    """The mean over classes of intersection over union; the update gives the confusion matrix."""
    matrix, update = streaming_confusion_matrix(labels, predictions, num_classes, weights)
    columns, rows, diagonal = _sums(matrix.value())
    union = columns + rows - diagonal
    present = total(cast(apply_op("NotEqual", [union, 0]), float32))
    return ratio(total(ratio(diagonal, union)), present), update


@metric("mean_accuracy")
def mean_per_class_accuracy(labels: Any, predictions: Any, num_classes: int, weights: Any = None) -> tuple[Any, Any]:
    """The mean over classes of how often a label's prediction equals it; the update gives the classes' accuracies."""
    made, wanted, weights = fitted(predictions, labels, weights)
    flat = [reshape(x, [-1]) for x in (wanted, cast(made, wanted.dtype))]
    scale = apply_op("OnesLike", [cast(flat[0], float32)])
    if weights is not None:
        scale = apply_op("Mul", [scale, reshape(cast(weights, float32), [-1])])
    right = apply_op("Mul", [cast(apply_op("Equal", flat), float32), scale])
    counts, hits = (metric_variable([num_classes], name=n) for n in ("total", "count"))
    places = cast(flat[0], int64)
    with control_dependencies([right]):
        new_counts = counts.scatter_nd_add(places[:, None], scale)
        new_hits = hits.scatter_nd_add(places[:, None], right)
    every = ratio(new_hits, new_counts)
    return apply_op("Mean", [ratio(hits.value(), counts.value()), [0]]), every
