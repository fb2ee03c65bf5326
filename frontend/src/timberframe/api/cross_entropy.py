"""`tf.nn.*` functions of cross entropy, of logits with labels."""

from __future__ import annotations

from typing import Any

from timberframe.api.arrays import reshape, shape, stop_gradient, transpose
from timberframe.api.axis_order import move_to_end
from timberframe.api.calls import call_op
from timberframe.api.framework import name_scope
from timberframe.api.nn_arguments import either
from timberframe.api.selection import cast
from timberframe_core.dtypes import int32
from timberframe_core.errors import InvalidArgumentError, InvalidTypeError
from timberframe_core.graph.apply import apply_op, convert_to_tensor
from timberframe_core.graph.operation import Tensor
from timberframe_core.shapes import compatible, format_shape

NAMESPACES = {
    "nn": (
        "sigmoid_cross_entropy_with_logits", "softmax_cross_entropy_with_logits",
        "softmax_cross_entropy_with_logits_v2", "sparse_softmax_cross_entropy_with_logits",
        "weighted_cross_entropy_with_logits",
    ),
}  # fmt: skip


def sigmoid_cross_entropy_with_logits(
    _sentinel: None = None, labels: Any = None, logits: Any = None, name: str | None = None
) -> Tensor:
    """Returns the logistic loss of each element, for labels in [0, 1]; the arguments must be named.

    Computed as max(x, 0) - x z + log(1 + exp(-|x|)), which does not overflow; the gradient is sigmoid(x) - z.
    """
    _check_named("sigmoid_cross_entropy_with_logits", _sentinel, labels, logits)
    with name_scope(name, "logistic_loss", [logits, labels]):
        x = convert_to_tensor(logits)
        z = _labels_of("sigmoid_cross_entropy_with_logits", labels, x)
        # Both terms select by one condition: the gradients of Relu and Abs at 0 would not add up to the correct one.
        zeros = call_op("ZerosLike", x)
        positive = call_op("GreaterEqual", x, zeros)
        linear = call_op("Sub", call_op("SelectV2", positive, x, zeros), call_op("Mul", x, z))
        return call_op(
            "AddV2", linear, call_op("Log1p", call_op("Exp", call_op("SelectV2", positive, call_op("Neg", x), x)))
        )


def weighted_cross_entropy_with_logits(
    labels: Any = None,
    logits: Any = None,
    pos_weight: Any = None,
    name: str | None = None,
    targets: Any = None,
) -> Tensor:
    """Returns cross entropy of labels (formerly targets) and sigmoid(logits) by element, positive ones weighted.

    With weight q, label z and logit x: (1 - z) x + (1 + (q - 1) z) (log(1 + exp(-|x|)) + max(-x, 0)).
    """
    truth = either("weighted_cross_entropy_with_logits", "labels", labels, "targets", targets)
    with name_scope(name, "logistic_loss"):
        x: Any = convert_to_tensor(logits)
        z: Any = _labels_of("weighted_cross_entropy_with_logits", truth, x)
        weight = 1 + (pos_weight - 1) * z
        tail = apply_op("Log1p", [apply_op("Exp", [-apply_op("Abs", [x])])]) + apply_op("Relu", [-x])
        result: Tensor = apply_op("AddV2", [(1 - z) * x, weight * tail])
        return result


def softmax_cross_entropy_with_logits_v2(
    labels: Any, logits: Any, axis: int | None = None, name: str | None = None, dim: int | None = None
) -> Tensor:
    """Returns cross entropy of the distribution `labels` and softmax(logits) along an axis (the
    last for None), row by row.

    labels may have another dtype, such as int32 of one_hot: they are cast to that of the logits. Rows are counted over
    all other dimensions, so that labels may also have more of these, such as [1, rows, classes]; the result has those
    of the logits.
    """
    along = next((a for a in (axis, dim) if a is not None), -1)
    with name_scope(name, "softmax_cross_entropy_with_logits"):
        scores = convert_to_tensor(logits)
        truth = cast(convert_to_tensor(labels, preferred_dtype=scores.dtype), scores.dtype)
        order = move_to_end(scores, along, "tf.nn.softmax_cross_entropy_with_logits")
        if order is not None:
            scores, truth = transpose(scores, order), transpose(truth, order)
        if all(t.static_shape is not None and len(t.static_shape) == 2 for t in (scores, truth)):
            return apply_op("SoftmaxCrossEntropyWithLogits", [scores, truth])[0]  # type: ignore[no-any-return]  # a Tensor
        flat = [reshape(t, [-1, _last_size(t)]) for t in (scores, truth)]
        return reshape(apply_op("SoftmaxCrossEntropyWithLogits", flat)[0], _outer_shape(scores))


