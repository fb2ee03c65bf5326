"""`tf.estimator.experimental`: k-means, and hooks that end a training by its evaluations."""

import sys as _sys
from collections.abc import Iterable as _Iterable
from typing import Any as _Any

from timberframe.boundary import guard as _guard
from timberframe_contrib.estimator.canned.clustering import RANDOM_INIT as _RANDOM_INIT
from timberframe_contrib.estimator.canned.clustering import SQUARED_EUCLIDEAN_DISTANCE as _SQUARED_EUCLIDEAN_DISTANCE
from timberframe_contrib.estimator.canned.kmeans import KMeansClustering as _KMeansClustering
from timberframe_contrib.estimator.early_stopping import make_early_stopping_hook as make_early_stopping_hook
from timberframe_contrib.estimator.early_stopping import stop_if_higher_hook as stop_if_higher_hook
from timberframe_contrib.estimator.early_stopping import stop_if_lower_hook as stop_if_lower_hook
from timberframe_contrib.estimator.early_stopping import stop_if_no_decrease_hook as stop_if_no_decrease_hook
from timberframe_contrib.estimator.early_stopping import stop_if_no_increase_hook as stop_if_no_increase_hook
from timberframe_contrib.estimator.run_config import RunConfig as _RunConfig
from timberframe_contrib.feature_column.columns import FeatureColumn as _FeatureColumn


class KMeans(_KMeansClustering):
    """`tf.contrib.factorization.KMeansClustering`, whose random_seed is called `seed` here; it is none by default."""

    def __init__(
        self,
        num_clusters: int,
        model_dir: _Any = None,
        initial_clusters: _Any = _RANDOM_INIT,
        distance_metric: str = _SQUARED_EUCLIDEAN_DISTANCE,
        seed: int | None = None,
        use_mini_batch: bool = True,
        mini_batch_steps_per_iteration: int = 1,
        kmeans_plus_plus_num_retries: int = 2,
        relative_tolerance: float | None = None,
        config: _RunConfig | None = None,
        feature_columns: _Iterable[_FeatureColumn] | None = None,
    ) -> None:
        super().__init__(
            num_clusters, model_dir, initial_clusters, distance_metric, seed, use_mini_batch,
            mini_batch_steps_per_iteration, kmeans_plus_plus_num_retries, relative_tolerance, config, feature_columns,
        )  # fmt: skip


_guard([_sys.modules[__name__]])  # here, since `import timberframe` does not load this module
