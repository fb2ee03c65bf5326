"""Linear models and networks of feature columns, as estimators."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from timberframe.api.framework import GraphKeys, control_dependencies, get_collection
from timberframe.api.random_initializers import glorot_uniform_initializer
from timberframe.api.selection import cast
from timberframe.api.variable_scope import variable_scope
from timberframe.estimator.canned.heads import Head, RegressionHead, class_head
from timberframe.estimator.estimator import Estimator
from timberframe.estimator.run_config import RunConfig
from timberframe.estimator.spec import EstimatorSpec, ModeKeys
from timberframe.feature_column.columns import FeatureColumn
from timberframe.feature_column.inputs import input_layer, linear_model
from timberframe.layers import batch_normalization, dense, dropout
from timberframe.losses import Reduction
from timberframe.summary.functions import histogram, scalar
from timberframe.train.adaptive import AdagradOptimizer, AdamOptimizer, RMSPropOptimizer
from timberframe.train.descent import GradientDescentOptimizer
from timberframe.train.ftrl import FtrlOptimizer
from timberframe.train.optimizer import Optimizer
from timberframe.train.steps import get_global_step
from timberframe_core.dtypes import float32
from timberframe_core.errors import InvalidArgumentError
from timberframe_core.graph.apply import apply_op
from timberframe_core.graph.operation import Tensor

_OPTIMIZERS: dict[str, Callable[..., Any]] = {
    "Adagrad": AdagradOptimizer, "Adam": AdamOptimizer, "Ftrl": FtrlOptimizer, "RMSProp": RMSPropOptimizer,
    "SGD": GradientDescentOptimizer,
}  # fmt: skip
_DNN_RATE = 0.05
_LINEAR_RATE = 0.2


def _relu(x: Any) -> Any:
    return apply_op("Relu", [x])


def _optimizer(given: Any, rate: float) -> Any:
    """The optimizer that is meant: one, a function that makes one, or a name, with this rate."""
    if isinstance(given, str):
        if given not in _OPTIMIZERS:
            raise InvalidArgumentError(f"optimizer is '{given}'; one of {', '.join(_OPTIMIZERS)} is required")
        return _OPTIMIZERS[given](learning_rate=rate)
    made = given() if callable(given) and not isinstance(given, Optimizer) else given
    if not isinstance(made, Optimizer):
        raise InvalidArgumentError(f"optimizer is {given!r}; a tf.train.Optimizer or its name is required")
    return made


def _linear_fn(head: Head, columns: Sequence[FeatureColumn], optimizer: Any, combiner: str) -> Callable[..., Any]:
    def model_fn(features: Any, labels: Any, mode: str) -> EstimatorSpec:
        with variable_scope("linear"):
            logits = linear_model(features, columns, head.size, combiner)
            scalar("bias", _mean(logits)) if head.size == 1 else histogram("logits", logits)
        rate = min(_LINEAR_RATE, 1 / math.sqrt(len(columns)))
        return head.spec(features, labels, mode, logits, _minimizer(optimizer, rate))

    return model_fn


def _minimizer(optimizer: Any, rate: float) -> Callable[[Any], Any]:
    """The function that makes a training step of a loss."""

    def minimize(loss: Any) -> Any:
        with control_dependencies(get_collection(GraphKeys.UPDATE_OPS)):  # of batch normalization
            return _optimizer(optimizer, rate).minimize(loss, get_global_step())

    return minimize


def _summarize(x: Tensor) -> None:
    scalar("fraction_of_zero_values", _mean(cast(apply_op("Equal", [x, 0.0]), float32)))
    histogram("activation", x)


def _mean(x: Tensor) -> Any:
    return apply_op("Mean", [x, list(range(x.shape.ndims or 0))])


def _dnn_fn(
    head: Head,
    columns: Sequence[FeatureColumn],
    hidden_units: Sequence[int],
    optimizer: Any,
    activation_fn: Callable[[Any], Any],
    drop: float | None,
    batch_norm: bool,
) -> Callable[..., Any]:
    def model_fn(features: Any, labels: Any, mode: str) -> EstimatorSpec:
        training = mode == ModeKeys.TRAIN
        with variable_scope("dnn"):
            with variable_scope("input_from_feature_columns"):
                net = input_layer(features, columns)
            for i, units in enumerate(hidden_units):
                with variable_scope(f"hiddenlayer_{i}") as scope:
                    net = dense(net, units, activation_fn, kernel_initializer=glorot_uniform_initializer(), name=scope)
                    if drop is not None and training:
                        net = dropout(net, drop, training=True)
                    if batch_norm:
                        net = batch_normalization(net, momentum=0.999, training=training, name=f"batchnorm_{i}")
                    _summarize(net)
            with variable_scope("logits") as scope:
                logits = dense(net, head.size, kernel_initializer=glorot_uniform_initializer(), name=scope)
                _summarize(logits)
        return head.spec(features, labels, mode, logits, _minimizer(optimizer, _DNN_RATE))

    return model_fn


class LinearClassifier(Estimator):
    """Classes by a linear function of feature columns.

    label_vocabulary: the names of the n_classes classes, where labels are names. weight_column: the feature with the
    weights of examples. optimizer: a tf.train.Optimizer, a function that makes one, or a name. loss_reduction: of
    tf.losses.Reduction. sparse_combiner: as in `tf.feature_column.linear_model`. The others are those of Estimator.
    """

    def __init__(
        self,
        feature_columns: Sequence[FeatureColumn],
        model_dir: Any = None,
        n_classes: int = 2,
        weight_column: str | None = None,
        label_vocabulary: Sequence[str] | None = None,
        optimizer: Any = "Ftrl",
        config: RunConfig | None = None,
        partitioner: Any = None,
        warm_start_from: Any = None,
        loss_reduction: str = Reduction.SUM,
        sparse_combiner: str = "sum",
    ) -> None:
        head = class_head(n_classes, label_vocabulary, weight_column, loss_reduction)
        function = _linear_fn(head, list(feature_columns), optimizer, sparse_combiner)
        super().__init__(function, model_dir, config, None, warm_start_from)


class LinearRegressor(Estimator):
    """Numbers by a linear function of feature columns, label_dimension for each example.

    The other arguments are those of LinearClassifier.
    """

    def __init__(
        self,
        feature_columns: Sequence[FeatureColumn],
        model_dir: Any = None,
        label_dimension: int = 1,
        weight_column: str | None = None,
        optimizer: Any = "Ftrl",
        config: RunConfig | None = None,
        partitioner: Any = None,
        warm_start_from: Any = None,
        loss_reduction: str = Reduction.SUM,
        sparse_combiner: str = "sum",
    ) -> None:
        head = RegressionHead(label_dimension, weight_column, loss_reduction)
        function = _linear_fn(head, list(feature_columns), optimizer, sparse_combiner)
        super().__init__(function, model_dir, config, None, warm_start_from)


class DNNClassifier(Estimator):
    """Classes by a network of dense layers on feature columns.

    hidden_units: the sizes of its layers. activation_fn: of each. dropout: the probability of a zero after each, while
    training. batch_norm: whether each is normalized. The other arguments are those of LinearClassifier.
    """

    def __init__(
        self,
        hidden_units: Sequence[int],
        feature_columns: Sequence[FeatureColumn],
        model_dir: Any = None,
        n_classes: int = 2,
        weight_column: str | None = None,
        label_vocabulary: Sequence[str] | None = None,
        optimizer: Any = "Adagrad",
        activation_fn: Callable[[Any], Any] = _relu,
        dropout: float | None = None,
        input_layer_partitioner: Any = None,
        config: RunConfig | None = None,
        warm_start_from: Any = None,
        loss_reduction: str = Reduction.SUM,
        batch_norm: bool = False,
    ) -> None:
        head = class_head(n_classes, label_vocabulary, weight_column, loss_reduction)
        columns = list(feature_columns)
        function = _dnn_fn(head, columns, list(hidden_units), optimizer, activation_fn, dropout, batch_norm)
        super().__init__(function, model_dir, config, None, warm_start_from)


class DNNRegressor(Estimator):
    """Numbers by a network of dense layers on feature columns, label_dimension for each example.

    The other arguments are those of DNNClassifier.
    """

    def __init__(
        self,
        hidden_units: Sequence[int],
        feature_columns: Sequence[FeatureColumn],
        model_dir: Any = None,
        label_dimension: int = 1,
        weight_column: str | None = None,
        optimizer: Any = "Adagrad",
        activation_fn: Callable[[Any], Any] = _relu,
        dropout: float | None = None,
        input_layer_partitioner: Any = None,
        config: RunConfig | None = None,
        warm_start_from: Any = None,
        loss_reduction: str = Reduction.SUM,
        batch_norm: bool = False,
    ) -> None:
        head = RegressionHead(label_dimension, weight_column, loss_reduction)
        columns = list(feature_columns)
        function = _dnn_fn(head, columns, list(hidden_units), optimizer, activation_fn, dropout, batch_norm)
        super().__init__(function, model_dir, config, None, warm_start_from)
