"""Metrics that are means: of values, errors, and equalities."""

from __future__ import annotations

from typing import Any

from timberframe.api.framework import control_dependencies
from timberframe.api.selection import cast
from timberframe.metrics.state import added, fitted, metric, metric_variable, ratio, total, weighted
from timberframe_core.dtypes import float32
from timberframe_core.graph.apply import apply_op, convert_to_tensor


@metric("mean")
def mean(values: Any, weights: Any = None) -> tuple[Any, Any]:
    """The weighted mean of all values of all updates: (value, update), of which the update adds a batch.

    weights: a scalar, or one for each value or row; values of weight 0 are left out. The state is in local variables
    `total` and `count`, which `tf.local_variables_initializer()` sets to 0. metrics_collections, updates_collections:
    to which the value and the update are added.
    """
    return _mean(values, weights)


def _mean(values: Any, weights: Any) -> tuple[Any, Any]:
    given = cast(convert_to_tensor(values), float32)
    sums, counts = metric_variable([], name="total"), metric_variable([], name="count")
    if weights is not None:
        given, _, weights = fitted(given, given, weights)
    scaled, wide = weighted(given, weights)
    new_sum = added(sums, total(scaled))
    with control_dependencies([scaled]):
        new_count = added(counts, total(wide))
    value = ratio(sums.value(), counts.value())
    return value, ratio(new_sum, new_count)


@metric("mean")
def mean_tensor(values: Any, weights: Any = None) -> tuple[Any, Any]:
    """`mean` of each element by itself: values have the same shape in all updates, which must be known."""
    given = cast(convert_to_tensor(values), float32)
    sizes = given.shape.as_list()
    sums, counts = metric_variable(sizes, name="total_tensor"), metric_variable(sizes, name="count_tensor")
    if weights is not None:
        given, _, weights = fitted(given, given, weights)
    scaled, wide = weighted(given, weights)
    new_sum, new_count = added(sums, scaled), added(counts, wide)
    value = ratio(sums.value(), counts.value())
    return value, ratio(new_sum, new_count)


@metric("accuracy")
def accuracy(labels: Any, predictions: Any, weights: Any = None) -> tuple[Any, Any]:
    """How often predictions equal labels; the other arguments and the result are those of `mean`."""
    made, wanted, weights = fitted(predictions, labels, weights)
    if made.dtype != wanted.dtype:
        made = cast(made, wanted.dtype)
    return _mean(apply_op("Equal", [made, wanted]), weights)


@metric("mean_absolute_error")
def mean_absolute_error(labels: Any, predictions: Any, weights: Any = None) -> tuple[Any, Any]:
    """The mean of |predictions - labels|; the other arguments and the result are those of `mean`."""
    made, wanted, weights = fitted(predictions, labels, weights)
    errors = apply_op("Abs", [apply_op("Sub", [made, cast(wanted, made.dtype)])])
    return _mean(errors, weights)


@metric("mean_relative_error")
def mean_relative_error(labels: Any, predictions: Any, normalizer: Any, weights: Any = None) -> tuple[Any, Any]:
    """The mean of |predictions - labels| / normalizer, which is 0 where the normalizer is; otherwise as `mean`."""
    made, wanted, weights = fitted(predictions, labels, weights)
    scale = cast(fitted(made, normalizer)[1], made.dtype)
    errors = apply_op("Abs", [apply_op("Sub", [cast(wanted, made.dtype), made])])
    zero = apply_op("Equal", [scale, 0])
    quotient = apply_op("RealDiv", [errors, apply_op("SelectV2", [zero, 1, scale])])
    return _mean(apply_op("SelectV2", [zero, 0, quotient]), weights)


@metric("mean_squared_error")
def mean_squared_error(labels: Any, predictions: Any, weights: Any = None) -> tuple[Any, Any]:
    """The mean of (predictions - labels)^2; the other arguments and the result are those of `mean`."""
    return _squared(labels, predictions, weights)


def _squared(labels: Any, predictions: Any, weights: Any) -> tuple[Any, Any]:
    made, wanted, weights = fitted(predictions, labels, weights)
    return _mean(apply_op("SquaredDifference", [cast(wanted, made.dtype), made]), weights)


@metric("root_mean_squared_error")
def root_mean_squared_error(labels: Any, predictions: Any, weights: Any = None) -> tuple[Any, Any]:
    """The square root of `mean_squared_error`."""
    value, update = _squared(labels, predictions, weights)
    return apply_op("Sqrt", [value]), apply_op("Sqrt", [update])


@metric("mean_cosine_distance")
def mean_cosine_distance(labels: Any, predictions: Any, dim: int, weights: Any = None) -> tuple[Any, Any]:
    """The mean of 1 - the product of predictions and labels, summed along `dim`; both must have length 1 there."""
    made, wanted, weights = fitted(predictions, labels, weights)
    products = apply_op("Mul", [made, cast(wanted, made.dtype)])
    similar = apply_op("Sum", [products, [dim]], {"keep_dims": True})
    value, update = _mean(similar, weights)
    return 1 - value, 1 - update


@metric("percentage_below_threshold")
def percentage_below(values: Any, threshold: Any, weights: Any = None) -> tuple[Any, Any]:
    """The part of values less than the threshold, in [0, 1]; the other arguments and the result are those of `mean`."""
    return _mean(apply_op("Less", [values, threshold]), weights)
