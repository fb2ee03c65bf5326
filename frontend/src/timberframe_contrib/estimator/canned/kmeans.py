"""k-means as an estimator."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from timberframe import metrics
from timberframe.api.arrays import concat
from timberframe.api.framework import GraphKeys, control_dependencies, get_collection
from timberframe.api.reduction import reduce_sum
from timberframe.api.variable_functions import assign_add
from timberframe.summary.functions import scalar
from timberframe.train.session_run_hook import SessionRunArgs, SessionRunHook
from timberframe.train.steps import get_global_step
from timberframe_contrib.estimator.canned.clustering import (
    CLUSTERS_VAR_NAME,
    COSINE_DISTANCE,
    KMEANS_PLUS_PLUS_INIT,
    RANDOM_INIT,
    SQUARED_EUCLIDEAN_DISTANCE,
    KMeans,
    check_choices,
)
from timberframe_contrib.estimator.canned.heads import DEFAULT
from timberframe_contrib.estimator.estimator import Estimator
from timberframe_contrib.estimator.export_outputs import PredictOutput
from timberframe_contrib.estimator.run_config import RunConfig
from timberframe_contrib.estimator.spec import EstimatorSpec
from timberframe_contrib.feature_column.columns import FeatureColumn
from timberframe_contrib.feature_column.inputs import input_layer
from timberframe_core.errors import InvalidArgumentError, OutOfRangeError
from timberframe_core.graph.apply import apply_op


class KMeansClustering(Estimator):
    """k-means of points, as an estimator; see `tf.contrib.factorization.KMeans` for the arguments of that.

    input_fn gives points [batch, dimensions], or a dict of features, which are put side by side by feature_columns or
    in the order of their names. With use_mini_batch a training step moves the centers by a batch, else input_fn is to
    give all points at once. random_seed: of what is drawn. relative_tolerance: training ends when the loss changes by
    less than that part of it. The others are those of Estimator.
    """

    SQUARED_EUCLIDEAN_DISTANCE = SQUARED_EUCLIDEAN_DISTANCE
    COSINE_DISTANCE = COSINE_DISTANCE
    RANDOM_INIT = RANDOM_INIT
    KMEANS_PLUS_PLUS_INIT = KMEANS_PLUS_PLUS_INIT
    SCORE = "score"
    CLUSTER_INDEX = "cluster_index"
    ALL_DISTANCES = "all_distances"
    CLUSTER_CENTERS_VAR_NAME = CLUSTERS_VAR_NAME

    def __init__(
        self,
        num_clusters: int,
        model_dir: Any = None,
        initial_clusters: Any = RANDOM_INIT,
        distance_metric: str = SQUARED_EUCLIDEAN_DISTANCE,
        random_seed: int | None = 0,
        use_mini_batch: bool = True,
        mini_batch_steps_per_iteration: int = 1,
        kmeans_plus_plus_num_retries: int = 2,
        relative_tolerance: float | None = None,
        config: RunConfig | None = None,
        feature_columns: Iterable[FeatureColumn] | None = None,
    ) -> None:
        check_choices("KMeansClustering", initial_clusters, distance_metric)
        self._metric = distance_metric
        columns = None if feature_columns is None else list(feature_columns)

        def model_fn(features: Any, mode: str, config: Any) -> EstimatorSpec:
            graph = KMeans(
                _points(features, columns), num_clusters, initial_clusters, distance_metric, use_mini_batch,
                mini_batch_steps_per_iteration, random_seed, kmeans_plus_plus_num_retries,
            )  # fmt: skip
            return _spec(graph, mode, config, relative_tolerance)

        super().__init__(model_fn, model_dir, config)

    def predict_cluster_index(self, input_fn: Any) -> Iterator[Any]:
        """Returns the number of the nearest center of each point."""
        return self._predicted(input_fn, self.CLUSTER_INDEX)

    def transform(self, input_fn: Any) -> Iterator[Any]:
        """Yields the distances of each point to all centers; Euclidean ones, not their squares."""
        for distances in self._predicted(input_fn, self.ALL_DISTANCES):
            yield distances if self._metric == COSINE_DISTANCE else np.sqrt(np.maximum(distances, 0))

    def _predicted(self, input_fn: Any, key: str) -> Iterator[Any]:
        for found in self.predict(input_fn, predict_keys=[key]):
            yield found[key]

    def score(self, input_fn: Any) -> Any:
        """Returns the sum of the distances (their squares, where Euclidean) of the first
        batch's points to their centers.
        """
        return self.evaluate(input_fn, steps=1)[self.SCORE]

    def cluster_centers(self) -> np.ndarray:
        """Returns the centers, [num_clusters, dimensions]."""
        centers: np.ndarray = self.get_variable_value(CLUSTERS_VAR_NAME)
        return centers


def _points(features: Any, columns: list[FeatureColumn] | None) -> Any:
    if not isinstance(features, Mapping):
        return features
    return input_layer(features, columns) if columns else concat([features[key] for key in sorted(features)], 1)


def _spec(graph: KMeans, mode: str, config: Any, tolerance: float | None) -> EstimatorSpec:
    all_scores, nearest, scores, initialized, centers, init, train = graph.training_graph()
    loss: Any = reduce_sum(scores[0])
    scalar("loss/raw", loss)
    with control_dependencies([train, assign_add(get_global_step(), 1)]):
        step = apply_op("Identity", [loss])
    hooks: list[SessionRunHook] = [_InitializeHook(init, initialized, graph.counts(centers), config)]
    if tolerance is not None:
        hooks.append(_ToleranceHook(loss, tolerance))
    index, distances = KMeansClustering.CLUSTER_INDEX, KMeansClustering.ALL_DISTANCES
    found = {distances: all_scores[0], index: nearest[0]}
    return EstimatorSpec(
        mode, found, loss, step, {KMeansClustering.SCORE: metrics.mean(loss)},
        {**{key: PredictOutput(value) for key, value in found.items()}, DEFAULT: PredictOutput(nearest[0])},
        training_hooks=hooks,
    )  # fmt: skip


class _InitializeHook(SessionRunHook):
    """Chooses centers before the first step; others than the chief wait for them.

    The checkpoint of the beginning, which is there by then, is written again: input may end before the first step.
    """

    def __init__(self, init: Any, initialized: Any, counts: Any, config: Any) -> None:
        self._init, self._initialized, self._counts, self._config = init, initialized, counts, config

    def after_create_session(self, session: Any, coord: Any) -> None:
        """Runs the initialization until there are enough centers."""
        if session.run(self._initialized):
            return
        while not session.run(self._initialized):
            if self._config.is_chief:
                self._choose(session)
            else:
                time.sleep(1)
        if self._config.is_chief:
            saver = get_collection(GraphKeys.SAVERS)[0]
            saver.save(session, os.path.join(self._config.model_dir, "model.ckpt"), get_global_step())

    def _choose(self, session: Any) -> None:
        try:
            session.run(self._init)
        except OutOfRangeError:
            chosen, clusters = session.run(self._counts)
            raise InvalidArgumentError(
                f"KMeansClustering: input_fn ended after {chosen} points were chosen for {clusters} clusters; as many "
                "points as clusters are required"
            ) from None


class _ToleranceHook(SessionRunHook):
    """Ends training when the loss hardly changes."""

    def __init__(self, loss: Any, tolerance: float) -> None:
        self._loss, self._tolerance = loss, tolerance
        self._before: float | None = None

    def before_run(self, run_context: Any) -> SessionRunArgs:
        """Asks for the loss."""
        return SessionRunArgs(self._loss)

    def after_run(self, run_context: Any, run_values: Any) -> None:
        """Compares it with that of the step before."""
        loss, before = float(run_values.results), self._before
        if before is not None and abs(loss - before) / (1 + abs(before)) < self._tolerance:
            run_context.request_stop()
        self._before = loss
