"""`tf.losses`: what training minimises, with a weight for each element.

Each function computes a loss for each element (or row), multiplies it with `weights` (a number, or a tensor that
broadcasts to the losses with sizes equal or 1), reduces it as `reduction` says, and adds the result to the collection
`loss_collection`. As in TensorFlow labels, predictions and the result are float32, cross-entropies of the dtype of
the logits.
"""

from __future__ import annotations

import sys
from typing import Any

from timberframe.api.calls import call_op
from timberframe.api.cross_entropy import sigmoid_cross_entropy_with_logits
from timberframe.api.framework import GraphKeys, add_to_collection, get_collection, name_scope
from timberframe.api.reduction import reduction_axes, renamed
from timberframe.api.selection import cast
from timberframe.boundary import guard
from timberframe_core.dtypes import DType, float32
from timberframe_core.errors import InvalidArgumentError
from timberframe_core.graph.apply import apply_op, convert_to_tensor
from timberframe_core.graph.operation import Tensor
from timberframe_core.shapes import compatible, format_shape

__all__ = [
    "Reduction", "absolute_difference", "add_loss", "compute_weighted_loss", "cosine_distance", "get_losses",
    "get_regularization_loss", "get_regularization_losses", "get_total_loss", "hinge_loss", "huber_loss",
    "log_loss", "mean_pairwise_squared_error", "mean_squared_error", "sigmoid_cross_entropy", "softmax_cross_entropy",
    "sparse_softmax_cross_entropy",
]  # fmt: skip


class Reduction:
    """How losses become one number; SUM_BY_NONZERO_WEIGHTS is the mean over the elements whose weight is not 0."""

    NONE = "none"
    SUM = "weighted_sum"
    SUM_OVER_BATCH_SIZE = "weighted_sum_over_batch_size"
    MEAN = "weighted_mean"
    SUM_BY_NONZERO_WEIGHTS = "weighted_sum_by_nonzero_weights"
    SUM_OVER_NONZERO_WEIGHTS = SUM_BY_NONZERO_WEIGHTS

    @classmethod
    def all(cls) -> tuple[str, ...]:
        """Returns every way."""
        return (cls.NONE, cls.SUM, cls.MEAN, cls.SUM_OVER_BATCH_SIZE, cls.SUM_BY_NONZERO_WEIGHTS)

    @classmethod
    def validate(cls, key: str) -> None:
        """Raises InvalidArgumentError for any other value."""
        if key not in cls.all():
            raise InvalidArgumentError(f"tf.losses: reduction is {key!r}; it must be one of {', '.join(cls.all())}")


_BY_WEIGHTS = Reduction.SUM_BY_NONZERO_WEIGHTS


def _total(x: Tensor) -> Any:
    return call_op("Sum", x, reduction_axes(x))


def _check_weights(losses: Tensor, weights: Tensor) -> None:
    wide, narrow = losses.static_shape, weights.static_shape
    if wide is None or narrow is None or not narrow:
        return
    fitted = tuple(n if w == 1 else w for w, n in zip(narrow, wide, strict=False))
    if len(narrow) != len(wide) or not compatible(fitted, wide):
        raise InvalidArgumentError(
            f"tf.losses: weights have shape {format_shape(narrow)} for losses of shape {format_shape(wide)}; "
            "they must be a scalar, or have the same rank and sizes that are equal or 1"
        )


def compute_weighted_loss(
    losses: Any,
    weights: Any = 1.0,
    scope: str | None = None,
    loss_collection: str | None = GraphKeys.LOSSES,
    reduction: str = _BY_WEIGHTS,
) -> Any:
    """Losses times weights, reduced. Where the reduction divides by 0 the result is 0."""
    Reduction.validate(reduction)
    with name_scope(scope, "weighted_loss"):
        given = convert_to_tensor(losses)
        wide, scales = cast(given, float32), cast(convert_to_tensor(weights), float32)
        _check_weights(wide, scales)
        result = call_op("Mul", wide, scales)
        if reduction != Reduction.NONE:
            result = _total(result)
        if reduction in (Reduction.MEAN, Reduction.SUM_OVER_BATCH_SIZE, _BY_WEIGHTS):
            result = call_op("DivNoNan", result, _count(wide, scales, reduction))
        result = cast(result, given.dtype)
        add_loss(result, loss_collection)
        return result


def _count(losses: Tensor, weights: Tensor, reduction: str) -> Any:
    """Returns what a mean divides by: the sum of the weights, the number of losses, or that
    of weights that are not 0.
    """
    if reduction == Reduction.MEAN:
        return _total(call_op("Mul", call_op("OnesLike", losses), weights))
    if reduction == Reduction.SUM_OVER_BATCH_SIZE:
        return cast(call_op("Size", losses), float32)
    present = cast(call_op("NotEqual", weights, 0.0), float32)
    return _total(call_op("Mul", call_op("OnesLike", losses), present))


