"""`tf.contrib.estimator`: hooks that end a training by its evaluations; tf.estimator has the estimators."""

import sys

from timberframe.boundary import guard
from timberframe.estimator.early_stopping import make_early_stopping_hook as make_early_stopping_hook
from timberframe.estimator.early_stopping import read_eval_metrics as read_eval_metrics
from timberframe.estimator.early_stopping import stop_if_higher_hook as stop_if_higher_hook
from timberframe.estimator.early_stopping import stop_if_lower_hook as stop_if_lower_hook
from timberframe.estimator.early_stopping import stop_if_no_decrease_hook as stop_if_no_decrease_hook
from timberframe.estimator.early_stopping import stop_if_no_increase_hook as stop_if_no_increase_hook

__all__ = [
    "make_early_stopping_hook", "read_eval_metrics", "stop_if_higher_hook", "stop_if_lower_hook",
    "stop_if_no_decrease_hook", "stop_if_no_increase_hook",
]  # fmt: skip

guard([sys.modules[__name__]], "tf.contrib.estimator")
