"""`tf.contrib.losses`, which is `slim.losses` too: losses whose first argument is the predictions.

Weights may have fewer axes than the losses: one for each example, for instance. Losses are means over the elements
whose weight is not 0, and join the collection of losses.
"""

from __future__ import annotations

import sys
from typing import Any

from timberframe import losses
from timberframe.api.arrays import reshape
from timberframe.api.comparison import not_equal
from timberframe.api.framework import name_scope
from timberframe.api.reduction import reduce_sum, reduction_axes
from timberframe.api.selection import cast
from timberframe.boundary import guard
from timberframe.losses import add_loss as add_loss
from timberframe.losses import get_losses as get_losses
from timberframe.losses import get_regularization_losses as get_regularization_losses
from timberframe_core.dtypes import float32
from timberframe_core.errors import InvalidArgumentError
from timberframe_core.graph.apply import apply_op, convert_to_tensor
from timberframe_core.shapes import format_shape

__all__ = [
    "absolute_difference", "add_loss", "compute_weighted_loss", "cosine_distance", "get_losses",
    "get_regularization_losses", "get_total_loss", "hinge_loss", "log_loss", "mean_pairwise_squared_error",
    "mean_squared_error", "sigmoid_cross_entropy", "softmax_cross_entropy", "sparse_softmax_cross_entropy",
]  # fmt: skip


def _along(weights: Any, values: Any) -> Any:
    """Returns weights with axes of size 1 at the end, as many as the values have more."""
    scales, given = convert_to_tensor(weights), convert_to_tensor(values)
    rank, more = scales.shape.ndims, given.shape.ndims
    if rank in (0, None) or more is None or rank == more:
        return scales
    if rank > more:
        raise InvalidArgumentError(
            f"tf.contrib.losses: weights have shape {format_shape(scales.static_shape)} for values of shape "
            f"{format_shape(given.static_shape)}; they must not have more axes"
        )
    sizes = apply_op("ConcatV2", [[apply_op("Shape", [scales]), [1] * (more - rank)], 0])
    made = reshape(scales, sizes)
    made.set_shape([*scales.shape.as_list(), *[1] * (more - rank)])
    return made


def compute_weighted_loss(losses: Any, weights: Any = 1.0, scope: str | None = None) -> Any:
    """Returns the sum of losses times weights, divided by the number of losses whose weight is not 0."""
    from timberframe.losses import compute_weighted_loss as weighted

    return weighted(losses, _along(weights, losses), scope)


def absolute_difference(predictions: Any, labels: Any = None, weights: Any = 1.0, scope: str | None = None) -> Any:
    """Returns the mean of |predictions - labels|."""
    return losses.absolute_difference(labels, predictions, _along(weights, predictions), scope)


def mean_squared_error(predictions: Any, labels: Any = None, weights: Any = 1.0, scope: str | None = None) -> Any:
    """Returns the mean of (predictions - labels)^2."""
    return losses.mean_squared_error(labels, predictions, _along(weights, predictions), scope)


def log_loss(
    predictions: Any, labels: Any = None, weights: Any = 1.0, epsilon: float = 1e-7, scope: str | None = None
) -> Any:
    """Returns the mean of -labels log(p + epsilon) - (1 - labels) log(1 - p + epsilon) for probabilities p."""
    return losses.log_loss(labels, predictions, _along(weights, predictions), epsilon, scope)


def hinge_loss(logits: Any, labels: Any = None, scope: str | None = None) -> Any:
    """max(0, 1 - s * logits) for each element, where s is -1 for labels 0 and 1 for labels 1; in no collection."""
    return losses.hinge_loss(labels, logits, 1.0, scope, None, losses.Reduction.NONE)


def cosine_distance(
    predictions: Any,
    labels: Any = None,
    axis: int | None = None,
    weights: Any = 1.0,
    scope: str | None = None,
    dim: int | None = None,
) -> Any:
    """Returns the mean of 1 - labels . predictions along axis (dim is its older name), both of length 1 already."""
    return losses.cosine_distance(labels, predictions, axis, _along(weights, predictions), scope, dim=dim)


def mean_pairwise_squared_error(
    predictions: Any, labels: Any = None, weights: Any = 1.0, scope: str | None = None
) -> Any:
    """2 (mean of e^2 - (mean of e)^2) for the errors e of each example, times its weight, summed up.

    `tf.losses.mean_pairwise_squared_error` divides by one element less, since it counts no pairs of equal elements.
    """
    with name_scope(scope, "mean_pairwise_squared_error"):
        if labels is None:
            raise InvalidArgumentError("tf.contrib.losses.mean_pairwise_squared_error: labels is None; it is required")
        errors = cast(convert_to_tensor(predictions), float32) - cast(convert_to_tensor(labels), float32)
        scales = cast(_along(weights, errors), float32)
        axes = reduction_axes(errors)[1:]
        present = cast(not_equal(scales, 0.0), float32) * apply_op("OnesLike", [errors])
        count = reduce_sum(present, axes, keepdims=True)
        squares = apply_op("DivNoNan", [reduce_sum(apply_op("Square", [errors]), axes, keepdims=True), count])
        mean = apply_op("DivNoNan", [reduce_sum(errors, axes, keepdims=True), count])
        loss = reduce_sum(2.0 * (squares - apply_op("Square", [mean])) * scales)
        add_loss(loss)
        return loss


def sigmoid_cross_entropy(
    logits: Any, multi_class_labels: Any, weights: Any = 1.0, label_smoothing: float = 0, scope: str | None = None
) -> Any:
    """Returns the mean cross entropy of sigmoid(logits). label_smoothing moves labels towards 1/2 by that part."""
    return losses.sigmoid_cross_entropy(multi_class_labels, logits, _along(weights, logits), label_smoothing, scope)


def softmax_cross_entropy(
    logits: Any, onehot_labels: Any, weights: Any = 1.0, label_smoothing: float = 0, scope: str | None = None
) -> Any:
    """Returns the mean cross entropy of softmax(logits).

    label_smoothing moves labels towards 1/classes by that part.
    """
    return losses.softmax_cross_entropy(onehot_labels, logits, weights, label_smoothing, scope)


def sparse_softmax_cross_entropy(logits: Any, labels: Any, weights: Any = 1.0, scope: str | None = None) -> Any:
    """Returns the mean cross entropy of softmax(logits); labels: numbers of classes, [batch] or [batch, 1]."""
    scales = convert_to_tensor(weights)
    if scales.shape.ndims:
        scales = reshape(scales, [-1])
    return losses.sparse_softmax_cross_entropy(reshape(labels, [-1]), logits, scales, scope)


def get_total_loss(add_regularization_losses: bool = True, name: str = "total_loss") -> Any:
    """Returns the sum of all losses, those of regularizers included unless add_regularization_losses is False."""
    return losses.get_total_loss(add_regularization_losses, name)


guard([sys.modules[__name__]], "tf.contrib.losses")