def _pair(labels: Any, predictions: Any, function: str, dtype: DType | None = float32) -> tuple[Any, Any]:
    """Returns both as tensors of a dtype, by default TensorFlow's for losses, None: that of the predictions.

    Their shapes must agree.
    """
    if labels is None or predictions is None:
        missing = "labels" if labels is None else "predictions"
        raise InvalidArgumentError(f"tf.losses.{function}: {missing} is None; both labels and predictions are required")
    made = convert_to_tensor(predictions)
    made = made if dtype is None else cast(made, dtype)
    wanted = cast(convert_to_tensor(labels), made.dtype)
    if not compatible(wanted.static_shape, made.static_shape):
        raise InvalidArgumentError(
            f"tf.losses.{function}: labels have shape {format_shape(wanted.static_shape)} and predictions "
            f"{format_shape(made.static_shape)}; they must be equal"
        )
    return wanted, made


def mean_squared_error(
    labels: Any, predictions: Any, weights: Any = 1.0, scope: str | None = None,
    loss_collection: str | None = GraphKeys.LOSSES, reduction: str = _BY_WEIGHTS,
) -> Any:  # fmt: skip
    """(predictions - labels)^2."""
    with name_scope(scope, "mean_squared_error") as scope:
        wanted, made = _pair(labels, predictions, "mean_squared_error")
        return compute_weighted_loss(
            call_op("SquaredDifference", made, wanted), weights, scope, loss_collection, reduction
        )


def mean_pairwise_squared_error(
    labels: Any, predictions: Any, weights: Any = 1.0, scope: str | None = None,
    loss_collection: str | None = GraphKeys.LOSSES,
) -> Any:  # fmt: skip
    """(d - e)^2 for the errors d and e of each two elements of an example, as a mean over these pairs, summed up.

    Elements with weight 0 are no part of a pair. weights: as for all losses, or one for each example.
    """
    with name_scope(scope, "mean_pairwise_squared_error"):
        wanted, made = _pair(labels, predictions, "mean_pairwise_squared_error")
        errors: Any = call_op("Sub", cast(made, float32), cast(wanted, float32))
        scales = cast(convert_to_tensor(weights), float32)
        _check_weights(errors, scales)
        axes = reduction_axes(errors)[1:]
        present = call_op("Mul", call_op("OnesLike", errors), cast(call_op("NotEqual", scales, 0.0), float32))
        count: Any = call_op("Sum", present, axes, keep_dims=True)
        squares: Any = call_op("Sum", call_op("Square", errors), axes, keep_dims=True)
        square: Any = call_op("Square", call_op("Sum", errors, axes, keep_dims=True))
        others = call_op("Maximum", count - 1, 0.0)
        pairs: Any = call_op("Sub", call_op("DivNoNan", squares, others), call_op("DivNoNan", square, count * others))
        loss = _total(call_op("Mul", 2.0 * pairs, scales))
        add_loss(loss, loss_collection)
        return loss


def absolute_difference(
    labels: Any, predictions: Any, weights: Any = 1.0, scope: str | None = None,
    loss_collection: str | None = GraphKeys.LOSSES, reduction: str = _BY_WEIGHTS,
) -> Any:  # fmt: skip
    """|predictions - labels|."""
    with name_scope(scope, "absolute_difference") as scope:
        wanted, made = _pair(labels, predictions, "absolute_difference")
        return compute_weighted_loss(call_op("Abs", made - wanted), weights, scope, loss_collection, reduction)


def cosine_distance(
    labels: Any, predictions: Any, axis: int | None = None, weights: Any = 1.0, scope: str | None = None,
    loss_collection: str | None = GraphKeys.LOSSES, reduction: str = _BY_WEIGHTS, dim: int | None = None,
) -> Any:  # fmt: skip
    """1 - labels . predictions along axis (dim is its older name), both of length 1 already."""
    along = renamed("axis", axis, "dim", dim)
    if along is None:
        raise InvalidArgumentError("tf.losses.cosine_distance: axis is None; it is required")
    with name_scope(scope, "cosine_distance_loss") as scope:
        wanted, made = _pair(labels, predictions, "cosine_distance")
        near: Any = call_op("Sum", made * wanted, [along], keep_dims=True)
        losses = 1 - near
        return compute_weighted_loss(losses, weights, scope, loss_collection, reduction)


def huber_loss(
    labels: Any, predictions: Any, weights: Any = 1.0, delta: float = 1.0, scope: str | None = None,
    loss_collection: str | None = GraphKeys.LOSSES, reduction: str = _BY_WEIGHTS,
) -> Any:  # fmt: skip
    """Returns half the squared error up to delta, and linear above (Huber 1964, Robust estimation
    of a location parameter).
    """
    with name_scope(scope, "huber_loss") as scope:
        wanted, made = _pair(labels, predictions, "huber_loss")
        error: Any = call_op("Abs", made - wanted)
        near: Any = call_op("Minimum", error, delta)
        losses = 0.5 * near * near + delta * (error - near)
        return compute_weighted_loss(losses, weights, scope, loss_collection, reduction)


