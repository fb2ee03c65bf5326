"""Estimators made of others."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from timberframe_contrib.estimator.calls import argument_names
from timberframe_contrib.estimator.estimator import Estimator
from timberframe_contrib.estimator.spec import EstimatorSpec, ModeKeys
from timberframe_core.errors import InvalidArgumentError

_ARGUMENTS = ("predictions", "features", "labels", "config")


def add_metrics(estimator: Estimator, metric_fn: Callable[..., Any]) -> Estimator:
    """Returns an estimator in the same folder with further metrics.

    metric_fn: a function of predictions, features, labels and config, or of some of these, that returns by name what a
    function of `tf.metrics` returns; a name that there is takes the place of the other.
    """
    names = argument_names(metric_fn)
    if unknown := [name for name in names if name not in _ARGUMENTS]:
        raise InvalidArgumentError(
            f"tf.estimator.add_metrics: metric_fn has the arguments {unknown}; it may have {', '.join(_ARGUMENTS)}"
        )

    def model_fn(features: Any, labels: Any, mode: str, config: Any) -> EstimatorSpec:
        spec = estimator.model_fn(features, labels, mode, config)
        if mode != ModeKeys.EVAL:
            return spec
        given = {"predictions": spec.predictions, "features": features, "labels": labels, "config": config}
        further = metric_fn(**{name: given[name] for name in names})
        return spec._replace(eval_metric_ops={**spec.eval_metric_ops, **further})

    return Estimator(model_fn, estimator.model_dir, estimator.config)
