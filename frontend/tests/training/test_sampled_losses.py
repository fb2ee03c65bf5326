"""Losses over a few classes drawn at random."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

import timberframe as tf


@pytest.fixture(autouse=True)
def session() -> Iterator[tf.Session]:
    with tf.Graph().as_default() as graph, tf.Session(graph=graph) as session:
        yield session


@pytest.mark.parametrize("sampler", [tf.nn.log_uniform_candidate_sampler, tf.nn.uniform_candidate_sampler])
def test_classes_are_drawn_once_with_unique(session: tf.Session, sampler: object) -> None:
    drawn, true, counts = session.run(sampler([[0, 5]], 2, 10, True, 10, seed=3))  # type: ignore[operator]  # one of the two
    assert sorted(drawn.tolist()) == list(range(10))
    assert true.shape == (1, 2)
    assert ((counts > 0) & (counts <= 1)).all()


def test_frequencies_are_log_uniform(session: tf.Session) -> None:
    drawn, _, counts = session.run(tf.nn.log_uniform_candidate_sampler([[0]], 1, 20_000, False, 9, seed=3))
    wanted = np.log((np.arange(9) + 2) / (np.arange(9) + 1)) / np.log(10)
    np.testing.assert_allclose(np.bincount(drawn, minlength=9) / 20_000, wanted, atol=0.01)
    np.testing.assert_allclose(counts, 20_000 * wanted[drawn], rtol=1e-5)


def test_equal_seeds_draw_equal_classes_and_runs_differ(session: tf.Session) -> None:
    first, second = (tf.nn.uniform_candidate_sampler([[0]], 1, 50, False, 1000, seed=4)[0] for _ in range(2))
    a, b = session.run([first, second])
    assert a.tolist() == b.tolist()
    assert session.run(first).tolist() != a.tolist()


def test_accidental_hits(session: tf.Session) -> None:
    rows, places, weights = session.run(tf.nn.compute_accidental_hits([[1, 2], [3, 4]], [4, 1, 9], 2))
    assert (rows.tolist(), places.tolist()) == ([0, 1], [1, 0])
    assert (weights < -1e38).all()


@pytest.mark.parametrize("loss", [tf.nn.nce_loss, tf.nn.sampled_softmax_loss])
def test_embeddings_learn(session: tf.Session, loss: object) -> None:
    tf.set_random_seed(1)
    labels = np.arange(20)[:, None]
    weights, biases = tf.Variable(tf.random_normal([20, 8])), tf.Variable(tf.zeros([20]))
    inputs = tf.Variable(tf.random_normal([20, 8]))
    cost = tf.reduce_mean(loss(weights, biases, labels, inputs, 5, 20))  # type: ignore[operator]  # one of the two
    train = tf.train.AdamOptimizer(0.1).minimize(cost)
    session.run(tf.global_variables_initializer())
    for _ in range(100):
        session.run(train)
    best = tf.argmax(tf.matmul(inputs, weights, transpose_b=True) + biases, 1)
    assert (session.run(best) == np.arange(20)).mean() > 0.8


def test_wrong_arguments() -> None:
    with pytest.raises(tf.errors.InvalidArgumentError, match="num_sampled is 11 with unique; it must be at most"):
        tf.nn.uniform_candidate_sampler([[0]], 1, 11, True, 10)
    with pytest.raises(
        tf.errors.InvalidArgumentError, match=r"true_classes has shape \(1, 1\); \[batch, num_true = 2\]"
    ):
        tf.nn.uniform_candidate_sampler([[0]], 2, 5, True, 10)
