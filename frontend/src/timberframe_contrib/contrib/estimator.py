"""`tf.contrib.estimator`: heads, estimators of them, further metrics, and hooks that end a training early."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from timberframe.boundary import guard
from timberframe.losses import Reduction
from timberframe_contrib.estimator.canned.baseline import BaselineEstimator
from timberframe_contrib.estimator.canned.class_heads import BinaryClassHead as binary_classification_head  # noqa: N813
from timberframe_contrib.estimator.canned.class_heads import MultiClassHead as multi_class_head  # noqa: N813
from timberframe_contrib.estimator.canned.combined import DNNLinearCombinedEstimator
from timberframe_contrib.estimator.canned.heads import Head, RegressionHead
from timberframe_contrib.estimator.canned.label_heads import LogisticRegressionHead as logistic_regression_head  # noqa: N813
from timberframe_contrib.estimator.canned.label_heads import MultiLabelHead as multi_label_head  # noqa: N813
from timberframe_contrib.estimator.canned.label_heads import PoissonRegressionHead
from timberframe_contrib.estimator.canned.models import DNNEstimator, LinearEstimator
from timberframe_contrib.estimator.canned.multi_head import MultiHead as multi_head  # noqa: N813
from timberframe_contrib.estimator.early_stopping import (
    make_early_stopping_hook,
    read_eval_metrics,
    stop_if_higher_hook,
    stop_if_lower_hook,
    stop_if_no_decrease_hook,
    stop_if_no_increase_hook,
)
from timberframe_contrib.estimator.extending import add_metrics

__all__ = [
    "BaselineEstimator", "DNNEstimator", "DNNLinearCombinedEstimator", "LinearEstimator", "add_metrics",
    "binary_classification_head", "logistic_regression_head", "make_early_stopping_hook", "multi_class_head",
    "multi_head", "multi_label_head", "poisson_regression_head", "read_eval_metrics", "regression_head",
    "stop_if_higher_hook", "stop_if_lower_hook", "stop_if_no_decrease_hook", "stop_if_no_increase_hook",
]  # fmt: skip


def regression_head(
    weight_column: Any = None,
    label_dimension: int = 1,
    loss_reduction: str = Reduction.SUM_OVER_BATCH_SIZE,
    loss_fn: Callable[..., Any] | None = None,
    inverse_link_fn: Callable[[Any], Any] | None = None,
    name: str | None = None,
) -> Head:
    """`tf.estimator.RegressionHead`, whose first argument is the weight column here."""
    return RegressionHead(label_dimension, weight_column, loss_reduction, loss_fn, inverse_link_fn, name)


def poisson_regression_head(
    weight_column: Any = None,
    label_dimension: int = 1,
    loss_reduction: str = Reduction.SUM_OVER_BATCH_SIZE,
    compute_full_loss: bool = True,
    name: str | None = None,
) -> Head:
    """`tf.estimator.PoissonRegressionHead`, whose first argument is the weight column here."""
    return PoissonRegressionHead(label_dimension, weight_column, loss_reduction, compute_full_loss, name)


guard([sys.modules[__name__]], "tf.contrib.estimator")
