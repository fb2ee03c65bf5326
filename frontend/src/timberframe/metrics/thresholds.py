"""Metrics of decisions by thresholds: precision and recall at several, and areas under curves."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from timberframe.api.arrays import reshape
from timberframe.api.reduction import reduce_sum
from timberframe.api.selection import cast
from timberframe.api.variable_scope import variable_scope
from timberframe.metrics.state import added, fitted, metric, metric_variable, published, ratio
from timberframe_core.dtypes import bool_, float32, int64
from timberframe_core.errors import InvalidArgumentError
from timberframe_core.graph.apply import apply_op

_EPSILON = 1e-7  # how far the outer thresholds lie outside of [0, 1], and what TensorFlow adds to divisors

_SIDES = {"tp": (True, True), "fn": (True, False), "tn": (False, False), "fp": (False, True)}
_NAMES = {"tp": "true_positives", "fn": "false_negatives", "tn": "true_negatives", "fp": "false_positives"}


def _counts(
    labels: Any, predictions: Any, thresholds: Sequence[float], weights: Any, wanted: Sequence[str]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Returns values and updates of the counts at each threshold, by the keys of _SIDES."""
    made, truth, weights = fitted(cast(predictions, float32), cast(labels, bool_), weights)
    flat, true = reshape(made, [1, -1]), reshape(truth, [1, -1])
    limits = np.asarray(thresholds, np.float32)[:, None]
    chosen = apply_op("Greater", [flat, limits])
    scale = None
    if weights is not None:
        wide = apply_op("Mul", [cast(weights, float32), apply_op("OnesLike", [made])])
        scale = reshape(wide, [1, -1])
    values, updates = {}, {}
    for key in wanted:
        label, prediction = _SIDES[key]
        sides = [
            true if label else apply_op("LogicalNot", [true]),
            chosen if prediction else apply_op("LogicalNot", [chosen])
        ]  # fmt: skip
        hits = cast(apply_op("LogicalAnd", sides), float32)
        counts = metric_variable([len(thresholds)], name=_NAMES[key])
        values[key] = counts.value()
        updates[key] = added(counts, reduce_sum(hits if scale is None else hits * scale, 1))
    return values, updates


def _single(key: str, labels: Any, predictions: Any, thresholds: Sequence[float], weights: Any) -> tuple[Any, Any]:
    value, update = _counts(labels, predictions, thresholds, weights, [key])
    return value[key], update[key]


@metric("true_positives")
def true_positives_at_thresholds(
    labels: Any, predictions: Any, thresholds: Sequence[float], weights: Any = None
) -> tuple[Any, Any]:
    """For each threshold how many predictions are above it and have a true label; see `mean` for the others."""
    return _single("tp", labels, predictions, thresholds, weights)


@metric("true_negatives")
def true_negatives_at_thresholds(
    labels: Any, predictions: Any, thresholds: Sequence[float], weights: Any = None
) -> tuple[Any, Any]:
    """For each threshold how many predictions are not above it and have a false label; see `mean` for the others."""
    return _single("tn", labels, predictions, thresholds, weights)


@metric("false_positives")
def false_positives_at_thresholds(
    labels: Any, predictions: Any, thresholds: Sequence[float], weights: Any = None
) -> tuple[Any, Any]:
    """For each threshold how many predictions are above it and have a false label; see `mean` for the others."""
    return _single("fp", labels, predictions, thresholds, weights)


@metric("false_negatives")
def false_negatives_at_thresholds(
    labels: Any, predictions: Any, thresholds: Sequence[float], weights: Any = None
) -> tuple[Any, Any]:
    """For each threshold how many predictions are not above it and have a true label; see `mean` for the others."""
    return _single("fn", labels, predictions, thresholds, weights)


@metric("precision_at_thresholds")
def precision_at_thresholds(
    labels: Any, predictions: Any, thresholds: Sequence[float], weights: Any = None
) -> tuple[Any, Any]:
    """For each threshold the part of predictions above it whose label is true; see `mean` for the others."""
    sides = _counts(labels, predictions, thresholds, weights, ("tp", "fp"))
    value, update = (side["tp"] / (_EPSILON + side["tp"] + side["fp"]) for side in sides)
    return value, update


@metric("recall_at_thresholds")
def recall_at_thresholds(
    labels: Any, predictions: Any, thresholds: Sequence[float], weights: Any = None
) -> tuple[Any, Any]:
    """For each threshold the part of true labels whose prediction is above it; see `mean` for the others."""
    sides = _counts(labels, predictions, thresholds, weights, ("tp", "fn"))
    value, update = (side["tp"] / (_EPSILON + side["tp"] + side["fn"]) for side in sides)
    return value, update


@metric("f1")
def f1_score(labels: Any, predictions: Any, weights: Any = None, num_thresholds: int = 200) -> tuple[Any, Any]:
    """The best F1 score, 2 precision recall / (precision + recall), that any threshold gives; predictions in [0, 1].

    num_thresholds: at even distances. See `mean` for the others.
    """
    sides = _counts(labels, predictions, _even(num_thresholds), weights, ("tp", "fp", "fn"))
    value, update = (_best_f1(side["tp"], side["fp"], side["fn"]) for side in sides)
    return value, update


def _best_f1(tp: Any, fp: Any, fn: Any) -> Any:
    precision, recall = tp / (_EPSILON + tp + fp), tp / (_EPSILON + tp + fn)
    return apply_op("Max", [2.0 * precision * recall / (precision + recall + _EPSILON), 0])


