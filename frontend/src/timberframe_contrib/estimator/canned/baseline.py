"""Estimators that look at no feature: what a model is to be better than."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from timberframe.api.arrays import shape
from timberframe.api.constants import ones
from timberframe.api.initializers import zeros_initializer
from timberframe.api.variable_scope import get_variable, variable_scope
from timberframe.losses import Reduction
from timberframe_contrib.estimator.canned.class_heads import class_head
from timberframe_contrib.estimator.canned.heads import Head, RegressionHead
from timberframe_contrib.estimator.canned.logits import minimizer
from timberframe_contrib.estimator.estimator import Estimator
from timberframe_contrib.estimator.run_config import RunConfig
from timberframe_contrib.estimator.spec import EstimatorSpec
from timberframe_contrib.feature_column.columns import NumericColumn
from timberframe_core.dtypes import float32
from timberframe_core.errors import InvalidArgumentError

_RATE = 0.3


class BaselineEstimator(Estimator):
    """What a head makes of logits that are the same for all examples: the variable baseline/bias.

    The arguments are those of LinearEstimator.
    """

    def __init__(
        self, head: Head, model_dir: Any = None, optimizer: Any = "Ftrl", config: RunConfig | None = None
    ) -> None:
        def model_fn(features: Any, labels: Any, mode: str) -> EstimatorSpec:
            with variable_scope("baseline"):
                bias = get_variable("bias", [head.size], float32, zeros_initializer())
            logits = bias * ones([_examples(features), head.size])
            return head.spec(features, labels, mode, logits, minimizer(optimizer, _RATE))

        super().__init__(model_fn, model_dir, config)


def _examples(features: Any) -> Any:
    """Returns how many examples there are, by the first feature."""
    if isinstance(features, Mapping) and not features:
        raise InvalidArgumentError(
            "baseline: there are no features; one is required, which says how many examples there are"
        )
    sizes: Any = shape(next(iter(features.values())) if isinstance(features, Mapping) else features)
    return sizes[0]


class BaselineClassifier(BaselineEstimator):
    """The frequencies of the classes. The arguments are those of LinearClassifier."""

    def __init__(
        self,
        model_dir: Any = None,
        n_classes: int = 2,
        weight_column: str | NumericColumn | None = None,
        label_vocabulary: Sequence[str] | None = None,
        optimizer: Any = "Ftrl",
        config: RunConfig | None = None,
        loss_reduction: str = Reduction.SUM,
    ) -> None:
        head = class_head(n_classes, label_vocabulary, weight_column, loss_reduction)
        super().__init__(head, model_dir, optimizer, config)


class BaselineRegressor(BaselineEstimator):
    """The mean of the labels. The arguments are those of LinearRegressor."""

    def __init__(
        self,
        model_dir: Any = None,
        label_dimension: int = 1,
        weight_column: str | NumericColumn | None = None,
        optimizer: Any = "Ftrl",
        config: RunConfig | None = None,
        loss_reduction: str = Reduction.SUM,
    ) -> None:
        super().__init__(RegressionHead(label_dimension, weight_column, loss_reduction), model_dir, optimizer, config)
