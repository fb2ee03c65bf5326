"""`tf.estimator.experimental`: k-means, and hooks that end a training by its evaluations."""

import sys as _sys

from timberframe.boundary import guard as _guard
from timberframe.estimator.canned.kmeans import KMeansClustering as KMeans  # noqa: F401 - a name of this module
from timberframe.estimator.early_stopping import make_early_stopping_hook as make_early_stopping_hook
from timberframe.estimator.early_stopping import stop_if_higher_hook as stop_if_higher_hook
from timberframe.estimator.early_stopping import stop_if_lower_hook as stop_if_lower_hook
from timberframe.estimator.early_stopping import stop_if_no_decrease_hook as stop_if_no_decrease_hook
from timberframe.estimator.early_stopping import stop_if_no_increase_hook as stop_if_no_increase_hook

_guard([_sys.modules[__name__]])  # here, since `import timberframe` does not load this module
