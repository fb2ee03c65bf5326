"""Linear models and networks of feature columns, as estimators."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from timberframe.losses import Reduction
from timberframe_contrib.estimator.canned.class_heads import class_head
from timberframe_contrib.estimator.canned.heads import Head, RegressionHead
from timberframe_contrib.estimator.canned.logits import DNN_RATE, Network, linear_logits, linear_rate, minimizer, relu
from timberframe_contrib.estimator.estimator import Estimator
from timberframe_contrib.estimator.run_config import RunConfig
from timberframe_contrib.estimator.spec import EstimatorSpec
from timberframe_contrib.feature_column.columns import FeatureColumn, NumericColumn


class LinearEstimator(Estimator):
    """What a head makes of linear functions of feature columns.

    head: one of `tf.estimator`, such as `PoissonRegressionHead`. The other arguments are those of LinearClassifier.
    """

    def __init__(
        self,
        head: Head,
        feature_columns: Sequence[FeatureColumn],
        model_dir: Any = None,
        optimizer: Any = "Ftrl",
        config: RunConfig | None = None,
        partitioner: Any = None,
        sparse_combiner: str = "sum",
        warm_start_from: Any = None,
    ) -> None:
        columns = list(feature_columns)

        def model_fn(features: Any, labels: Any, mode: str) -> EstimatorSpec:
            logits = linear_logits(features, columns, head.size, sparse_combiner, partitioner)
            return head.spec(features, labels, mode, logits, minimizer(optimizer, linear_rate(columns)))

        super().__init__(model_fn, model_dir, config, None, warm_start_from)


class DNNEstimator(Estimator):
    """What a head makes of the outputs of a network of dense layers on feature columns.

    head: one of `tf.estimator`, such as `MultiLabelHead`. The other arguments are those of DNNClassifier.
    """

    def __init__(
        self,
        head: Head,
        hidden_units: Sequence[int],
        feature_columns: Sequence[FeatureColumn],
        model_dir: Any = None,
        optimizer: Any = "Adagrad",
        activation_fn: Callable[[Any], Any] = relu,
        dropout: float | None = None,
        input_layer_partitioner: Any = None,
        config: RunConfig | None = None,
        warm_start_from: Any = None,
        batch_norm: bool = False,
    ) -> None:
        network = Network(feature_columns, hidden_units, activation_fn, dropout, batch_norm, input_layer_partitioner)

        def model_fn(features: Any, labels: Any, mode: str) -> EstimatorSpec:
            logits = network.logits(features, mode, head.size)
            return head.spec(features, labels, mode, logits, minimizer(optimizer, DNN_RATE))

        super().__init__(model_fn, model_dir, config, None, warm_start_from)


class LinearClassifier(LinearEstimator):
    """Classes by a linear function of feature columns.

    label_vocabulary: the names of the n_classes classes, where labels are names. weight_column: the feature with the
    weights of examples. optimizer: a tf.train.Optimizer, a function that makes one, or a name. loss_reduction: of
    tf.losses.Reduction. partitioner: divides the variables, as in `tf.get_variable`. sparse_combiner: as in
    `tf.feature_column.linear_model`. The others are those of Estimator.
    """

    def __init__(
        self,
        feature_columns: Sequence[FeatureColumn],
        model_dir: Any = None,
        n_classes: int = 2,
        weight_column: str | NumericColumn | None = None,
        label_vocabulary: Sequence[str] | None = None,
        optimizer: Any = "Ftrl",
        config: RunConfig | None = None,
        partitioner: Any = None,
        warm_start_from: Any = None,
        loss_reduction: str = Reduction.SUM,
        sparse_combiner: str = "sum",
    ) -> None:
        head = class_head(n_classes, label_vocabulary, weight_column, loss_reduction)
        super().__init__(
            head, feature_columns, model_dir, optimizer, config, partitioner, sparse_combiner, warm_start_from
        )


class LinearRegressor(LinearEstimator):
    """Numbers by a linear function of feature columns, label_dimension for each example.

    The other arguments are those of LinearClassifier.
    """

    def __init__(
        self,
        feature_columns: Sequence[FeatureColumn],
        model_dir: Any = None,
        label_dimension: int = 1,
        weight_column: str | NumericColumn | None = None,
        optimizer: Any = "Ftrl",
        config: RunConfig | None = None,
        partitioner: Any = None,
        warm_start_from: Any = None,
        loss_reduction: str = Reduction.SUM,
        sparse_combiner: str = "sum",
    ) -> None:
        head = RegressionHead(label_dimension, weight_column, loss_reduction)
        super().__init__(
            head, feature_columns, model_dir, optimizer, config, partitioner, sparse_combiner, warm_start_from
        )


class DNNClassifier(DNNEstimator):
    """Classes by a network of dense layers on feature columns.

    hidden_units: the sizes of its layers. activation_fn: of each. dropout: the probability of a zero after each, while
    training. batch_norm: whether each is normalized. input_layer_partitioner: divides the variables of the columns, as
    in `tf.get_variable`. The other arguments are those of LinearClassifier.
    """

    def __init__(
        self,
        hidden_units: Sequence[int],
        feature_columns: Sequence[FeatureColumn],
        model_dir: Any = None,
        n_classes: int = 2,
        weight_column: str | NumericColumn | None = None,
        label_vocabulary: Sequence[str] | None = None,
        optimizer: Any = "Adagrad",
        activation_fn: Callable[[Any], Any] = relu,
        dropout: float | None = None,
        input_layer_partitioner: Any = None,
        config: RunConfig | None = None,
        warm_start_from: Any = None,
        loss_reduction: str = Reduction.SUM,
        batch_norm: bool = False,
    ) -> None:
        head = class_head(n_classes, label_vocabulary, weight_column, loss_reduction)
        super().__init__(
            head, hidden_units, feature_columns, model_dir, optimizer, activation_fn, dropout, input_layer_partitioner,
            config, warm_start_from, batch_norm,
        )  # fmt: skip


class DNNRegressor(DNNEstimator):
    """Numbers by a network of dense layers on feature columns, label_dimension for each example.

    The other arguments are those of DNNClassifier.
    """

    def __init__(
        self,
        hidden_units: Sequence[int],
        feature_columns: Sequence[FeatureColumn],
        model_dir: Any = None,
        label_dimension: int = 1,
        weight_column: str | NumericColumn | None = None,
        optimizer: Any = "Adagrad",
        activation_fn: Callable[[Any], Any] = relu,
        dropout: float | None = None,
        input_layer_partitioner: Any = None,
        config: RunConfig | None = None,
        warm_start_from: Any = None,
        loss_reduction: str = Reduction.SUM,
        batch_norm: bool = False,
    ) -> None:
        head = RegressionHead(label_dimension, weight_column, loss_reduction)
        super().__init__(
            head, hidden_units, feature_columns, model_dir, optimizer, activation_fn, dropout, input_layer_partitioner,
            config, warm_start_from, batch_norm,
        )  # fmt: skip
