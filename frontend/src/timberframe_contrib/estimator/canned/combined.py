"""Linear models and networks whose logits are added up (Cheng et al. 2016, wide and deep), as estimators."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from timberframe.api.framework import GraphKeys, control_dependencies, get_collection, group
from timberframe.api.variable_functions import assign_add
from timberframe.losses import Reduction
from timberframe.train.steps import get_global_step
from timberframe_contrib.estimator.canned.class_heads import class_head
from timberframe_contrib.estimator.canned.heads import Head, RegressionHead
from timberframe_contrib.estimator.canned.logits import (
    DNN_RATE,
    Network,
    linear_logits,
    linear_rate,
    optimizer_of,
    relu,
)
from timberframe_contrib.estimator.estimator import Estimator
from timberframe_contrib.estimator.run_config import RunConfig
from timberframe_contrib.estimator.spec import EstimatorSpec
from timberframe_contrib.feature_column.columns import FeatureColumn, NumericColumn
from timberframe_core.errors import InvalidArgumentError

Columns = Sequence[FeatureColumn] | None


class DNNLinearCombinedEstimator(Estimator):
    """What a head makes of the sum of a linear model and a network, each with columns and an optimizer of its own.

    Without linear_feature_columns, or without dnn_feature_columns, there is the other one alone. The other arguments
    are those of LinearEstimator and DNNEstimator.
    """

    def __init__(
        self,
        head: Head,
        model_dir: Any = None,
        linear_feature_columns: Columns = None,
        linear_optimizer: Any = "Ftrl",
        dnn_feature_columns: Columns = None,
        dnn_optimizer: Any = "Adagrad",
        dnn_hidden_units: Sequence[int] | None = None,
        dnn_activation_fn: Callable[[Any], Any] = relu,
        dnn_dropout: float | None = None,
        input_layer_partitioner: Any = None,
        config: RunConfig | None = None,
        batch_norm: bool = False,
        linear_sparse_combiner: str = "sum",
        warm_start_from: Any = None,
    ) -> None:
        wide, deep = list(linear_feature_columns or ()), list(dnn_feature_columns or ())
        if (not wide and not deep) or bool(deep) != bool(dnn_hidden_units):
            raise InvalidArgumentError(
                f"{type(self).__name__}: {len(wide)} linear_feature_columns, {len(deep)} dnn_feature_columns and "
                f"dnn_hidden_units {dnn_hidden_units}; columns of one kind at least, and dnn_hidden_units with the "
                "second, are required"
            )
        network = Network(
            deep, dnn_hidden_units or (), dnn_activation_fn, dnn_dropout, batch_norm, input_layer_partitioner
        )
        parts = {"dnn": (dnn_optimizer, DNN_RATE)} if deep else {}
        if wide:
            parts["linear"] = (linear_optimizer, linear_rate(wide))

        def model_fn(features: Any, labels: Any, mode: str) -> EstimatorSpec:
            made: list[Any] = []
            if deep:
                made.append(network.logits(features, mode, head.size))
            if wide:
                made.append(linear_logits(features, wide, head.size, linear_sparse_combiner, input_layer_partitioner))
            logits = made[0] if len(made) == 1 else made[0] + made[1]
            return head.spec(features, labels, mode, logits, lambda loss: _trained(loss, parts))

        super().__init__(model_fn, model_dir, config, None, warm_start_from)


def _trained(loss: Any, parts: dict[str, tuple[Any, float]]) -> Any:
    """Returns a training step of each part's variables, by its own optimizer."""
    with control_dependencies(get_collection(GraphKeys.UPDATE_OPS)):  # of batch normalization
        steps = [
            optimizer_of(given, rate).minimize(
                loss, var_list=get_collection(GraphKeys.TRAINABLE_VARIABLES, f"{scope}/")
            )
            for scope, (given, rate) in parts.items()
        ]
    with control_dependencies([group(*steps)]):
        return assign_add(get_global_step(), 1).op


class DNNLinearCombinedClassifier(DNNLinearCombinedEstimator):
    """Classes by the sum of a linear model and a network.

    The arguments are those of DNNLinearCombinedEstimator and of LinearClassifier.
    """

    def __init__(
        self,
        model_dir: Any = None,
        linear_feature_columns: Columns = None,
        linear_optimizer: Any = "Ftrl",
        dnn_feature_columns: Columns = None,
        dnn_optimizer: Any = "Adagrad",
        dnn_hidden_units: Sequence[int] | None = None,
        dnn_activation_fn: Callable[[Any], Any] = relu,
        dnn_dropout: float | None = None,
        n_classes: int = 2,
        weight_column: str | NumericColumn | None = None,
        label_vocabulary: Sequence[str] | None = None,
        input_layer_partitioner: Any = None,
        config: RunConfig | None = None,
        warm_start_from: Any = None,
        loss_reduction: str = Reduction.SUM,
        batch_norm: bool = False,
        linear_sparse_combiner: str = "sum",
    ) -> None:
        super().__init__(
            class_head(n_classes, label_vocabulary, weight_column, loss_reduction), model_dir, linear_feature_columns,
            linear_optimizer, dnn_feature_columns, dnn_optimizer, dnn_hidden_units, dnn_activation_fn, dnn_dropout,
            input_layer_partitioner, config, batch_norm, linear_sparse_combiner, warm_start_from,
        )  # fmt: skip


class DNNLinearCombinedRegressor(DNNLinearCombinedEstimator):
    """Numbers by the sum of a linear model and a network.

    The arguments are those of DNNLinearCombinedEstimator and of LinearRegressor.
    """

    def __init__(
        self,
        model_dir: Any = None,
        linear_feature_columns: Columns = None,
        linear_optimizer: Any = "Ftrl",
        dnn_feature_columns: Columns = None,
        dnn_optimizer: Any = "Adagrad",
        dnn_hidden_units: Sequence[int] | None = None,
        dnn_activation_fn: Callable[[Any], Any] = relu,
        dnn_dropout: float | None = None,
        label_dimension: int = 1,
        weight_column: str | NumericColumn | None = None,
        input_layer_partitioner: Any = None,
        config: RunConfig | None = None,
        warm_start_from: Any = None,
        loss_reduction: str = Reduction.SUM,
        batch_norm: bool = False,
        linear_sparse_combiner: str = "sum",
    ) -> None:
        super().__init__(
            RegressionHead(label_dimension, weight_column, loss_reduction), model_dir, linear_feature_columns,
            linear_optimizer, dnn_feature_columns, dnn_optimizer, dnn_hidden_units, dnn_activation_fn, dnn_dropout,
            input_layer_partitioner, config, batch_norm, linear_sparse_combiner, warm_start_from,
        )  # fmt: skip
