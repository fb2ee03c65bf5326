"""Samplers draw TensorFlow's classes, and the losses over them are equal."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import timberframe

RNG = np.random.default_rng(0)
WEIGHTS, BIASES = RNG.standard_normal((50, 4)).astype(np.float32), RNG.standard_normal(50).astype(np.float32)
INPUTS = RNG.standard_normal((6, 4)).astype(np.float32)
LABELS = RNG.integers(0, 50, (6, 2))


def both(build: Any, runs: int = 2) -> list[list[Any]]:
    tensorflow = pytest.importorskip("tensorflow").compat.v1
    found = []
    for tf in (tensorflow, timberframe):
        with tf.Graph().as_default() as graph, tf.Session(graph=graph) as session:
            tf.set_random_seed(5)
            made = build(tf)
            found.append([session.run(made) for _ in range(runs)])
    return found


@pytest.mark.parametrize("unique", [True, False])
@pytest.mark.parametrize("most", [50, 64, 100_000])
@pytest.mark.parametrize("name", ["log_uniform_candidate_sampler", "uniform_candidate_sampler"])
def test_samplers(name: str, most: int, unique: bool) -> None:
    theirs, ours = both(lambda tf: getattr(tf.nn, name)(tf.constant(LABELS), 2, 20, unique, most, seed=7))
    for a, b in zip(theirs, ours, strict=True):
        assert b[0].tolist() == a[0].tolist()
        for i in (1, 2):
            np.testing.assert_allclose(b[i], a[i], rtol=1e-5)


WORDS = RNG.uniform(0, 3, 50)


@pytest.mark.parametrize("unique", [True, False])
@pytest.mark.parametrize(
    "given",
    [
        {"unigrams": WORDS.tolist()}, {"unigrams": WORDS.tolist(), "distortion": 0.75},
        {"unigrams": [0.0, *[1.0] * 49]},
        {"unigrams": WORDS[:48].tolist(), "num_reserved_ids": 2},
        {"unigrams": np.repeat(WORDS, 3).tolist(), "num_shards": 3, "shard": 1},
    ],
)  # fmt: skip
def test_samplers_by_weights(given: dict[str, Any], unique: bool) -> None:
    theirs, ours = both(
        lambda tf: tf.nn.fixed_unigram_candidate_sampler(tf.constant(LABELS), 2, 20, unique, 50, seed=7, **given)
    )
    for a, b in zip(theirs, ours, strict=True):
        assert b[0].tolist() == a[0].tolist()
        for i in (1, 2):
            np.testing.assert_allclose(b[i], a[i], rtol=1e-5)


@pytest.mark.parametrize("unique", [True, False])
def test_sampler_of_all_classes(unique: bool) -> None:
    theirs, ours = both(lambda tf: tf.nn.all_candidate_sampler(tf.constant(LABELS), 2, 50, unique))
    for a, b in zip(theirs, ours, strict=True):
        assert [x.tolist() for x in b] == [x.tolist() for x in a]


@pytest.mark.parametrize("remove", [True, False])
@pytest.mark.parametrize("name", ["nce_loss", "sampled_softmax_loss"])
def test_losses(name: str, remove: bool) -> None:
    drawn = RNG.permutation(50)[:20]

    def build(tf: Any) -> Any:
        values = [tf.constant(x) for x in (drawn, np.full((6, 2), 0.3, np.float32), np.full(20, 0.2, np.float32))]
        given = [tf.constant(x) for x in (WEIGHTS, BIASES, LABELS, INPUTS)]
        return getattr(tf.nn, name)(*given, 20, 50, 2, sampled_values=values, remove_accidental_hits=remove)

    theirs, ours = both(build)
    np.testing.assert_allclose(ours, theirs, rtol=1e-5)


def test_losses_with_samplers_of_their_own() -> None:
    def build(tf: Any) -> Any:
        arguments = (tf.constant(WEIGHTS), tf.constant(BIASES), tf.constant(LABELS), tf.constant(INPUTS), 20, 50, 2)
        return tf.nn.sampled_softmax_loss(*arguments, seed=3)

    theirs, ours = both(build)
    np.testing.assert_allclose(ours, theirs, rtol=1e-4)
