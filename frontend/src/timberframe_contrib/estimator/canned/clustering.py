"""k-means: the graph that chooses centers of clusters and moves them towards the means of their points."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from timberframe.api.arithmetic import add_n, maximum, minimum
from timberframe.api.arrays import concat, identity, no_op, reshape, shape, transpose
from timberframe.api.assertions import assert_equal, assert_greater_equal, assert_less_equal
from timberframe.api.constants import ones, ones_like, zeros, zeros_like
from timberframe.api.control_flow import cond
from timberframe.api.framework import control_dependencies, convert_to_tensor, group, placeholder_with_default
from timberframe.api.indexing import gather, unsorted_segment_sum
from timberframe.api.nn import l2_normalize
from timberframe.api.random import random_uniform
from timberframe.api.reduction import argmin, cumsum, reduce_min, reduce_sum
from timberframe.api.search import searchsorted, unique
from timberframe.api.selection import cast
from timberframe.api.unary import log, square
from timberframe.api.variable_functions import assign, assign_sub, scatter_add
from timberframe.api.variables import Variable
from timberframe.api.while_loops import while_loop
from timberframe_core.dtypes import bool_, float32, int32, int64
from timberframe_core.errors import InvalidArgumentError
from timberframe_core.graph.apply import apply_op

SQUARED_EUCLIDEAN_DISTANCE = "squared_euclidean"
COSINE_DISTANCE = "cosine"
RANDOM_INIT = "random"
KMEANS_PLUS_PLUS_INIT = "kmeans_plus_plus"
CLUSTERS_VAR_NAME = "clusters"
_SMALL = 1e-6
"""What keeps the mean of no points at zero."""


class KMeans:
    """The graph of k-means, of all points in each step (Lloyd 1982) or of a part of them (Sculley 2010).

    inputs: points [number, dimensions], float32, or a list of such. initial_clusters: the first centers [num_clusters,
    dimensions]; a function (inputs, number) that chooses up to so many; "random" points; or "kmeans_plus_plus", points
    far from each other (Arthur and Vassilvitskii 2007), each the best of kmeans_plus_plus_num_retries + 1 that are
    drawn. distance_metric: "squared_euclidean", or "cosine", 1 - the cosine of the angle. use_mini_batch: each step
    has a part of the points, and mini_batch_steps_per_iteration steps are between two changes of the centers.
    random_seed: of what is drawn. kmc2_chain_length is TensorFlow's and changes nothing.
    """

    def __init__(
        self,
        inputs: Any,
        num_clusters: Any,
        initial_clusters: Any = RANDOM_INIT,
        distance_metric: str = SQUARED_EUCLIDEAN_DISTANCE,
        use_mini_batch: bool = False,
        mini_batch_steps_per_iteration: int = 1,
        random_seed: int | None = 0,
        kmeans_plus_plus_num_retries: int = 2,
        kmc2_chain_length: int = 200,
    ) -> None:
        check_choices("KMeans", initial_clusters, distance_metric)
        self._inputs = [convert_to_tensor(x) for x in (inputs if isinstance(inputs, list) else [inputs])]
        named = isinstance(initial_clusters, str) or callable(initial_clusters)
        self._initial = initial_clusters if named else convert_to_tensor(np.asarray(initial_clusters, np.float32))
        self._count: Any = convert_to_tensor(num_clusters, int32) if named else shape(self._initial)[0]
        self._cosine = distance_metric == COSINE_DISTANCE
        self._steps = int(mini_batch_steps_per_iteration) if use_mini_batch else 0
        self._seed, self._retries = random_seed, kmeans_plus_plus_num_retries

    def training_graph(self) -> tuple[Any, Any, Any, Any, Any, Any, Any]:
        """Returns what k-means needs: (all_scores, cluster_idx, scores, initialized, centers, init_op, training_op).

        all_scores: the distance of each point to each center. cluster_idx, scores: the nearest center of each point,
        int64, and the distance to it. These are tuples with a tensor for each input. initialized, centers: variables.
        init_op: chooses centers; it is to be run until initialized is True. training_op: a step.
        """
        points = [l2_normalize(x, 1) if self._cosine else x for x in self._inputs]
        centers, initialized = self._variable(CLUSTERS_VAR_NAME), Variable(False, dtype=bool_, name="initialized")
        step: _Step = (
            _WholeStep(centers, self._count) if not self._steps else _PartStep(centers, self._steps, self._count)
        )
        init = self._initialization(points, step, initialized)
        known = l2_normalize(centers, 1) if self._cosine and self._steps == 1 else centers.value()
        all_scores = tuple(self._distances(x, known) for x in points)
        nearest = tuple(argmin(scores, 1) for scores in all_scores)
        scores = tuple(maximum(reduce_min(scores, 1), 0.0) for scores in all_scores)
        train = step.operation(points, nearest, self._cosine)
        return all_scores, nearest, scores, initialized, centers, init, train

    def counts(self, centers: Any) -> tuple[Any, Any]:
        """Returns how many centers there are, and how many there are to be."""
        return shape(centers.value())[0], self._count

    @staticmethod
    def _variable(name: str) -> Any:
        """Returns a variable whose shape is known when there are centers."""
        return Variable(placeholder_with_default(np.zeros(0, np.float32), None), name=name, validate_shape=False)

    def _distances(self, points: Any, centers: Any) -> Any:
        products: Any = apply_op("MatMul", [points, centers], {"transpose_b": True})
        if self._cosine:
            return 1 - products
        lengths: Any = reduce_sum(square(points), 1, keepdims=True)
        return lengths - 2 * products + transpose(reduce_sum(square(centers), 1, keepdims=True))

    def _initialization(self, points: list[Any], step: _Step, initialized: Any) -> Any:
        """Returns the operation that adds centers as long as there are too few."""
        known: Any = shape(step.centers.value())[0]
        remaining = self._count - known

        def add() -> Any:
            new = self._chosen(points, remaining)
            if self._cosine:
                new = l2_normalize(new, 1)
            whole = cond(apply_op("Equal", [known, 0]), lambda: new, lambda: concat([step.centers.value(), new], 0))
            number = shape(whole)[0]
            enough = assert_less_equal(number, self._count, message="initial_clusters gave more centers than remained")
            with control_dependencies([enough]):
                kept = [assign(v, whole, validate_shape=False) for v in step.copies]
            with control_dependencies(kept):
                return group(assign(initialized, apply_op("Equal", [number, self._count])))

        return cond(apply_op("Greater", [remaining, 0]), add, no_op)

    def _chosen(self, points: list[Any], remaining: Any) -> Any:
        """New centers, as many as remain or fewer."""
        if callable(self._initial):
            return convert_to_tensor(self._initial(self._inputs, remaining))
        if not isinstance(self._initial, str):
            with control_dependencies([assert_equal(remaining, shape(self._initial)[0])]):
                return identity(self._initial)
        whole = points[0] if len(points) == 1 else concat(points, 0)
        number: Any = shape(whole)[0]
        if self._initial == RANDOM_INIT:
            return cond(
                apply_op("LessEqual", [number, remaining]),
                lambda: identity(whole),
                lambda: gather(whole, random_uniform([remaining], 0, number, int32, self._seed)),
            )
        message = "KMeans: kmeans_plus_plus has x points for y clusters; as many points at least are required"
        with control_dependencies([assert_greater_equal(number, remaining, message=message)]):
            return self._far_apart(identity(whole), number, remaining)

    def _far_apart(self, points: Any, number: Any, count: Any) -> Any:
        """Points that are drawn one after the other, in proportion to their distances from those before."""
        tries = self._retries + 1 if self._retries >= 0 else cast(log(cast(count, float32)), int32) + 2
        first: Any = gather(points, random_uniform([1], 0, number, int32, self._seed))

        def more(i: Any, centers: Any, nearest: Any) -> Any:
            sums = cumsum(nearest)
            drawn: Any = apply_op("Mul", [random_uniform([tries], seed=self._seed), sums[-1]])
            candidates = gather(points, minimum(searchsorted(sums, drawn), number - 1))
            after = minimum(reshape(nearest, [-1, 1]), self._distances(points, candidates))
            best = argmin(reduce_sum(after, 0), 0)
            taken = gather(candidates, reshape(best, [1]))
            return i + 1, concat([centers, taken], 0), maximum(gather(after, best, axis=1), 0.0)

        start = [convert_to_tensor(1, int32), first, maximum(self._distances(points, first)[:, 0], 0.0)]
        shapes = [[], [None, points.shape.as_list()[1]], [None]]
        chosen: Any = while_loop(lambda i, *_: apply_op("Less", [i, count]), more, start, shape_invariants=shapes)
        return chosen[1]


def check_choices(owner: str, initial_clusters: Any, distance_metric: Any) -> None:
    """Raises InvalidArgumentError for a way to begin or a distance that is not known."""
    for what, given, known in (
        ("initial_clusters", initial_clusters, (RANDOM_INIT, KMEANS_PLUS_PLUS_INIT)),
        ("distance_metric", distance_metric, (SQUARED_EUCLIDEAN_DISTANCE, COSINE_DISTANCE)),
    ):
        if isinstance(given, str) and given not in known:
            raise InvalidArgumentError(f"{owner}: {what} is '{given}'; {' or '.join(known)} is required")


class _Step:
    """A step of training, and the variables that hold centers."""

    def __init__(self, centers: Any) -> None:
        self.centers = centers
        self.copies = [centers]

    def operation(self, points: list[Any], nearest: Sequence[Any], cosine: bool) -> Any:
        """Returns the operation of a step, with points and their nearest centers."""
        raise NotImplementedError


class _WholeStep(_Step):
    """Centers, `count` of them, become the means of their points."""

    def __init__(self, centers: Any, count: Any) -> None:
        super().__init__(centers)
        self._count = count

    def operation(self, points: list[Any], nearest: Sequence[Any], cosine: bool) -> Any:
        """Replaces all centers."""
        pairs = list(zip(points, nearest, strict=True))
        sums: Any = add_n([unsorted_segment_sum(x, ids, self._count) for x, ids in pairs])
        numbers: Any = add_n([unsorted_segment_sum(ones([shape(x)[0], 1]), ids, self._count) for x, ids in pairs])
        means = sums / (numbers + _SMALL)
        return assign(self.centers, l2_normalize(means, 1) if cosine else means)


class _PartStep(_Step):
    """Centers move towards their points, the less the more points they have had.

    With several steps to an iteration the points of all of them find their centers as they were before.
    """

    def __init__(self, centers: Any, steps: int, count: Any) -> None:
        super().__init__(centers)
        self._steps, self._moved = steps, centers
        if steps > 1:
            self._moved = KMeans._variable("clusters_updated")
            self.copies.append(self._moved)
            self._left = Variable(steps, dtype=int64, name="update_in_steps")
        start = zeros([count], int64) if steps > 1 else ones([count], int64)
        self._numbers = Variable(start, validate_shape=False)

    def operation(self, points: list[Any], nearest: Sequence[Any], cosine: bool) -> Any:
        """Moves the centers that have points."""
        with control_dependencies([self._iteration(cosine)]):
            return group(*[change for x, ids in zip(points, nearest, strict=True) for change in self._changes(x, ids)])

    def _changes(self, points: Any, nearest: Any) -> list[Any]:
        ids, positions = unique(nearest)
        number: Any = shape(ids)[0]
        new: Any = unsorted_segment_sum(ones_like(positions, int64), positions, number)
        known, had = gather(self._moved.value(), ids), gather(self._numbers.value(), ids)
        sums: Any = unsorted_segment_sum(points, positions, number)
        of_points: Any = reshape(cast(new, float32), [-1, 1])
        shifts = (sums - of_points * known) / reshape(cast(had + new, float32), [-1, 1])
        return [scatter_add(self._numbers, ids, new), scatter_add(self._moved, ids, shifts)]

    def _iteration(self, cosine: bool) -> Any:
        """Returns where an iteration is over, takes the centers that its steps moved."""
        if self._steps == 1:
            return no_op()

        def taken() -> Any:
            moved = self._moved.value()
            return group(
                assign(self.centers, l2_normalize(moved, 1) if cosine else moved),
                assign(self._numbers, zeros_like(self._numbers.value())),
                assign(self._left, self._steps - 1),
            )

        over = apply_op("LessEqual", [self._left.value(), convert_to_tensor(0, int64)])
        return cond(over, taken, lambda: group(assign_sub(self._left, 1)))
