"""Logits of linear models and networks, and the training steps of estimators that are built in."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from timberframe.api.framework import GraphKeys, control_dependencies, get_collection
from timberframe.api.random_initializers import glorot_uniform_initializer
from timberframe.api.selection import cast
from timberframe.api.variable_scope import variable_scope
from timberframe.layers import batch_normalization, dense, dropout
from timberframe.summary.functions import histogram, scalar
from timberframe.train.adaptive import AdagradOptimizer, AdamOptimizer, RMSPropOptimizer
from timberframe.train.descent import GradientDescentOptimizer
from timberframe.train.ftrl import FtrlOptimizer
from timberframe.train.optimizer import Optimizer
from timberframe.train.steps import get_global_step
from timberframe_contrib.estimator.spec import ModeKeys
from timberframe_contrib.feature_column.columns import FeatureColumn
from timberframe_contrib.feature_column.inputs import input_layer, linear_model
from timberframe_core.dtypes import float32
from timberframe_core.errors import InvalidArgumentError
from timberframe_core.graph.apply import apply_op
from timberframe_core.graph.operation import Tensor

_OPTIMIZERS: dict[str, Callable[..., Any]] = {
    "Adagrad": AdagradOptimizer, "Adam": AdamOptimizer, "Ftrl": FtrlOptimizer, "RMSProp": RMSPropOptimizer,
    "SGD": GradientDescentOptimizer,
}  # fmt: skip
DNN_RATE = 0.05
_LINEAR_RATE = 0.2


def relu(x: Any) -> Any:
    """Returns the larger of x and 0."""
    return apply_op("Relu", [x])


def linear_rate(columns: Sequence[FeatureColumn]) -> float:
    """Returns the learning rate of a linear model."""
    return min(_LINEAR_RATE, 1 / math.sqrt(len(columns)))


def optimizer_of(given: Any, rate: float) -> Any:
    """Returns the optimizer that is meant: one, a function that makes one, or a name, with this rate."""
    if isinstance(given, str):
        if given not in _OPTIMIZERS:
            raise InvalidArgumentError(f"optimizer is '{given}'; one of {', '.join(_OPTIMIZERS)} is required")
        return _OPTIMIZERS[given](learning_rate=rate)
    made = given() if callable(given) and not isinstance(given, Optimizer) else given
    if not isinstance(made, Optimizer):
        raise InvalidArgumentError(f"optimizer is {given!r}; a tf.train.Optimizer or its name is required")
    return made


def minimizer(optimizer: Any, rate: float) -> Callable[[Any], Any]:
    """Returns the function that makes a training step of a loss."""

    def minimize(loss: Any) -> Any:
        with control_dependencies(get_collection(GraphKeys.UPDATE_OPS)):  # of batch normalization
            return optimizer_of(optimizer, rate).minimize(loss, get_global_step())

    return minimize


def linear_logits(
    features: Any, columns: Sequence[FeatureColumn], size: int, combiner: str, partitioner: Any = None
) -> Any:
    """Linear functions of feature columns, [batch, size], of variables in scope linear, which partitioner divides."""
    with variable_scope("linear", partitioner=partitioner):
        logits = linear_model(features, columns, size, combiner)
        scalar("bias", _mean(logits)) if size == 1 else histogram("logits", logits)
    return logits


class Network:
    """Dense layers on feature columns, of variables in scope dnn.

    hidden_units: the sizes of the layers. activation: of each. drop: the probability of a zero after each, while
    training. batch_norm: whether each is normalized. input_partitioner: divides the variables of the columns.
    """

    def __init__(
        self,
        columns: Sequence[FeatureColumn],
        hidden_units: Sequence[int],
        activation: Callable[[Any], Any],
        drop: float | None,
        batch_norm: bool,
        input_partitioner: Any = None,
    ) -> None:
        self.columns, self._hidden_units = list(columns), list(hidden_units)
        self._activation, self._drop, self._batch_norm = activation, drop, batch_norm
        self._input_partitioner = input_partitioner

    def logits(self, features: Any, mode: str, size: int) -> Any:
        """Returns the outputs of the last layer, [batch, size]."""
        training = mode == ModeKeys.TRAIN
        with variable_scope("dnn"):
            with variable_scope("input_from_feature_columns", partitioner=self._input_partitioner):
                net = input_layer(features, self.columns)
            for i, units in enumerate(self._hidden_units):
                with variable_scope(f"hiddenlayer_{i}") as scope:
                    net = dense(
                        net, units, self._activation, kernel_initializer=glorot_uniform_initializer(), name=scope
                    )
                    if self._drop is not None and training:
                        net = dropout(net, self._drop, training=True)
                    if self._batch_norm:
                        net = batch_normalization(net, momentum=0.999, training=training, name=f"batchnorm_{i}")
                    _summarize(net)
            with variable_scope("logits") as scope:
                logits = dense(net, size, kernel_initializer=glorot_uniform_initializer(), name=scope)
                _summarize(logits)
        return logits


def _summarize(x: Tensor) -> None:
    scalar("fraction_of_zero_values", _mean(cast(apply_op("Equal", [x, 0.0]), float32)))
    histogram("activation", x)


def _mean(x: Tensor) -> Any:
    return apply_op("Mean", [x, list(range(x.shape.ndims or 0))])
