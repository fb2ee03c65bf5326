"""Losses over a few classes drawn at random."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import timberframe as tf

pytestmark = pytest.mark.usefixtures("session")


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


def drawn_by_weights(**given: Any) -> Any:
    with tf.Graph().as_default(), tf.Session() as session:
        return session.run(tf.nn.fixed_unigram_candidate_sampler([[0, 2]], 2, 2000, False, 3, seed=1, **given))


def test_classes_are_drawn_as_often_as_weights_say() -> None:
    drawn, expected, _ = drawn_by_weights(unigrams=[1.0, 0.0, 3.0])
    np.testing.assert_allclose(np.bincount(drawn, minlength=3) / 2000, [0.25, 0, 0.75], atol=0.05)
    np.testing.assert_allclose(expected, [[500, 1500]])


def test_weights_come_from_the_last_column_of_a_file(tmp_path: Path) -> None:
    path = tmp_path / "words"
    path.write_text("a,x,4\nb,0\nc,12\n")
    drawn, expected, _ = drawn_by_weights(vocab_file=str(path))
    assert set(drawn) == {0, 2}
    np.testing.assert_allclose(expected, [[500, 1500]])
    path.write_text("a\n")
    with pytest.raises(tf.errors.InvalidArgumentError, match="line 'a' of vocab_file has no weight"):
        drawn_by_weights(vocab_file=str(path))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({}, "neither vocab_file nor unigrams is given"),
        ({"unigrams": [1.0] * 3, "vocab_file": "x"}, "both vocab_file and unigrams are given"),
        ({"unigrams": [1.0, 2.0]}, "there are 2 weights; range_max, 3, are required"),
        ({"unigrams": [1.0, -1.0, 2.0]}, "weights are from -1.0 to 2.0; none may be negative"),
    ],
)
def test_wrong_weights_are_refused(given: dict[str, Any], message: str) -> None:
    with pytest.raises(tf.errors.InvalidArgumentError, match=message):
        drawn_by_weights(**given)


def test_all_classes_are_expected_once() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        found = session.run(tf.nn.all_candidate_sampler([[0, 2]], 2, 3, True))
    assert [x.tolist() for x in found] == [[0, 1, 2], [[1, 1]], [1, 1, 1]]
