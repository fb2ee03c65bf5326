"""Heads of `tf.estimator` for counts, for probabilities, and for several classes at once."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from timberframe import losses, metrics
from timberframe.api.cross_entropy import sigmoid_cross_entropy_with_logits
from timberframe.api.indexing import one_hot
from timberframe.api.nn_statistics import log_poisson_loss
from timberframe.api.reduction import reduce_max, reduce_mean
from timberframe.api.selection import cast
from timberframe.api.sparse import sparse_tensor_to_dense
from timberframe.api.unary import exp, sigmoid
from timberframe_contrib.estimator.canned.class_heads import ClassHead, check_thresholds, metrics_at
from timberframe_contrib.estimator.canned.heads import Pair, RegressionHead
from timberframe_contrib.feature_column.columns import NumericColumn
from timberframe_core.dtypes import float32, int64, string
from timberframe_core.errors import InvalidArgumentError
from timberframe_core.graph.apply import apply_op
from timberframe_core.graph.operation import Tensor
from timberframe_core.graph.sparse_tensor import SparseTensor

_AVERAGE = losses.Reduction.SUM_OVER_BATCH_SIZE


class PoissonRegressionHead(RegressionHead):
    """Logits are logarithms of means of counts: the loss is that of the Poisson distribution.

    compute_full_loss: with the logarithm of the factorial of the label, by Stirling's formula. The other arguments are
    those of `RegressionHead`.
    """

    def __init__(
        self,
        label_dimension: int = 1,
        weight_column: str | NumericColumn | None = None,
        loss_reduction: str = _AVERAGE,
        compute_full_loss: bool = True,
        name: str | None = None,
    ) -> None:
        def loss(labels: Any, logits: Any) -> Any:
            return log_poisson_loss(labels, logits, compute_full_loss)

        super().__init__(label_dimension, weight_column, loss_reduction, loss, exp, name)


class LogisticRegressionHead(RegressionHead):
    """The logit is that of a probability, and labels are numbers from 0 to 1: the loss is the cross entropy."""

    def __init__(
        self, weight_column: str | NumericColumn | None = None, loss_reduction: str = _AVERAGE, name: str | None = None
    ) -> None:
        super().__init__(1, weight_column, loss_reduction, sigmoid_cross_entropy_with_logits, sigmoid, name)


class MultiLabelHead(ClassHead):
    """A logit for each of n_classes, of which an example may have several; the loss is their mean cross entropy.

    Labels are numbers 0 and 1, [batch, n_classes], or a SparseTensor of numbers of classes or, with label_vocabulary,
    of names. The arguments are those of `BinaryClassHead`.
    """

    def __init__(
        self,
        n_classes: int,
        weight_column: str | NumericColumn | None = None,
        thresholds: Sequence[float] | None = None,
        label_vocabulary: Sequence[str] | None = None,
        loss_reduction: str = _AVERAGE,
        loss_fn: Callable[..., Any] | None = None,
        name: str | None = None,
    ) -> None:
        if n_classes < 2:
            raise InvalidArgumentError(f"MultiLabelHead: n_classes is {n_classes}; 2 or more are required")
        super().__init__(n_classes, n_classes, label_vocabulary, weight_column, loss_reduction, loss_fn, name)
        self._thresholds = check_thresholds("MultiLabelHead", thresholds)

    def predictions(self, logits: Tensor) -> dict[str, Tensor]:
        """Logits and probabilities."""
        return {"logits": logits, "probabilities": sigmoid(logits)}

    def given(self, labels: Any) -> Any:
        """0 and 1 for each class."""
        if not isinstance(labels, SparseTensor):
            return super().given(labels)
        numbers = self.numbers(labels.values)
        places = SparseTensor(labels.indices, cast(numbers, int64), labels.dense_shape)
        dense = sparse_tensor_to_dense(places, -1, validate_indices=False)
        return reduce_max(one_hot(dense, self.size, dtype=float32), 1)

    def labels(self, given: Tensor) -> Tensor:
        """0 and 1."""
        if given.dtype is string or not given.shape.is_compatible_with([None, self.size]):
            raise InvalidArgumentError(
                f"MultiLabelHead: labels are {given.dtype.name} of shape {given.shape}; numbers (?, {self.size}), or a "
                "SparseTensor, are required"
            )
        numbers: Tensor = cast(given, float32)
        return numbers

    def losses(self, labels: Tensor, logits: Tensor) -> Tensor:
        """Means of cross entropies."""
        return reduce_mean(sigmoid_cross_entropy_with_logits(labels=labels, logits=logits), -1, keepdims=True)

    def metrics(self, labels: Tensor, predictions: Mapping[str, Tensor], weights: Any) -> dict[str, Pair]:
        """Areas under curves."""
        probabilities = predictions["probabilities"]
        of_classes = None if weights is None else apply_op("Mul", [weights, apply_op("OnesLike", [probabilities])])
        return {
            "auc": metrics.auc(labels, probabilities, of_classes),
            "auc_precision_recall": metrics.auc(labels, probabilities, of_classes, curve="PR"),
            **metrics_at(self._thresholds, labels, probabilities, of_classes),
        }
