"""CTC: losses, training and decoders, and what is refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import timberframe as tf


def labels(*rows: list[int]) -> tf.SparseTensor:
    places = [(b, i) for b, row in enumerate(rows) for i in range(len(row))]
    values = np.array([x for row in rows for x in row], np.int32)
    return tf.SparseTensor(np.array(places, np.int64).reshape(-1, 2), values, [len(rows), max(map(len, rows))])


def test_loss_of_one_label_is_the_sum_over_its_alignments(session: tf.Session) -> None:
    p = np.array([[[0.6, 0.1, 0.3]], [[0.2, 0.3, 0.5]]])
    wanted = -np.log(0.6 * 0.2 + 0.6 * 0.5 + 0.3 * 0.2)  # twice the label, or a blank on either side
    assert session.run(tf.nn.ctc_loss(labels([0]), np.log(p), [2])) == pytest.approx([wanted])


def test_row_without_labels_is_all_blanks(session: tf.Session) -> None:
    p = np.array([[[0.6, 0.4]], [[0.2, 0.8]]])
    assert session.run(tf.nn.ctc_loss(labels([]), np.log(p), [2])) == pytest.approx([-np.log(0.4 * 0.8)])


def test_training_learns_the_labels(session: tf.Session) -> None:
    logits = tf.Variable(np.zeros((6, 1, 4), np.float32))
    loss = tf.reduce_mean(tf.nn.ctc_loss(labels([2, 0, 0]), logits, [6]))
    step = tf.train.AdamOptimizer(0.5).minimize(loss)
    (decoded,), _ = tf.nn.ctc_greedy_decoder(logits, [6])
    session.run(tf.global_variables_initializer())
    for _ in range(40):
        session.run(step)
    assert session.run(loss) < 0.1
    assert session.run(decoded).values.tolist() == [2, 0, 0]


def test_steps_after_a_sequence_do_not_count(session: tf.Session) -> None:
    x = tf.constant(np.random.default_rng(0).normal(size=(5, 1, 3)).astype(np.float32))
    loss = tf.nn.ctc_loss(labels([0]), x, [3])
    (grad,) = tf.gradients(loss, x)
    assert not session.run(grad)[3:].any()
    assert session.run(loss - tf.nn.ctc_loss(labels([0]), x[:3], [3])) == 0


def test_beams_add_up_alignments_that_single_steps_do_not_see(session: tf.Session) -> None:
    p = np.log(np.array([[[0.4, 0.0001, 0.6]], [[0.4, 0.0001, 0.6]]], np.float32))
    (greedy,), _ = tf.nn.ctc_greedy_decoder(p, [2])
    (best,), logs = tf.nn.ctc_beam_search_decoder(p, [2])
    assert session.run(greedy).values.size == 0
    assert session.run(best).values.tolist() == [0]
    assert session.run(logs)[0, 0] == pytest.approx(np.log(0.64), abs=1e-3)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda x: tf.nn.ctc_loss(labels([0, 1, 0]), x, [2]), "row 0 has 3 labels, and sequence_length is 2"),
        (lambda x: tf.nn.ctc_loss(labels([2]), x, [2]), r"must lie in \[0, 2\), the last class is the blank"),
        (lambda x: tf.nn.ctc_loss(labels([0]), x, [9]), r"sequence_length\[0\] is 9"),
        (lambda x: tf.nn.ctc_loss(labels([0]), x, [1, 2]), "one for each is required"),
        (lambda x: tf.nn.ctc_loss(labels([0]), x), "sequence_length are required"),
        (lambda x: tf.nn.ctc_loss(labels([0]), x, [1], logits=x), "older name"),
        (lambda x: tf.nn.ctc_beam_search_decoder(x, [2], beam_width=1, top_paths=2)[1], "it must not be larger"),
        (lambda x: tf.nn.ctc_greedy_decoder(x, [2], blank_index=7)[1], "blank_index is 7 for 3 classes"),
    ],
)
def test_wrong_arguments_are_refused(session: tf.Session, make: Callable[[Any], Any], said: str) -> None:
    with pytest.raises(tf.errors.InvalidArgumentError, match=said):
        session.run(make(tf.constant(np.zeros((4, 1, 3), np.float32))))


def test_dense_labels_are_refused(session: tf.Session) -> None:
    with pytest.raises(tf.errors.InvalidTypeError, match="SparseTensor"):
        tf.nn.ctc_loss(tf.constant([[0]]), tf.zeros([2, 1, 3]), [2])