def log_loss(
    labels: Any, predictions: Any, weights: Any = 1.0, epsilon: float = 1e-7, scope: str | None = None,
    loss_collection: str | None = GraphKeys.LOSSES, reduction: str = _BY_WEIGHTS,
) -> Any:  # fmt: skip
    """-labels log(p + epsilon) - (1 - labels) log(1 - p + epsilon) for probabilities p."""
    with name_scope(scope, "log_loss") as scope:
        wanted, made = _pair(labels, predictions, "log_loss")
        losses = -wanted * call_op("Log", made + epsilon) - (1 - wanted) * call_op("Log", 1 - made + epsilon)
        return compute_weighted_loss(losses, weights, scope, loss_collection, reduction)


def hinge_loss(
    labels: Any, logits: Any, weights: Any = 1.0, scope: str | None = None,
    loss_collection: str | None = GraphKeys.LOSSES, reduction: str = _BY_WEIGHTS,
) -> Any:  # fmt: skip
    """max(0, 1 - s * logits) where s is -1 for labels 0 and 1 for labels 1."""
    with name_scope(scope, "hinge_loss") as scope:
        wanted, made = _pair(labels, logits, "hinge_loss")
        losses = call_op("Relu", 1 - (2 * wanted - 1) * made)
        return compute_weighted_loss(losses, weights, scope, loss_collection, reduction)


def sigmoid_cross_entropy(
    multi_class_labels: Any, logits: Any, weights: Any = 1.0, label_smoothing: float = 0, scope: str | None = None,
    loss_collection: str | None = GraphKeys.LOSSES, reduction: str = _BY_WEIGHTS,
) -> Any:  # fmt: skip
    """Returns cross entropy of sigmoid(logits). label_smoothing moves labels towards 1/2 by that part."""
    with name_scope(scope, "sigmoid_cross_entropy_loss") as scope:
        wanted, made = _pair(multi_class_labels, logits, "sigmoid_cross_entropy", None)
        if label_smoothing > 0:
            wanted = wanted * (1 - label_smoothing) + 0.5 * label_smoothing
        losses = sigmoid_cross_entropy_with_logits(labels=wanted, logits=made)
        return compute_weighted_loss(losses, weights, scope, loss_collection, reduction)


def softmax_cross_entropy(
    onehot_labels: Any, logits: Any, weights: Any = 1.0, label_smoothing: float = 0, scope: str | None = None,
    loss_collection: str | None = GraphKeys.LOSSES, reduction: str = _BY_WEIGHTS,
) -> Any:  # fmt: skip
    """Returns cross entropy of softmax(logits) for each row.

    label_smoothing moves labels towards 1/classes by that part.
    """
    with name_scope(scope, "softmax_cross_entropy_loss") as scope:
        wanted, made = _pair(onehot_labels, logits, "softmax_cross_entropy", None)
        if label_smoothing > 0:
            classes = cast(call_op("GatherV2", call_op("Shape", made), 1, 0), made.dtype)
            wanted = wanted * (1 - label_smoothing) + label_smoothing / classes
        losses = call_op("SoftmaxCrossEntropyWithLogits", made, call_op("StopGradient", wanted))[0]
        return compute_weighted_loss(losses, weights, scope, loss_collection, reduction)


def sparse_softmax_cross_entropy(
    labels: Any, logits: Any, weights: Any = 1.0, scope: str | None = None,
    loss_collection: str | None = GraphKeys.LOSSES, reduction: str = _BY_WEIGHTS,
) -> Any:  # fmt: skip
    """Returns cross entropy of softmax(logits) for each row, whose label is the number of its class."""
    with name_scope(scope, "sparse_softmax_cross_entropy_loss") as scope:
        losses = call_op("SparseSoftmaxCrossEntropyWithLogits", logits, labels)[0]
        return compute_weighted_loss(losses, weights, scope, loss_collection, reduction)


def add_loss(loss: Any, loss_collection: str | None = GraphKeys.LOSSES) -> None:
    """Adds a loss to the collection, unless that is None."""
    if loss_collection:
        add_to_collection(loss_collection, loss)


def get_losses(scope: str | None = None, loss_collection: str = GraphKeys.LOSSES) -> list[Any]:
    """Returns the losses of the collection; with `scope` those whose name begins with a match of it."""
    return get_collection(loss_collection, scope)


def get_regularization_losses(scope: str | None = None) -> list[Any]:
    """Returns what regularizers of variables added."""
    return get_collection(GraphKeys.REGULARIZATION_LOSSES, scope)


def get_regularization_loss(scope: str | None = None, name: str = "total_regularization_loss") -> Any:
    """Returns the sum of what regularizers of variables added; 0 where there are none."""
    found = get_regularization_losses(scope)
    return apply_op("AddN", [found], name=name) if found else convert_to_tensor(0.0)


def get_total_loss(add_regularization_losses: bool = True, name: str = "total_loss", scope: str | None = None) -> Any:
    """Returns the sum of all losses, those of regularizers included unless add_regularization_losses is False."""
    found = get_losses(scope)
    if add_regularization_losses:
        found = found + get_regularization_losses(scope)
    if not found:
        raise InvalidArgumentError("tf.losses.get_total_loss: there are no losses; at least one is required")
    return apply_op("AddN", [found], name=name)


guard([sys.modules[__name__]])  # here, since `import timberframe` does not load this module