def softmax_cross_entropy_with_logits(
    _sentinel: None = None,
    labels: Any = None,
    logits: Any = None,
    dim: int = -1,
    name: str | None = None,
    axis: int | None = None,
) -> Tensor:
    """Like `softmax_cross_entropy_with_logits_v2`, but no gradient flows to the labels; the arguments must be named."""
    _check_named("softmax_cross_entropy_with_logits", _sentinel, labels, logits)
    scores = convert_to_tensor(logits)
    fixed = stop_gradient(convert_to_tensor(labels, preferred_dtype=scores.dtype))
    return softmax_cross_entropy_with_logits_v2(fixed, scores, dim if axis is None else axis, name)


def sparse_softmax_cross_entropy_with_logits(
    _sentinel: None = None, labels: Any = None, logits: Any = None, name: str | None = None
) -> Tensor:
    """Returns cross entropy where each row's label is the number of its class; the arguments must be named.

    labels, int32 or int64, has the shape of logits without its last dimension, and the result that of labels.
    InvalidArgumentError for another number of dimensions; a label that is of no class is an error of the run.
    """
    _check_named("sparse_softmax_cross_entropy_with_logits", _sentinel, labels, logits)
    with name_scope(name, "SparseSoftmaxCrossEntropyWithLogits"):
        scores = convert_to_tensor(logits)
        classes = convert_to_tensor(labels, preferred_dtype=int32)
        known = scores.static_shape
        rows = classes.static_shape
        if known is not None and rows is not None and len(rows) != len(known) - 1:
            raise InvalidArgumentError(
                f"tf.nn.sparse_softmax_cross_entropy_with_logits: labels have shape {format_shape(rows)} and logits "
                f"{format_shape(known)}; labels must have the shape of logits without its last dimension"
            )
        if known is not None and len(known) == 2:
            return apply_op("SparseSoftmaxCrossEntropyWithLogits", [scores, classes])[0]  # type: ignore[no-any-return]  # a Tensor
        flat = [reshape(scores, [-1, _last_size(scores)]), reshape(classes, [-1])]
        return reshape(apply_op("SparseSoftmaxCrossEntropyWithLogits", flat)[0], _outer_shape(scores))


def _check_named(function: str, positional: Any, labels: Any, logits: Any) -> None:
    if positional is not None:
        raise InvalidArgumentError(
            f"tf.nn.{function}: an argument is given without its name; labels= and logits= must be named, as older "
            "programs give the logits first"
        )
    missing = [name for name, value in (("labels", labels), ("logits", logits)) if value is None]
    if missing:
        raise InvalidArgumentError(f"tf.nn.{function}: {' and '.join(missing)} not given; both are required")


def _labels_of(function: str, labels: Any, logits: Tensor) -> Tensor:
    """Returns the labels as a tensor of the dtype and shape of logits.

    InvalidTypeError for tensors of another dtype, as in TensorFlow; InvalidArgumentError for another shape.
    """
    dtype = logits.dtype
    truth = convert_to_tensor(labels, preferred_dtype=dtype)
    if not compatible(truth.static_shape, logits.static_shape):
        raise InvalidArgumentError(
            f"tf.nn.{function}: labels have shape {format_shape(truth.static_shape)} and logits "
            f"{format_shape(logits.static_shape)}; they must agree"
        )
    if truth.dtype.base_dtype is not dtype.base_dtype:
        raise InvalidTypeError(
            f"tf.nn.{function}: labels '{truth.name}' have dtype {truth.dtype.name} and logits {dtype.name}; they must "
            f"agree, tf.cast(labels, tf.{dtype.name}) makes them",
            truth.op.name,
        )
    return truth


def _last_size(x: Tensor) -> Any:
    sizes = x.static_shape
    return shape(x)[-1] if sizes is None or sizes[-1] is None else sizes[-1]


def _outer_shape(x: Tensor) -> Any:
    """Returns the sizes of all dimensions but the last."""
    sizes = (x.static_shape or ())[:-1]
    return list(sizes) if x.static_shape is not None and None not in sizes else shape(x)[:-1]
