"""Heads: what logits mean, as predictions, a loss, metrics and exported outputs. The names are TensorFlow's."""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from timberframe import losses, metrics
from timberframe.api.arithmetic import add_n
from timberframe.api.arrays import expand_dims
from timberframe.api.framework import control_dependencies
from timberframe.api.selection import cast
from timberframe.train.steps import get_global_step
from timberframe_contrib.estimator.export_outputs import ExportOutput, PredictOutput, RegressionOutput
from timberframe_contrib.estimator.spec import EstimatorSpec, ModeKeys
from timberframe_contrib.feature_column.columns import NumericColumn
from timberframe_core.dtypes import float32
from timberframe_core.errors import InvalidArgumentError, NotFoundError
from timberframe_core.graph.apply import apply_op, convert_to_tensor
from timberframe_core.graph.operation import Tensor

DEFAULT = "serving_default"
Pair = tuple[Any, Any]


class Head(ABC):
    """What the logits of a model mean. size: how many logits an example has. name: follows the names of metrics."""

    def __init__(self, size: int, name: str | None) -> None:
        self.size, self.name = size, name

    @property
    def logits_dimension(self) -> int:
        """How many logits an example has."""
        return self.size

    @abstractmethod
    def predictions(self, logits: Any) -> dict[Any, Tensor]:
        """Returns what the model says of each example."""

    @abstractmethod
    def judged(
        self, features: Any, labels: Any, logits: Any, predictions: Mapping[Any, Any], mode: str
    ) -> tuple[Any, dict[str, Pair]]:
        """Returns the loss, and to evaluate metrics."""

    @abstractmethod
    def exported(self, predictions: Mapping[Any, Tensor]) -> dict[str, ExportOutput]:
        """Returns what exported models give."""

    def create_estimator_spec(
        self,
        features: Any,
        mode: str,
        logits: Any,
        labels: Any = None,
        optimizer: Any = None,
        trainable_variables: Sequence[Any] | None = None,
        train_op_fn: Callable[[Any], Any] | None = None,
        update_ops: Sequence[Any] | None = None,
        regularization_losses: Sequence[Any] | None = None,
    ) -> EstimatorSpec:
        """Returns the EstimatorSpec of a mode, for a model_fn.

        To train, one of optimizer, a tf.train.Optimizer, and train_op_fn, a function of the loss that returns a step,
        is required. trainable_variables: those that the optimizer changes, after update_ops. regularization_losses:
        are added to the loss.
        """
        if mode == ModeKeys.TRAIN and (optimizer is None) == (train_op_fn is None):
            raise InvalidArgumentError(
                f"{type(self).__name__}: optimizer is {optimizer!r} and train_op_fn {train_op_fn!r}; give one of them"
            )

        def minimize(loss: Any) -> Any:
            if train_op_fn is not None:
                return train_op_fn(loss)
            with control_dependencies(list(update_ops or ())):
                return optimizer.minimize(loss, get_global_step(), trainable_variables)

        return self.spec(features, labels, mode, logits, minimize, regularization_losses)

    def spec(
        self,
        features: Any,
        labels: Any,
        mode: str,
        logits: Any,
        minimize: Callable[[Any], Any],
        further_losses: Sequence[Any] | None = None,
    ) -> EstimatorSpec:
        """Returns the EstimatorSpec of a mode.

        minimize: the training step of a loss. further_losses: added to the head's.
        """
        predictions = self.predictions(logits)
        if mode == ModeKeys.PREDICT:
            return EstimatorSpec(mode, predictions, export_outputs=self.exported(predictions))
        if labels is None:
            raise InvalidArgumentError(f"estimator: input_fn returned no labels; mode {mode!r} requires them")
        loss, found = self.judged(features, labels, logits, predictions, mode)
        if further_losses:
            loss = add_n([loss, *further_losses])
        if mode == ModeKeys.TRAIN:
            return EstimatorSpec(mode, predictions, loss, minimize(loss))
        return EstimatorSpec(mode, predictions, loss, eval_metric_ops=found)


