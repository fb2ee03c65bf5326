"""Heads: what logits mean, as predictions, a loss, metrics and exported outputs. The names are TensorFlow's."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from timberframe import losses, metrics
from timberframe.api.arrays import concat, expand_dims, reshape
from timberframe.api.composites import sigmoid_cross_entropy_with_logits
from timberframe.api.framework import control_dependencies
from timberframe.api.indexing import gather
from timberframe.api.lookup import index_table_from_tensor
from timberframe.api.nn import sparse_softmax_cross_entropy_with_logits
from timberframe.api.reduction import reduction_axes
from timberframe.api.selection import cast, clip_by_value
from timberframe.api.string_parts import as_string
from timberframe.estimator.export_outputs import ClassificationOutput, ExportOutput, PredictOutput, RegressionOutput
from timberframe.estimator.spec import EstimatorSpec, ModeKeys
from timberframe_core.dtypes import float32, int64, string
from timberframe_core.errors import InvalidArgumentError, NotFoundError
from timberframe_core.graph.apply import apply_op, convert_to_tensor
from timberframe_core.graph.operation import Tensor

_DEFAULT = "serving_default"
Pair = tuple[Any, Any]


class Head(ABC):
    """What the logits of a model mean.

    size: how many logits an example has. weight_column: the feature with the weights of examples. loss_reduction: how
    the losses of examples become one, of tf.losses.Reduction.
    """

    def __init__(self, size: int, weight_column: str | None, loss_reduction: str) -> None:
        self.size = size
        self._weight_column = weight_column
        self._loss_reduction = loss_reduction

    @abstractmethod
    def predictions(self, logits: Tensor) -> dict[str, Tensor]:
        """What the model says of each example."""

    @abstractmethod
    def labels(self, given: Tensor) -> Tensor:
        """Labels of shape [batch, ...] as the loss needs them."""

    @abstractmethod
    def losses(self, labels: Tensor, logits: Tensor) -> Tensor:
        """The loss of each example."""

    @abstractmethod
    def metrics(self, labels: Tensor, predictions: Mapping[str, Tensor], weights: Any) -> dict[str, Pair]:
        """Metrics besides the average loss."""

    @abstractmethod
    def exported(self, predictions: Mapping[str, Tensor]) -> dict[str, ExportOutput]:
        """What exported models give."""

    def spec(
        self, features: Mapping[str, Any], labels: Any, mode: str, logits: Tensor, minimize: Callable[[Any], Any]
    ) -> EstimatorSpec:
        """The EstimatorSpec of a mode. minimize: the training step of a loss."""
        predictions = self.predictions(logits)
        if mode == ModeKeys.PREDICT:
            return EstimatorSpec(mode, predictions, export_outputs=self.exported(predictions))
        if labels is None:
            raise InvalidArgumentError(f"estimator: input_fn returned no labels; mode {mode!r} requires them")
        truth = self.labels(_column(convert_to_tensor(labels)))
        weights = self._weights(features)
        each = self.losses(truth, logits)
        loss = losses.compute_weighted_loss(each, 1.0 if weights is None else weights, reduction=self._loss_reduction)
        if mode == ModeKeys.TRAIN:
            return EstimatorSpec(mode, predictions, loss, minimize(loss))
        found = {**self.metrics(truth, predictions, weights), "average_loss": metrics.mean(each, weights)}
        return EstimatorSpec(mode, predictions, loss, eval_metric_ops=found)

    def _weights(self, features: Mapping[str, Any]) -> Any:
        if self._weight_column is None:
            return None
        if self._weight_column not in features:
            raise NotFoundError(
                f"estimator: weight_column '{self._weight_column}' is not among the features "
                f"{', '.join(features)}; it is required"
            )
        return _column(cast(convert_to_tensor(features[self._weight_column]), float32))


def _column(x: Tensor) -> Tensor:
    """[batch] as [batch, 1]; anything else as it is."""
    return expand_dims(x, -1) if x.shape.ndims == 1 else x


class RegressionHead(Head):
    """Logits are numbers: the loss is the square of the error."""

    def predictions(self, logits: Tensor) -> dict[str, Tensor]:
        """The numbers."""
        return {"predictions": logits}

    def labels(self, given: Tensor) -> Tensor:
        """The true numbers."""
        numbers: Tensor = cast(given, float32)
        return numbers

    def losses(self, labels: Tensor, logits: Tensor) -> Tensor:
        """Squares of errors."""
        found: Tensor = apply_op("SquaredDifference", [labels, logits])
        return found

    def metrics(self, labels: Tensor, predictions: Mapping[str, Tensor], weights: Any) -> dict[str, Pair]:
        """Means of predictions and labels."""
        return {
            "prediction/mean": metrics.mean(predictions["predictions"], weights),
            "label/mean": metrics.mean(labels, weights),
        }

    def exported(self, predictions: Mapping[str, Tensor]) -> dict[str, ExportOutput]:
        """A regression, and predictions."""
        value = RegressionOutput(predictions["predictions"])
        return {_DEFAULT: value, "regression": value, "predict": PredictOutput(predictions)}


class _ClassHead(Head):
    """What classifications have in common. vocabulary: the names of the classes, where labels are names."""

    def __init__(
        self, size: int, classes: int, vocabulary: Sequence[str] | None, weight_column: str | None, loss_reduction: str
    ) -> None:
        super().__init__(size, weight_column, loss_reduction)
        if vocabulary is not None and len(vocabulary) != classes:
            raise InvalidArgumentError(
                f"classifier: label_vocabulary has {len(vocabulary)} names for {classes} classes; each needs one"
            )
        self._classes = classes
        self._vocabulary = None if vocabulary is None else list(vocabulary)

    def _numbers(self, given: Tensor) -> Tensor:
        """Labels as numbers of classes."""
        if (given.dtype is string) != (self._vocabulary is not None):
            needed = "strings are required with" if self._vocabulary is not None else "numbers are required without"
            raise InvalidArgumentError(f"classifier: labels have dtype {given.dtype.name}; {needed} label_vocabulary")
        if self._vocabulary is None:
            return self._in_range(given, given, f"must be numbers of classes, from 0 to {self._classes - 1}")
        numbers = index_table_from_tensor(self._vocabulary, name="class_id_lookup").lookup(given)
        return self._in_range(numbers, given, f"must be in label_vocabulary, {self._vocabulary}")

    def _in_range(self, numbers: Tensor, given: Tensor, required: str) -> Tensor:
        """The numbers, in runs where all are those of classes."""
        last = convert_to_tensor(self._classes - 1, numbers.dtype)
        inside = apply_op("Equal", [clip_by_value(numbers, convert_to_tensor(0, numbers.dtype), last), numbers])
        every = apply_op("All", [inside, reduction_axes(inside)])
        with control_dependencies([apply_op("Assert", [every, [f"classifier: labels {required}; they are", given]])]):
            checked: Tensor = apply_op("Identity", [numbers])
            return checked

    def _names(self, ids: Tensor) -> Tensor:
        """The names of classes; their numbers as texts without a vocabulary."""
        return as_string(ids) if self._vocabulary is None else gather(convert_to_tensor(self._vocabulary), ids)

    def exported(self, predictions: Mapping[str, Tensor]) -> dict[str, ExportOutput]:
        """A classification, and predictions."""
        probabilities = predictions["probabilities"]
        numbers = apply_op("Range", [0, self._classes, 1])
        batch = apply_op("StridedSlice", [apply_op("Shape", [probabilities]), [0], [1], [1]], {"shrink_axis_mask": 1})
        names = apply_op("Tile", [expand_dims(self._names(numbers), 0), apply_op("Pack", [[batch, 1]])])
        output = ClassificationOutput(probabilities, names)
        return {_DEFAULT: output, "classification": output, "predict": PredictOutput(predictions)}


class BinaryHead(_ClassHead):
    """One logit: that of the second class of two."""

    def __init__(self, vocabulary: Sequence[str] | None, weight_column: str | None, loss_reduction: str) -> None:
        super().__init__(1, 2, vocabulary, weight_column, loss_reduction)

    def predictions(self, logits: Tensor) -> dict[str, Tensor]:
        """Probabilities and classes."""
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
        numbers: Tensor = cast(self._numbers(given), float32)
        return numbers

    def losses(self, labels: Tensor, logits: Tensor) -> Tensor:
        """Cross entropies."""
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
        }

    def exported(self, predictions: Mapping[str, Tensor]) -> dict[str, ExportOutput]:
        """A regression of the probability, too."""
        return {**super().exported(predictions), "regression": RegressionOutput(predictions["logistic"])}


def _larger(mean: Pair) -> Pair:
    """The accuracy of the more frequent class, by the mean of labels."""
    value, update = (apply_op("Maximum", [x, apply_op("Sub", [1.0, x])]) for x in mean)
    return value, update


class MultiClassHead(_ClassHead):
    """A logit for each class."""

    def __init__(
        self, classes: int, vocabulary: Sequence[str] | None, weight_column: str | None, loss_reduction: str
    ) -> None:
        super().__init__(classes, classes, vocabulary, weight_column, loss_reduction)

    def predictions(self, logits: Tensor) -> dict[str, Tensor]:
        """Probabilities and classes."""
        ids = expand_dims(apply_op("ArgMax", [logits, -1]), -1)
        return {
            "logits": logits,
            "probabilities": apply_op("Softmax", [logits]),
            "class_ids": ids,
            "classes": self._names(ids),
        }

    def labels(self, given: Tensor) -> Tensor:
        """The numbers of the classes."""
        numbers: Tensor = cast(self._numbers(given), int64)
        return numbers

    def losses(self, labels: Tensor, logits: Tensor) -> Tensor:
        """Cross entropies."""
        each = sparse_softmax_cross_entropy_with_logits(labels=reshape(labels, [-1]), logits=logits)
        return expand_dims(each, -1)

    def metrics(self, labels: Tensor, predictions: Mapping[str, Tensor], weights: Any) -> dict[str, Pair]:
        """Accuracy."""
        return {"accuracy": metrics.accuracy(labels, predictions["class_ids"], weights)}


def class_head(
    n_classes: int, vocabulary: Sequence[str] | None, weight_column: str | None, loss_reduction: str
) -> Head:
    """The head of a classifier."""
    if n_classes < 2:
        raise InvalidArgumentError(f"classifier: n_classes is {n_classes}; 2 or more are required")
    if n_classes == 2:
        return BinaryHead(vocabulary, weight_column, loss_reduction)
    return MultiClassHead(n_classes, vocabulary, weight_column, loss_reduction)
