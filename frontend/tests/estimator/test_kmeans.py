"""k-means: the graph and the estimator."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import timberframe as tf

RANDOM = np.random.default_rng(0)
MIDDLES = np.array([[0, 0], [5, 5], [0, 5]], np.float32)
POINTS = np.concatenate([RANDOM.normal(m, 0.3, (40, 2)) for m in MIDDLES]).astype(np.float32)
START = POINTS[[0, 50, 100]]
KMeans, Estimator = tf.contrib.factorization.KMeans, tf.contrib.factorization.KMeansClustering


def started(x: Any, **arguments: Any) -> Any:
    """Returns the parts of a graph with centers, and its session."""
    parts = KMeans(x, 3, **arguments).training_graph()
    session = tf.Session()
    session.run(tf.global_variables_initializer())
    for _ in range(10):
        if session.run(parts[3]):
            break
        session.run(parts[5])
    assert session.run(parts[3])
    return parts, session


def lloyd(centers: np.ndarray) -> np.ndarray:
    nearest = ((POINTS[:, None] - centers) ** 2).sum(-1).argmin(1)
    return np.stack([POINTS[nearest == i].mean(0) for i in range(3)])


def test_a_step_takes_the_means_of_all_points() -> None:
    with tf.Graph().as_default():
        (_, _, _, _, centers, _, train), session = started(tf.constant(POINTS), initial_clusters=START)
        wanted = START
        for _ in range(3):
            session.run(train)
            wanted = lloyd(wanted)
            np.testing.assert_allclose(session.run(centers), wanted, rtol=1e-4)


def test_distances_and_nearest_centers() -> None:
    with tf.Graph().as_default():
        (all_scores, nearest, scores, *_), session = started(tf.constant(POINTS), initial_clusters=START)
        squares = ((POINTS[:, None] - START) ** 2).sum(-1)
        got, index, least = session.run([all_scores[0], nearest[0], scores[0]])
        np.testing.assert_allclose(got, squares, rtol=1e-3, atol=1e-4)
        assert index.tolist() == squares.argmin(1).tolist()
        np.testing.assert_allclose(least, squares.min(1), rtol=1e-3, atol=1e-4)


def test_points_far_apart_are_one_of_each_cluster() -> None:
    with tf.Graph().as_default():
        tf.set_random_seed(1)
        (*_, centers, _, _), session = started(tf.constant(POINTS), initial_clusters="kmeans_plus_plus", random_seed=3)
        found = session.run(centers)
    assert sorted(((found[:, None] - MIDDLES) ** 2).sum(-1).argmin(1).tolist()) == [0, 1, 2]


def test_random_centers_are_points() -> None:
    with tf.Graph().as_default():
        (*_, centers, _, _), session = started(tf.constant(POINTS))
        for center in session.run(centers):
            assert (center == POINTS).all(1).any()


def test_a_function_chooses_centers_in_several_runs() -> None:
    with tf.Graph().as_default():
        (*_, centers, _, _), session = started(
            tf.constant(POINTS), initial_clusters=lambda inputs, count: inputs[0][: tf.minimum(count, 2)]
        )
        assert session.run(centers).tolist() == POINTS[[0, 1, 0]].tolist()


def test_too_many_centers_are_an_error() -> None:
    with tf.Graph().as_default(), pytest.raises(tf.errors.InvalidArgumentError, match="more centers than remained"):
        started(tf.constant(POINTS), initial_clusters=lambda inputs, count: inputs[0][:4])


def test_parts_of_the_points_move_centers_by_how_many_they_had() -> None:
    with tf.Graph().as_default():
        x = tf.constant(POINTS[:3])
        (*_, centers, _, train), session = started(x, initial_clusters=START, use_mini_batch=True)
        session.run(train)
        np.testing.assert_allclose(session.run(centers)[0], (START[0] + POINTS[:3].sum(0)) / 4, rtol=1e-5)


def test_centers_change_after_the_steps_of_an_iteration() -> None:
    with tf.Graph().as_default():
        (*_, centers, _, train), session = started(
            tf.constant(POINTS), initial_clusters=START, use_mini_batch=True, mini_batch_steps_per_iteration=2
        )
        for _ in range(2):
            session.run(train)
            np.testing.assert_array_equal(session.run(centers), START)
        session.run(train)
        np.testing.assert_allclose(session.run(centers), lloyd(START), rtol=1e-4)


def test_cosines_do_not_depend_on_lengths() -> None:
    rays = np.array([[1, 0], [9, 0.1], [0, 2], [0.1, 7]], np.float32)
    with tf.Graph().as_default():
        made = KMeans(tf.constant(rays), 2, rays[[0, 2]], "cosine").training_graph()
        with tf.Session() as session:
            session.run(tf.global_variables_initializer())
            session.run(made[5])
            session.run(made[6])
            assert session.run(made[1][0]).tolist() == [0, 0, 1, 1]
            np.testing.assert_allclose((session.run(made[4]) ** 2).sum(1), [1, 1], rtol=1e-5)


def all_points() -> Any:
    return tf.train.limit_epochs(tf.constant(POINTS), num_epochs=1)


def test_the_estimator_finds_clusters(tmp_path: Path) -> None:
    made = Estimator(3, str(tmp_path), initial_clusters="kmeans_plus_plus", use_mini_batch=False, random_seed=2)
    before = np.inf
    for _ in range(4):
        made.train(all_points)
        assert made.score(all_points) <= before + 1e-3
        before = made.score(all_points)
    centers = made.cluster_centers()
    np.testing.assert_allclose(centers[np.lexsort(centers.T)], MIDDLES[np.lexsort(MIDDLES.T)], atol=0.3)
    index = list(made.predict_cluster_index(all_points))
    distances = np.stack(list(made.transform(all_points)))
    assert distances.argmin(1).tolist() == index
    np.testing.assert_allclose(distances, np.sqrt(((POINTS[:, None] - centers) ** 2).sum(-1)), rtol=1e-2, atol=1e-2)


def test_features_are_put_side_by_side(tmp_path: Path) -> None:
    def points() -> Any:
        return {"b": tf.constant(POINTS[:, 1:]), "a": tf.constant(POINTS[:, :1])}

    made = Estimator(3, str(tmp_path), initial_clusters=START, use_mini_batch=False)
    made.train(points, steps=1)
    np.testing.assert_allclose(made.cluster_centers(), lloyd(START), rtol=1e-4)


def test_training_ends_when_the_loss_stays(tmp_path: Path) -> None:
    made = Estimator(3, str(tmp_path), initial_clusters=START, use_mini_batch=False, relative_tolerance=1e-4)
    made.train(lambda: tf.constant(POINTS), steps=200)
    assert made.get_variable_value("global_step") < 20


def few_points() -> Any:
    return tf.train.limit_epochs(tf.constant(POINTS[:2]), num_epochs=1)


@pytest.mark.parametrize("use_mini_batch", [True, False])
def test_fewer_random_points_than_clusters_are_an_error(tmp_path: Path, use_mini_batch: bool) -> None:
    with pytest.raises(tf.errors.InvalidArgumentError, match="ended after 2 points were chosen for 3 clusters"):
        Estimator(3, str(tmp_path), use_mini_batch=use_mini_batch).train(few_points)


def test_fewer_points_than_clusters_that_are_to_be_far_apart_are_an_error(tmp_path: Path) -> None:
    made = Estimator(3, str(tmp_path), initial_clusters="kmeans_plus_plus")
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"has x points for y clusters;.*\[2\] \[3\]"):
        made.train(few_points)


def test_a_seed_chooses_the_same_centers_by_both_names(tmp_path: Path) -> None:
    makers = [lambda folder: Estimator(3, folder, random_seed=3)]
    makers.append(lambda folder: tf.estimator.experimental.KMeans(3, folder, seed=3))
    found = []
    for i, make in enumerate(makers):
        made = make(str(tmp_path / str(i)))
        made.train(lambda: tf.constant(POINTS), steps=1)
        found.append(made.cluster_centers())
    np.testing.assert_array_equal(found[0], found[1])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: KMeans(POINTS, 3, "kmc"), "initial_clusters is 'kmc'; random or kmeans_plus_plus is required"),
        (lambda: Estimator(3, distance_metric="l1"), "KMeansClustering: distance_metric is 'l1'; squared_euclidean or"),
    ],
)
def test_wrong_arguments(call: Callable[[], Any], message: str) -> None:
    with pytest.raises(tf.errors.InvalidArgumentError, match=message):
        call()
