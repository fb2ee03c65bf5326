"""Beam search: what it keeps, its scores, and the way back through its steps."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import timberframe as tf

from ...conftest import run

seq2seq = tf.contrib.seq2seq

RANDOM = np.random.default_rng(0)
BATCH, CLASSES, UNITS, END = 2, 5, 4, 0
TABLE = RANDOM.standard_normal((CLASSES, UNITS)).astype(np.float32)
KERNEL = RANDOM.standard_normal((2 * UNITS, UNITS)).astype(np.float32)
PROJECTION = RANDOM.standard_normal((UNITS, CLASSES)).astype(np.float32)


def searched(beams: int, steps: int, **arguments: Any) -> Any:
    with tf.variable_scope("decoder", initializer=tf.constant_initializer(KERNEL)):
        cell = tf.nn.rnn_cell.BasicRNNCell(UNITS)
        cell(tf.zeros([1, UNITS]), tf.zeros([1, UNITS]))
    layer = tf.layers.Dense(CLASSES, use_bias=False, kernel_initializer=tf.constant_initializer(PROJECTION))
    state = cell.zero_state(BATCH * beams, tf.float32)
    start = list(range(1, BATCH + 1))
    decoder = seq2seq.BeamSearchDecoder(cell, tf.constant(TABLE), start, END, state, beams, layer, **arguments)
    return seq2seq.dynamic_decode(decoder, maximum_iterations=steps)


def best_sequences(start: int, beams: int, steps: int, weight: float = 0.0) -> list[tuple[list[int], float]]:
    """Returns a search by hand: the sequences that are kept, with their scores.

    As in TensorFlow the end of a sequence does not count in the step in which it comes, and counts in later ones.
    """

    def score(candidate: Any) -> float:
        ids, likelihood, _, counts_end = candidate
        length = len(ids) if counts_end else len([i for i in ids if i != END])
        return float(likelihood / ((5 + length) / 6) ** weight)

    kept: list[Any] = [([], 0.0, np.zeros(UNITS), False)]
    for _ in range(steps):
        found = []
        for ids, likelihood, state, _ in kept:
            if ids and ids[-1] == END:
                found.append((ids, likelihood, state, True))
                continue
            x = TABLE[ids[-1] if ids else start]
            after = np.tanh(np.concatenate([x, state]) @ KERNEL)
            logits = after @ PROJECTION
            logs = logits - np.log(np.exp(logits).sum())
            found += [([*ids, i], likelihood + logs[i], after, False) for i in range(CLASSES)]
        kept = sorted(found, key=lambda candidate: -score(candidate))[:beams]
        if all(ids[-1] == END for ids, *_ in kept):
            break
    return [(candidate[0], score(candidate)) for candidate in kept]


@pytest.mark.parametrize(("beams", "steps", "weight"), [(1, 6, 0.0), (3, 6, 0.0), (3, 6, 1.2), (5, 4, 0.6)])
def test_the_likeliest_sequences_are_kept(session: tf.Session, beams: int, steps: int, weight: float) -> None:
    outputs, _, _ = searched(beams, steps, length_penalty_weight=weight)
    ids, scores = run(session, [outputs.predicted_ids, outputs.beam_search_decoder_output.scores])
    for row in range(BATCH):
        wanted = best_sequences(row + 1, beams, steps, weight)
        found = [[int(i) for i in ids[row, :, beam]] for beam in range(beams)]
        longest = len(found[0])
        assert found == [w + [END] * (longest - len(w)) for w, _ in wanted]
        np.testing.assert_allclose(scores[row, -1], [s for _, s in wanted], rtol=1e-4)


def test_lengths_are_those_of_the_beams(session: tf.Session) -> None:
    outputs, state, lengths = searched(3, 6)
    ids, counted, kept = run(session, [outputs.predicted_ids, state.lengths, lengths])
    for row in range(BATCH):
        for beam in range(3):
            sequence = ids[row, :, beam].tolist()
            wanted = sequence.index(END) + 1 if END in sequence else len(sequence)
            assert counted[row, beam] == wanted
    assert kept.shape == counted.shape


def attending(history: bool) -> Any:
    tf.set_random_seed(2)
    memory = RANDOM.standard_normal((BATCH, 3, 6)).astype(np.float32)
    mechanism = seq2seq.LuongAttention(UNITS, seq2seq.tile_batch(memory, 2), seq2seq.tile_batch(tf.constant([3, 2]), 2))
    cell = tf.nn.rnn_cell.BasicRNNCell(UNITS)
    return seq2seq.AttentionWrapper(cell, mechanism, UNITS, alignment_history=history)


@pytest.mark.parametrize("weight", [0.0, 0.5])
def test_search_with_attention(session: tf.Session, weight: float) -> None:
    cell = attending(history=False)
    layer = tf.layers.Dense(CLASSES, use_bias=False)
    decoder = seq2seq.BeamSearchDecoder(
        cell, TABLE, [1, 2], END, cell.zero_state(BATCH * 2, tf.float32), 2, layer, coverage_penalty_weight=weight
    )
    outputs, state, _ = seq2seq.dynamic_decode(decoder, maximum_iterations=5)
    got, watched = run(session, [outputs.predicted_ids, state.accumulated_attention_probs])
    assert got.shape[2] == 2
    if weight:
        assert watched.shape == (BATCH, 2, 3)
        assert not watched[1, :, 2].any()


def test_a_history_of_weights_follows_the_beams(session: tf.Session) -> None:
    cell = attending(history=True)
    layer = tf.layers.Dense(CLASSES, use_bias=False)
    decoder = seq2seq.BeamSearchDecoder(cell, TABLE, [1, 2], END, cell.zero_state(BATCH * 2, tf.float32), 2, layer)
    outputs, state, _ = seq2seq.dynamic_decode(decoder, maximum_iterations=5)
    history, parents, ids = run(
        session, [state.cell_state.alignment_history, outputs.beam_search_decoder_output.parent_ids,
                  outputs.predicted_ids]
    )  # fmt: skip
    assert history.shape == (ids.shape[1], BATCH * 2, 3)
    np.testing.assert_allclose(history.sum(-1), 1, rtol=1e-5)
    assert parents.shape == (BATCH, ids.shape[1], 2)


def test_coverage_needs_attention(session: tf.Session) -> None:
    with pytest.raises(tf.errors.InvalidArgumentError, match="the cell must be an AttentionWrapper"):
        searched(2, 3, coverage_penalty_weight=0.5)


def test_tiled_rows_stay_together(session: tf.Session) -> None:
    t = {"a": tf.constant([[1, 2], [3, 4]]), "b": tf.constant([5.0, 6.0])}
    got = session.run(seq2seq.tile_batch(t, 2))
    assert got["a"].tolist() == [[1, 2], [1, 2], [3, 4], [3, 4]]
    assert got["b"].tolist() == [5, 5, 6, 6]


def test_tiling_keeps_what_is_known_of_the_shape() -> None:
    assert seq2seq.tile_batch(tf.placeholder(tf.float32, [None, 3]), 4).shape.as_list() == [None, 3]
    assert seq2seq.tile_batch(tf.zeros([2, 3]), 4).shape.as_list() == [8, 3]


def test_the_way_back_starts_at_the_last_step(session: tf.Session) -> None:
    ids = np.array([[1, 2, 3], [4, 5, 6], [7, 8, 9], [-1, -1, -1]])[:, None]
    parents = np.array([[0, 0, 0], [0, 1, 1], [2, 1, 2], [-1, -1, -1]])[:, None]
    got = session.run(seq2seq.gather_tree(ids, parents, [3], 10))
    assert got[:, 0].tolist() == [[2, 2, 2], [6, 5, 6], [7, 8, 9], [10, 10, 10]]


def test_nothing_follows_the_end(session: tf.Session) -> None:
    ids, parents = np.array([[4, 7], [9, 5], [6, 8]])[:, None], np.array([[0, 0], [0, 1], [0, 1]])[:, None]
    got = session.run(seq2seq.gather_tree(ids, parents, [3], 9))
    assert got[:, 0].tolist() == [[4, 7], [9, 5], [9, 8]]


def test_values_of_beams_follow_their_way(session: tf.Session) -> None:
    values = np.arange(3 * 1 * 3 * 2).reshape(3, 1, 3, 2)
    parents = np.array([[0, 0, 0], [0, 1, 1], [2, 1, 2]])[:, None]
    got = session.run(seq2seq.gather_tree_from_array(tf.constant(values), parents, [[3, 3, 3]]))
    ways = [[1, 1, 1], [2, 1, 2], [0, 1, 2]]
    assert got.tolist() == [[[values[t, 0, beam].tolist() for beam in ways[t]]] for t in range(3)]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: seq2seq.tile_batch(tf.constant(3), 2), r"has shape \(\); rank 1 or more"),
        (lambda: seq2seq.gather_tree([[1]], [[1]], [1], 0), "step_ids has shape"),
        (
            lambda: seq2seq.BeamSearchDecoder(tf.nn.rnn_cell.GRUCell(4), TABLE, [1, 2], 0, tf.zeros([2, 4]), 3),
            r"has 2 rows for 2 start tokens and 3 beams; tile the state by tf\.contrib\.seq2seq\.tile_batch",
        ),
    ],
)
def test_wrong_arguments(call: Any, message: str) -> None:
    with pytest.raises(tf.errors.OpError, match=message):
        call()
