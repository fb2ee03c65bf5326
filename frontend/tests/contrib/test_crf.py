"""tf.contrib.crf beside sums and searches over all sequences of tags."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import timberframe as tf

crf = tf.contrib.crf
BATCH, STEPS, TAGS = 4, 5, 3
LENGTHS = np.array([5, 3, 1, 0], np.int32)


@pytest.fixture
def scores() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Unary scores, transitions and tags."""
    random = np.random.default_rng(3)
    return (
        random.normal(size=(BATCH, STEPS, TAGS)).astype(np.float32),
        random.normal(size=(TAGS, TAGS)).astype(np.float32),
        random.integers(0, TAGS, (BATCH, STEPS)).astype(np.int32),
    )


def score(unary: np.ndarray, transitions: np.ndarray, tags: Any) -> float:
    """Returns the score of a sequence, by the definition."""
    steps = sum(float(unary[t, tag]) for t, tag in enumerate(tags))
    return steps + sum(float(transitions[a, b]) for a, b in itertools.pairwise(tags))


def sequences(length: int, allowed: Any = None) -> list[tuple[int, ...]]:
    return list(itertools.product(*([range(TAGS)] * length if allowed is None else allowed[:length])))


def total(unary: np.ndarray, transitions: np.ndarray, length: int, allowed: Any = None) -> float:
    """log of the sum of exp(score) over all sequences."""
    return float(np.logaddexp.reduce([score(unary, transitions, s) for s in sequences(length, allowed)]))


def test_scores_of_sequences_and_their_parts(scores: Any) -> None:
    unary, transitions, tags = scores
    with tf.Session() as sess:
        whole, steps, pairs = sess.run(
            [
                crf.crf_sequence_score(unary, tags, LENGTHS, transitions),
                crf.crf_unary_score(tags, LENGTHS, unary),
                crf.crf_binary_score(tags, LENGTHS, transitions),
            ]
        )
    wanted = [score(u, transitions, t[:n]) for u, t, n in zip(unary, tags, LENGTHS, strict=True)]
    np.testing.assert_allclose(whole, wanted, rtol=1e-5)
    np.testing.assert_allclose(steps + pairs, wanted, rtol=1e-5)


def test_log_norm_sums_over_all_sequences(scores: Any) -> None:
    unary, transitions, _ = scores
    with tf.Session() as sess:
        found = sess.run(crf.crf_log_norm(unary, LENGTHS, transitions))
    wanted = [total(u, transitions, n) if n else 0.0 for u, n in zip(unary, LENGTHS, strict=True)]
    np.testing.assert_allclose(found, wanted, rtol=1e-5)


def test_multitag_score_sums_over_the_tags_that_are_allowed(scores: Any) -> None:
    unary, transitions, _ = scores
    bitmap = np.zeros((BATCH, STEPS, TAGS), bool)
    bitmap[..., 0] = bitmap[::2, :, 2] = True
    allowed = [[np.flatnonzero(step) for step in row] for row in bitmap]
    with tf.Session() as sess:
        found = sess.run(crf.crf_multitag_sequence_score(unary, bitmap, LENGTHS, transitions))
    wanted = [total(u, transitions, n, a) if n else 0.0 for u, n, a in zip(unary, LENGTHS, allowed, strict=True)]
    np.testing.assert_allclose(found, wanted, rtol=1e-5)


def test_log_likelihood_makes_the_transitions_and_has_gradients(scores: Any) -> None:
    unary, transitions, tags = scores
    x = tf.placeholder(tf.float32, [None, None, TAGS])
    with tf.variable_scope("crf"):
        likelihood, variable = crf.crf_log_likelihood(x, tags, LENGTHS)
    assert variable.name == "crf/transitions:0"
    assert variable.shape.as_list() == [TAGS, TAGS]
    gradient = tf.gradients(-tf.reduce_sum(likelihood), variable)[0]
    with tf.Session() as sess:
        sess.run(variable.assign(transitions))
        found, slope = sess.run([likelihood, gradient], {x: unary})
        nearby = transitions.copy()
        nearby[1, 2] += 1e-2
        sess.run(variable.assign(nearby))
        moved = sess.run(likelihood, {x: unary})
    wanted = [
        score(u, transitions, t[:n]) - (total(u, transitions, n) if n else 0.0)
        for u, t, n in zip(unary, tags, LENGTHS, strict=True)
    ]
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-6)
    assert (found.sum() - moved.sum()) / 1e-2 == pytest.approx(slope[1, 2], abs=2e-2)


@pytest.mark.parametrize("unknown", [False, True])
def test_the_best_tags_in_the_graph_and_in_numpy(scores: Any, unknown: bool) -> None:
    unary, transitions, _ = scores
    x = tf.placeholder(tf.float32, [None, None, TAGS]) if unknown else tf.placeholder(tf.float32, unary.shape)
    with tf.Session() as sess:
        tags, best = sess.run(crf.crf_decode(x, transitions, LENGTHS), {x: unary})
    assert tags.dtype == np.int32
    for u, n, found, value in list(zip(unary, LENGTHS, tags, best, strict=True))[:3]:
        wanted = max(sequences(n), key=lambda s, u=u: score(u, transitions, s))
        assert tuple(found[:n]) == wanted
        assert not found[n:].any()
        assert value == pytest.approx(score(u, transitions, wanted), rel=1e-5)
        path, reached = crf.viterbi_decode(u[:n], transitions)
        assert tuple(path) == wanted
        assert reached == pytest.approx(value, rel=1e-5)


@pytest.mark.parametrize("unknown", [False, True])
def test_sequences_of_one_step(unknown: bool) -> None:
    unary = np.array([[[1.0, 3.0, 2.0]], [[4.0, 0.0, 1.0]]], np.float32)
    transitions = np.ones((3, 3), np.float32)
    x = tf.placeholder(tf.float32, [None, None if unknown else 1, 3])
    fetches = [
        crf.crf_decode(x, transitions, [1, 1])[0],
        crf.crf_log_norm(x, [1, 1], transitions),
        crf.crf_log_likelihood(x, [[1], [0]], [1, 1], transitions)[0],
    ]
    with tf.Session() as sess:
        tags, norm, likelihood = sess.run(fetches, {x: unary})
    assert tags.tolist() == [[1], [0]]
    np.testing.assert_allclose(norm, np.logaddexp.reduce(unary[:, 0], 1), rtol=1e-6)
    np.testing.assert_allclose(likelihood, [3 - norm[0], 4 - norm[1]], rtol=1e-5)


def test_scores_without_a_number_of_tags_say_what_is_required() -> None:
    x = tf.placeholder(tf.float32, [None, None, None])
    with pytest.raises(ValueError, match=r"crf_log_likelihood: inputs are \(\?, \?, \?\); \[batch, steps, tags\]"):
        crf.crf_log_likelihood(x, [[1]], [1])
