"""CTC losses, their gradients, and decoders are TensorFlow's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import timberframe as ours

RNG = np.random.default_rng(3)
LOGITS = RNG.normal(size=(8, 4, 5)).astype(np.float32) * 2
LABELS = [[0, 1, 1, 2], [3], [0], [2, 2, 2]]
LENGTHS = [8, 5, 6, 7]


def sparse(tf: Any, rows: list[list[int]]) -> Any:
    places = [(b, i) for b, row in enumerate(rows) for i in range(len(row))]
    return tf.SparseTensor(
        places, np.array([x for row in rows for x in row], np.int32), [len(rows), max(map(len, rows))]
    )


@pytest.mark.parametrize(
    "settings",
    [
        {}, {"preprocess_collapse_repeated": True}, {"ctc_merge_repeated": False},
        {"preprocess_collapse_repeated": True, "ctc_merge_repeated": False}, {"time_major": False},
    ],
)  # fmt: skip
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_loss_and_gradient_are_the_same(tensorflow: Any, settings: dict[str, Any], dtype: Any) -> None:
    logits = LOGITS.astype(dtype)
    given = logits if settings.get("time_major", True) else logits.transpose(1, 0, 2)
    found = []
    for tf in (ours, tensorflow):
        with tf.Graph().as_default(), tf.Session() as session:
            x = tf.constant(given)
            loss = tf.nn.ctc_loss(sparse(tf, LABELS), x, LENGTHS, **settings)
            grad = tf.gradients(tf.reduce_sum(loss * tf.constant([1.0, 2.0, 3.0, 4.0], x.dtype)), x)[0]
            found.append(session.run([loss, grad]))
    for got, want in zip(*found, strict=True):
        assert got.dtype == want.dtype
        np.testing.assert_allclose(got, want, rtol=2e-5, atol=2e-5)


def test_rows_that_do_not_fit_are_left_out(tensorflow: Any) -> None:
    found = []
    for tf in (ours, tensorflow):
        with tf.Graph().as_default(), tf.Session() as session:
            x = tf.constant(LOGITS)
            loss = tf.nn.ctc_loss(sparse(tf, LABELS), x, [3, 5, 6, 4], ignore_longer_outputs_than_inputs=True)
            found.append(session.run([loss, *tf.gradients(loss, x)]))
    for got, want in zip(*found, strict=True):
        np.testing.assert_allclose(got, want, rtol=2e-5, atol=2e-5)


def decoded(tf: Any, name: str, **settings: Any) -> Any:
    with tf.Graph().as_default(), tf.Session() as session:
        found, logs = session.run(getattr(tf.nn, name)(tf.constant(LOGITS), LENGTHS, **settings))
    return [[np.asarray(p).tolist() for p in one] for one in found], logs


@pytest.mark.parametrize("merge", [True, False])
def test_greedy_decoder_finds_the_same(tensorflow: Any, merge: bool) -> None:
    (got, sums), (want, wanted) = (decoded(tf, "ctc_greedy_decoder", merge_repeated=merge) for tf in (ours, tensorflow))
    assert got == want
    np.testing.assert_allclose(sums, wanted, rtol=1e-6)


@pytest.mark.parametrize(
    "settings", [{}, {"beam_width": 3}, {"beam_width": 10, "top_paths": 4, "merge_repeated": False}]
)
def test_beam_search_finds_the_same(tensorflow: Any, settings: dict[str, Any]) -> None:
    (got, logs), (want, wanted) = (decoded(tf, "ctc_beam_search_decoder", **settings) for tf in (ours, tensorflow))
    assert got == want
    np.testing.assert_allclose(logs, wanted, rtol=1e-5)