def _even(count: int) -> list[float]:
    """Thresholds at even distances, the first below 0 and the last above 1."""
    if count < 2:
        raise InvalidArgumentError(f"tf.metrics: num_thresholds is {count}; it must be 2 or more")
    return [-_EPSILON, *((i + 1) / (count - 1) for i in range(count - 2)), 1 + _EPSILON]


def auc(
    labels: Any,
    predictions: Any,
    weights: Any = None,
    num_thresholds: int = 200,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    curve: str = "ROC",
    name: str | None = None,
    summation_method: str = "trapezoidal",
    thresholds: Sequence[float] | None = None,
) -> tuple[Any, Any]:
    """Returns the area under a curve, from counts at thresholds: (value, update); predictions are in [0, 1].

    curve: "ROC" or "PR" (precision over recall). summation_method: "trapezoidal", "minoring", "majoring", or
    "careful_interpolation" for PR (Davis and Goadrich 2006). thresholds: those between 0 and 1, instead of as many at
    even distances as num_thresholds says. See `mean` for the others.
    """
    methods = ("trapezoidal", "minoring", "majoring", "careful_interpolation")
    if curve not in ("ROC", "PR") or summation_method not in methods:
        raise InvalidArgumentError(
            f"tf.metrics.auc: curve is {curve!r} and summation_method {summation_method!r}; "
            f"'ROC' or 'PR', and one of {', '.join(methods)} are required"
        )
    with variable_scope(name, "auc", [labels, predictions, weights]):
        limits = _even(num_thresholds) if thresholds is None else [-_EPSILON, *sorted(thresholds), 1 + _EPSILON]
        sides = _counts(labels, predictions, limits, weights, tuple(_SIDES))
        value, update = (_area(side, curve, summation_method) for side in sides)
        return published(value, update, metrics_collections, updates_collections)


def _area(counts: dict[str, Any], curve: str, method: str) -> Any:
    tp, fn, tn, fp = (counts[key] for key in _SIDES)
    if method == "careful_interpolation" and curve == "PR":
        return _interpolated(tp, fp, fn)
    recall = (tp + _EPSILON) / (tp + fn + _EPSILON)
    x = recall if curve == "PR" else fp / (fp + tn + _EPSILON)
    y = (tp + _EPSILON) / (tp + fp + _EPSILON) if curve == "PR" else recall
    first, second = y[:-1], y[1:]
    if method in ("trapezoidal", "careful_interpolation"):
        height = (first + second) / 2.0
    else:
        height = apply_op("Minimum" if method == "minoring" else "Maximum", [first, second])
    return reduce_sum((x[:-1] - x[1:]) * height)


def _interpolated(tp: Any, fp: Any, fn: Any) -> Any:
    """Returns the area under precision over recall where true positives and predictions change
    linearly between thresholds.
    """
    step_tp, p = tp[:-1] - tp[1:], tp + fp
    slope = ratio(step_tp, apply_op("Maximum", [p[:-1] - p[1:], 0.0]))
    intercept = tp[1:] - slope * p[1:]
    both = apply_op("LogicalAnd", [p[:-1] > 0, p[1:] > 0])
    quotient = apply_op("SelectV2", [both, ratio(p[:-1], apply_op("Maximum", [p[1:], 0.0])), 1.0])
    return reduce_sum(ratio(slope * (step_tp + intercept * apply_op("Log", [quotient])), tp[1:] + fn[1:]))


@metric("sensitivity_at_specificity")
def sensitivity_at_specificity(
    labels: Any, predictions: Any, specificity: float, weights: Any = None, num_thresholds: int = 200
) -> tuple[Any, Any]:
    """The part of true labels found, at the threshold whose part of false ones left out is nearest to `specificity`."""
    _check_aim("sensitivity_at_specificity", specificity)
    sides = _counts(labels, predictions, _even(num_thresholds), weights, tuple(_SIDES))
    return _nearest(sides[0], specificity, True), _nearest(sides[1], specificity, True)


@metric("specificity_at_sensitivity")
def specificity_at_sensitivity(
    labels: Any, predictions: Any, sensitivity: float, weights: Any = None, num_thresholds: int = 200
) -> tuple[Any, Any]:
    """The part of false labels left out, at the threshold whose part of true ones found is nearest to `sensitivity`."""
    _check_aim("specificity_at_sensitivity", sensitivity)
    sides = _counts(labels, predictions, _even(num_thresholds), weights, tuple(_SIDES))
    return _nearest(sides[0], sensitivity, False), _nearest(sides[1], sensitivity, False)


def _check_aim(metric_name: str, aim: float) -> None:
    if not 0 <= aim <= 1:
        raise InvalidArgumentError(f"tf.metrics.{metric_name}: {aim} is given; a number in [0, 1] is required")


def _nearest(counts: dict[str, Any], aim: float, sensitivity: bool) -> Any:
    tp, fn, tn, fp = (counts[key] for key in _SIDES)
    found, left_out = tp / (tp + fn + _EPSILON), tn / (tn + fp + _EPSILON)
    result, searched = (found, left_out) if sensitivity else (left_out, found)
    distance = apply_op("Abs", [searched - aim])
    if sensitivity:
        index = apply_op("ArgMin", [distance, 0])
    else:  # the last of several, as in TensorFlow
        nearest = cast(apply_op("Equal", [distance, apply_op("Min", [distance, [0]])]), int64)
        index = apply_op("ArgMax", [apply_op("Cumsum", [nearest, 0]), 0])
    return apply_op("GatherV2", [result, index, 0])
