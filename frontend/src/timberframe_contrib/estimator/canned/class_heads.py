"""Heads of classifiers: logits of one or of several classes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from timberframe import losses, metrics
from timberframe.api.arrays import concat, expand_dims, reshape
from timberframe.api.cross_entropy import sigmoid_cross_entropy_with_logits, sparse_softmax_cross_entropy_with_logits
from timberframe.api.framework import control_dependencies
from timberframe.api.indexing import gather
from timberframe.api.lookup import index_table_from_tensor
from timberframe.api.reduction import reduction_axes
from timberframe.api.selection import cast, clip_by_value
from timberframe.api.string_parts import as_string
from timberframe_contrib.estimator.canned.heads import DEFAULT, Head, Pair, SingleHead
from timberframe_contrib.estimator.export_outputs import (
    ClassificationOutput,
    ExportOutput,
    PredictOutput,
    RegressionOutput,
)
from timberframe_contrib.feature_column.columns import NumericColumn
from timberframe_core.dtypes import float32, int64, string
from timberframe_core.errors import InvalidArgumentError
from timberframe_core.graph.apply import apply_op, convert_to_tensor
from timberframe_core.graph.operation import Tensor
from timberframe_core.shapes import format_shape


class ClassHead(SingleHead):
    """What classifications have in common. vocabulary: the names of the classes, where labels are names."""

    def __init__(
        self, size: int, classes: int, vocabulary: Sequence[str] | None, weight_column: str | NumericColumn | None,
        loss_reduction: str, loss_fn: Callable[..., Any] | None, name: str | None,
    ) -> None:  # fmt: skip
        super().__init__(size, weight_column, loss_reduction, loss_fn, name)
        if vocabulary is not None and len(vocabulary) != classes:
            raise InvalidArgumentError(
                f"classifier: label_vocabulary has {len(vocabulary)} names for {classes} classes; each needs one"
            )
        self._classes = classes
        self._vocabulary = None if vocabulary is None else list(vocabulary)

    def numbers(self, given: Tensor) -> Tensor:
        """Labels as numbers of classes."""
        if (given.dtype is string) != (self._vocabulary is not None):
            needed = "strings are required with" if self._vocabulary is not None else "numbers are required without"
            raise InvalidArgumentError(f"classifier: labels have dtype {given.dtype.name}; {needed} label_vocabulary")
        if self._vocabulary is None:
            return self._in_range(given, given, f"must be numbers of classes, from 0 to {self._classes - 1}")
        numbers = index_table_from_tensor(self._vocabulary, name="class_id_lookup").lookup(given)
        return self._in_range(numbers, given, f"must be in label_vocabulary, {self._vocabulary}")

    def _in_range(self, numbers: Tensor, given: Tensor, required: str) -> Tensor:
        """Returns the numbers, in runs where all are those of classes."""
        last = convert_to_tensor(self._classes - 1, numbers.dtype)
        inside = apply_op("Equal", [clip_by_value(numbers, convert_to_tensor(0, numbers.dtype), last), numbers])
        every = apply_op("All", [inside, reduction_axes(inside)])
        with control_dependencies([apply_op("Assert", [every, [f"classifier: labels {required}; they are", given]])]):
            checked: Tensor = apply_op("Identity", [numbers])
            return checked

    def _names(self, ids: Tensor) -> Tensor:
        """Returns the names of classes; their numbers as texts without a vocabulary."""
        return as_string(ids) if self._vocabulary is None else gather(convert_to_tensor(self._vocabulary), ids)

    def exported(self, predictions: Mapping[str, Tensor]) -> dict[str, ExportOutput]:
        """Returns a classification, and predictions."""
        probabilities = predictions["probabilities"]
        numbers = apply_op("Range", [0, self._classes, 1])
        batch = apply_op("StridedSlice", [apply_op("Shape", [probabilities]), [0], [1], [1]], {"shrink_axis_mask": 1})
        names = apply_op("Tile", [expand_dims(self._names(numbers), 0), apply_op("Pack", [[batch, 1]])])
        output = ClassificationOutput(probabilities, names)
        return {DEFAULT: output, "classification": output, "predict": PredictOutput(predictions)}


class BinaryClassHead(ClassHead):
    """One logit: that of the second class of two.

    thresholds: probabilities from which on metrics take an example for one of the second class, besides one half.
    label_vocabulary: the names of the classes, where labels are names. The other arguments are those of `SingleHead`.
    """

    def __init__(
        self,
        weight_column: str | NumericColumn | None = None,
        thresholds: Sequence[float] | None = None,
        label_vocabulary: Sequence[str] | None = None,
        loss_reduction: str = losses.Reduction.SUM_OVER_BATCH_SIZE,
        loss_fn: Callable[..., Any] | None = None,
        name: str | None = None,
    ) -> None:
        super().__init__(1, 2, label_vocabulary, weight_column, loss_reduction, loss_fn, name)
        self._thresholds = check_thresholds("BinaryClassHead", thresholds)

    def predictions(self, logits: Tensor) -> dict[str, Tensor]:
        """Returns probabilities and classes."""
        logistic = apply_op("Sigmoid", [logits])
        two = concat([apply_op("ZerosLike", [logits]), logits], -1)
        ids = expand_dims(apply_op("ArgMax", [two, -1]), -1)
        return {
            "logits": logits,
            "logistic": logistic,
            "probabilities": apply_op("Softmax", [two]),
            "class_ids": ids,
            "classes": self._names(ids),
        }

    def labels(self, given: Tensor) -> Tensor:
        """0 or 1."""
        numbers: Tensor = cast(self.numbers(given), float32)
        return numbers

    def losses(self, labels: Tensor, logits: Tensor) -> Tensor:
        """Returns cross entropies."""
        found: Tensor = sigmoid_cross_entropy_with_logits(labels=labels, logits=logits)
        return found

    def metrics(self, labels: Tensor, predictions: Mapping[str, Tensor], weights: Any) -> dict[str, Pair]:
        """Accuracy, precision, recall, areas under curves, means."""
        ids, logistic = predictions["class_ids"], predictions["logistic"]
        mean = metrics.mean(labels, weights)
        return {
            "accuracy": metrics.accuracy(labels, ids, weights),
            "precision": metrics.precision(labels, ids, weights),
            "recall": metrics.recall(labels, ids, weights),
            "prediction/mean": metrics.mean(logistic, weights),
            "label/mean": mean,
            "accuracy_baseline": _larger(mean),
            "auc": metrics.auc(labels, logistic, weights),
            "auc_precision_recall": metrics.auc(labels, logistic, weights, curve="PR"),
            **metrics_at(self._thresholds, labels, logistic, weights),
        }

    def exported(self, predictions: Mapping[str, Tensor]) -> dict[str, ExportOutput]:
        """Returns a regression of the probability, too."""
        return {**super().exported(predictions), "regression": RegressionOutput(predictions["logistic"])}


def check_thresholds(owner: str, given: Sequence[float] | None) -> list[float]:
    """Returns the thresholds as a list; InvalidArgumentError where one is not between 0 and 1."""
    found = list(given or ())
    if not all(0 < t < 1 for t in found):
        raise InvalidArgumentError(f"{owner}: thresholds are {found}; numbers between 0 and 1 are required")
    return found


def metrics_at(thresholds: Sequence[float], labels: Any, probabilities: Any, weights: Any) -> dict[str, Pair]:
    """Accuracy, precision and recall of what is above each of several thresholds."""
    found: dict[str, Pair] = {}
    for threshold in thresholds:
        ending = f"positive_threshold_{threshold:g}"
        above = cast(apply_op("Greater", [probabilities, threshold]), float32)
        found[f"accuracy/{ending}"] = metrics.accuracy(labels, above, weights)
        for name, function in (
            ("precision", metrics.precision_at_thresholds), ("recall", metrics.recall_at_thresholds)
        ):  # fmt: skip
            value, update = function(labels, probabilities, [threshold], weights)
            found[f"{name}/{ending}"] = reshape(value, []), reshape(update, [])
    return found


def _larger(mean: Pair) -> Pair:
    """Returns the accuracy of the more frequent class, by the mean of labels."""
    value, update = (apply_op("Maximum", [x, apply_op("Sub", [1.0, x])]) for x in mean)
    return value, update


class MultiClassHead(ClassHead):
    """A logit for each class. The arguments are those of `BinaryClassHead`."""

    def __init__(
        self,
        n_classes: int,
        weight_column: str | NumericColumn | None = None,
        label_vocabulary: Sequence[str] | None = None,
        loss_reduction: str = losses.Reduction.SUM_OVER_BATCH_SIZE,
        loss_fn: Callable[..., Any] | None = None,
        name: str | None = None,
    ) -> None:
        super().__init__(n_classes, n_classes, label_vocabulary, weight_column, loss_reduction, loss_fn, name)

    def predictions(self, logits: Tensor) -> dict[str, Tensor]:
        """Returns probabilities and classes."""
        ids = expand_dims(apply_op("ArgMax", [logits, -1]), -1)
        return {
            "logits": logits,
            "probabilities": apply_op("Softmax", [logits]),
            "class_ids": ids,
            "classes": self._names(ids),
        }

    def labels(self, given: Tensor) -> Tensor:
        """Returns the numbers of the classes: one integer, or name, for each example."""
        if self._vocabulary is None and given.dtype is not string and not given.dtype.is_integer:
            raise InvalidArgumentError(
                f"classifier: labels have dtype {given.dtype.name}; integers are required for {self._classes} classes"
            )
        if (given.static_shape or (None,))[-1] not in (None, 1):
            raise InvalidArgumentError(
                f"classifier: labels have shape {format_shape(given.static_shape)}; the numbers of the classes, or "
                "their names, are required, of shape [batch] or [batch, 1]"
            )
        numbers: Tensor = cast(self.numbers(given), int64)
        return numbers

    def losses(self, labels: Tensor, logits: Tensor) -> Tensor:
        """Returns cross entropies."""
        each = sparse_softmax_cross_entropy_with_logits(labels=reshape(labels, [-1]), logits=logits)
        return expand_dims(each, -1)

    def metrics(self, labels: Tensor, predictions: Mapping[str, Tensor], weights: Any) -> dict[str, Pair]:
        """Accuracy."""
        return {"accuracy": metrics.accuracy(labels, predictions["class_ids"], weights)}


def class_head(
    n_classes: int, vocabulary: Sequence[str] | None, weight_column: str | NumericColumn | None, loss_reduction: str
) -> Head:
    """Returns the head of a classifier."""
    if n_classes < 2:
        raise InvalidArgumentError(f"classifier: n_classes is {n_classes}; 2 or more are required")
    if n_classes == 2:
        return BinaryClassHead(weight_column, None, vocabulary, loss_reduction)
    return MultiClassHead(n_classes, weight_column, vocabulary, loss_reduction)