class SingleHead(Head):
    """What the logits mean for labels of one kind.

    weight_column: the feature with the weights of examples, or a numeric_column of it. loss_reduction: how the losses
    of examples become one, of tf.losses.Reduction. loss_fn(labels, logits), which may take features, too: the losses
    [batch, 1] in place of the head's own.
    """

    def __init__(
        self,
        size: int,
        weight_column: str | NumericColumn | None,
        loss_reduction: str,
        loss_fn: Callable[..., Any] | None = None,
        name: str | None = None,
    ) -> None:
        super().__init__(size, name)
        self._weight_column = weight_column
        self._loss_reduction, self._loss_fn = loss_reduction, loss_fn

    @abstractmethod
    def labels(self, given: Tensor) -> Tensor:
        """Labels of shape [batch, ...] as the loss needs them."""

    @abstractmethod
    def losses(self, labels: Tensor, logits: Tensor) -> Tensor:
        """Returns the loss of each example."""

    @abstractmethod
    def metrics(self, labels: Tensor, predictions: Mapping[str, Tensor], weights: Any) -> dict[str, Pair]:
        """Metrics besides the average loss."""

    def judged(
        self, features: Any, labels: Any, logits: Any, predictions: Mapping[Any, Any], mode: str
    ) -> tuple[Any, dict[str, Pair]]:
        """Returns the loss, and to evaluate metrics."""
        truth = self.labels(self.given(labels))
        weights = self._weights(features)
        each = self._losses(features, truth, logits)
        loss = losses.compute_weighted_loss(each, 1.0 if weights is None else weights, reduction=self._loss_reduction)
        if mode == ModeKeys.TRAIN:
            return loss, {}
        found = {**self.metrics(truth, predictions, weights), "average_loss": metrics.mean(each, weights)}
        ending = "" if self.name is None else f"/{self.name}"
        return loss, {f"{name}{ending}": pair for name, pair in found.items()}

    def given(self, labels: Any) -> Any:
        """Labels as a tensor [batch, ...] of rank 2 at least."""
        return _column(convert_to_tensor(labels))

    def _losses(self, features: Any, labels: Tensor, logits: Tensor) -> Tensor:
        if self._loss_fn is None:
            return self.losses(labels, logits)
        takes_features = "features" in inspect.signature(self._loss_fn).parameters
        made = self._loss_fn(labels=labels, logits=logits, **({"features": features} if takes_features else {}))
        return _column(convert_to_tensor(made))

    def _weights(self, features: Mapping[str, Any]) -> Any:
        if self._weight_column is None:
            return None
        if isinstance(self._weight_column, NumericColumn):
            return self._weight_column.dense(features)
        if self._weight_column not in features:
            raise NotFoundError(
                f"estimator: weight_column '{self._weight_column}' is not among the features "
                f"{', '.join(features)}; it is required"
            )
        return _column(cast(convert_to_tensor(features[self._weight_column]), float32))


def _column(x: Tensor) -> Tensor:
    """[batch] as [batch, 1]; anything else as it is."""
    return expand_dims(x, -1) if x.shape.ndims == 1 else x


class RegressionHead(SingleHead):
    """Logits are label_dimension numbers, or what inverse_link_fn makes of them: the loss is the square of the error.

    The other arguments are those of `SingleHead`.
    """

    def __init__(
        self,
        label_dimension: int = 1,
        weight_column: str | NumericColumn | None = None,
        loss_reduction: str = losses.Reduction.SUM_OVER_BATCH_SIZE,
        loss_fn: Callable[..., Any] | None = None,
        inverse_link_fn: Callable[[Any], Any] | None = None,
        name: str | None = None,
    ) -> None:
        super().__init__(label_dimension, weight_column, loss_reduction, loss_fn, name)
        self._inverse_link = inverse_link_fn

    def predictions(self, logits: Tensor) -> dict[str, Tensor]:
        """Returns the numbers, and where there is a link the logits."""
        if self._inverse_link is None:
            return {"predictions": logits}
        return {"predictions": self._inverse_link(logits), "logits": logits}

    def labels(self, given: Tensor) -> Tensor:
        """Returns the true numbers."""
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
        """Returns a regression, and predictions."""
        value = RegressionOutput(predictions["predictions"])
        return {DEFAULT: value, "regression": value, "predict": PredictOutput(predictions)}
