"""tf.contrib.legacy_seq2seq: decoders and networks of lists of steps."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import timberframe as tf

from ..conftest import run
from .cell_examples import assert_close

legacy = tf.contrib.legacy_seq2seq

RANDOM = np.random.default_rng(0)
SYMBOLS = [RANDOM.integers(0, 5, 3) for _ in range(4)]
READ, WRITTEN = SYMBOLS[:2], SYMBOLS[2:]
STEPS = [RANDOM.standard_normal((3, 4)).astype(np.float32) for _ in range(3)]
SEEN = RANDOM.standard_normal((3, 6, 2)).astype(np.float32)
STATE = RANDOM.standard_normal((3, 4)).astype(np.float32)


def cell() -> Any:
    return tf.nn.rnn_cell.BasicRNNCell(4)


def values(session: tf.Session, scope: str) -> dict[str, np.ndarray]:
    """Returns the values of a scope's variables, by their names in it."""
    return {v.op.name.removeprefix(scope): session.run(v) for v in tf.global_variables()}


def names() -> list[str]:
    return [v.op.name for v in tf.global_variables()]


def step(v: dict[str, np.ndarray], scope: str, inputs: np.ndarray, state: np.ndarray) -> np.ndarray:
    return np.tanh(np.concatenate([inputs, state], 1) @ v[f"{scope}kernel"] + v[f"{scope}bias"])


def test_the_decoder_goes_on_with_the_encoders_last_state(session: tf.Session) -> None:
    outputs, state = run(session, legacy.basic_rnn_seq2seq(STEPS[:1], STEPS[1:], cell()))
    v = values(session, "basic_rnn_seq2seq/")
    assert [*v] == [f"{s}/basic_rnn_cell/{n}" for s in ("rnn", "rnn_decoder") for n in ("kernel", "bias")]
    wanted = step(v, "rnn/basic_rnn_cell/", STEPS[0], np.zeros((3, 4)))
    for got, inputs in zip(outputs, STEPS[1:], strict=True):
        wanted = step(v, "rnn_decoder/basic_rnn_cell/", inputs, wanted)
        assert_close(got, wanted)
    assert_close(state, wanted)


def test_a_tied_network_reads_and_writes_with_the_same_variables(session: tf.Session) -> None:
    outputs, _ = run(session, legacy.tied_rnn_seq2seq(STEPS[:1], STEPS[1:], cell()))
    v = values(session, "combined_tied_rnn_seq2seq/tied_rnn_seq2seq/basic_rnn_cell/")
    assert [*v] == ["kernel", "bias"]
    state = np.zeros((3, 4))
    for inputs in STEPS:
        state = step(v, "", inputs, state)
    assert_close(outputs[-1], state)


def test_a_loop_function_makes_the_next_input(session: tf.Session) -> None:
    outputs, _ = run(session, legacy.tied_rnn_seq2seq(STEPS[:1], STEPS[1:], cell(), lambda output, _: 2.0 * output))
    v = values(session, "combined_tied_rnn_seq2seq/tied_rnn_seq2seq/basic_rnn_cell/")
    assert_close(outputs[1], step(v, "", 2 * outputs[0], outputs[0]))


def test_embedded_symbols(session: tf.Session) -> None:
    outputs, state = run(session, legacy.embedding_rnn_seq2seq(READ, WRITTEN, cell(), 5, 6, 3))
    v = values(session, "embedding_rnn_seq2seq/")
    decoder = "embedding_rnn_decoder/rnn_decoder/output_projection_wrapper/"
    assert [*v] == [
        "rnn/embedding_wrapper/embedding", "rnn/embedding_wrapper/basic_rnn_cell/kernel",
        "rnn/embedding_wrapper/basic_rnn_cell/bias", "embedding_rnn_decoder/embedding",
        f"{decoder}basic_rnn_cell/kernel", f"{decoder}basic_rnn_cell/bias", f"{decoder}kernel", f"{decoder}bias",
    ]  # fmt: skip
    h = np.zeros((3, 4))
    for symbols in READ:
        h = step(v, "rnn/embedding_wrapper/basic_rnn_cell/", v["rnn/embedding_wrapper/embedding"][symbols], h)
    for got, symbols in zip(outputs, WRITTEN, strict=True):
        h = step(v, f"{decoder}basic_rnn_cell/", v["embedding_rnn_decoder/embedding"][symbols], h)
        assert_close(got, h @ v[f"{decoder}kernel"] + v[f"{decoder}bias"])
    assert_close(state, h)


def test_the_best_symbol_is_fed(session: tf.Session) -> None:
    outputs, _ = run(session, legacy.embedding_rnn_seq2seq(READ, WRITTEN, cell(), 5, 5, 3, feed_previous=True))
    best = outputs[0].argmax(1)
    with tf.variable_scope("embedding_rnn_seq2seq", reuse=True) as scope:
        again, _ = legacy.embedding_rnn_seq2seq(READ, [WRITTEN[0], best], cell(), 5, 5, 3, scope=scope)
    assert_close(session.run(again[1]), outputs[1])


def test_outputs_are_projected_before_the_best_symbol_is_taken(session: tf.Session) -> None:
    projection = tf.get_variable("w", [4, 5]), tf.get_variable("b", [5])
    made = legacy.embedding_rnn_seq2seq(
        READ, WRITTEN, cell(), 5, 5, 3, output_projection=projection, feed_previous=True
    )
    first, second, w, b = run(session, [*made[0], *projection])
    best = (first @ w + b).argmax(1)
    with tf.variable_scope("embedding_rnn_seq2seq", reuse=True) as scope:
        again, _ = legacy.embedding_rnn_seq2seq(
            READ, [WRITTEN[0], best], cell(), 5, 5, 3, output_projection=projection, scope=scope
        )
    assert first.shape == (3, 4)
    assert_close(session.run(again[1]), second)


@pytest.mark.parametrize(
    "network",
    [legacy.embedding_rnn_seq2seq, legacy.embedding_attention_seq2seq, legacy.embedding_tied_rnn_seq2seq],
)
def test_a_tensor_decides_in_each_run_what_is_fed(session: tf.Session, network: Any) -> None:
    sizes = (5, 3) if network is legacy.embedding_tied_rnn_seq2seq else (5, 5, 3)
    feeds = tf.placeholder(tf.bool, [])
    inner = tf.nn.rnn_cell.BasicLSTMCell(4)
    with tf.variable_scope("net") as scope:
        outputs, state = network(READ, WRITTEN, inner, *sizes, feed_previous=feeds)
    assert isinstance(state, tf.nn.rnn_cell.LSTMStateTuple)
    count = len(tf.global_variables())
    session.run(tf.global_variables_initializer())
    fed, best = (session.run(outputs, {feeds: flag}) for flag in (False, True))
    assert_close(fed[0], best[0])
    with tf.variable_scope(scope, reuse=True):
        again, _ = network(READ, [WRITTEN[0], best[0].argmax(1)], tf.nn.rnn_cell.BasicLSTMCell(4), *sizes)
        given, _ = network(READ, WRITTEN, tf.nn.rnn_cell.BasicLSTMCell(4), *sizes)
    one, two = session.run([again[1], given[1]])
    assert_close(best[1], one)
    assert_close(fed[1], two)
    assert len(tf.global_variables()) == count


def test_a_tied_network_has_one_embedding(session: tf.Session) -> None:
    outputs, _ = run(session, legacy.embedding_tied_rnn_seq2seq(READ, WRITTEN, cell(), 5, 3, num_decoder_symbols=2))
    assert outputs[0].shape == (3, 2)
    inner = "embedding_tied_rnn_seq2seq/combined_tied_rnn_seq2seq/tied_rnn_seq2seq/output_projection_wrapper/"
    assert names() == ["embedding_tied_rnn_seq2seq/embedding", f"{inner}basic_rnn_cell/kernel",
                       f"{inner}basic_rnn_cell/bias", f"{inner}kernel", f"{inner}bias"]  # fmt: skip


@pytest.mark.parametrize("from_state", [False, True])
def test_attention_to_given_states(session: tf.Session, from_state: bool) -> None:
    made = legacy.attention_decoder(
        STEPS[:2], STATE, SEEN, cell(), output_size=3, num_heads=2, initial_state_attention=from_state
    )
    outputs, last = run(session, made)
    v = values(session, "attention_decoder/")
    assert {n for n in v if "Attn" in n or "Attention" in n} == {
        *(f"{n}_{head}" for n in ("AttnW", "AttnV") for head in range(2)),
        *(f"Attention_{head}/{n}" for n in ("kernel", "bias") for head in range(2)),
        "AttnOutputProjection/kernel", "AttnOutputProjection/bias",
    }  # fmt: skip

    def found(h: np.ndarray) -> list[np.ndarray]:
        parts = []
        for head in range(2):
            query = h @ v[f"Attention_{head}/kernel"] + v[f"Attention_{head}/bias"]
            scores = (np.tanh(SEEN @ v[f"AttnW_{head}"][0, 0] + query[:, None]) * v[f"AttnV_{head}"]).sum(-1)
            weights = np.exp(scores) / np.exp(scores).sum(1, keepdims=True)
            parts.append((weights[..., None] * SEEN).sum(1))
        return parts

    h, seen = STATE, found(STATE) if from_state else [np.zeros((3, 2))] * 2
    for got, inputs in zip(outputs, STEPS, strict=False):
        h = step(v, "basic_rnn_cell/", np.concatenate([inputs, *seen], 1) @ v["kernel"] + v["bias"], h)
        seen = found(h)
        assert_close(
            got, np.concatenate([h, *seen], 1) @ v["AttnOutputProjection/kernel"] + v["AttnOutputProjection/bias"]
        )
    assert_close(last, h)


def test_an_attention_network_has_the_variables_of_tensorflow(session: tf.Session) -> None:
    outputs, _ = run(session, legacy.embedding_attention_seq2seq(READ, WRITTEN, cell(), 5, 6, 3))
    assert outputs[0].shape == (3, 6)
    decoder = "embedding_attention_seq2seq/embedding_attention_decoder/"
    inner = f"{decoder}attention_decoder/"
    assert set(names()[3:]) == {
        f"{decoder}embedding", f"{inner}AttnW_0", f"{inner}AttnV_0", f"{inner}kernel", f"{inner}bias",
        f"{inner}output_projection_wrapper/basic_rnn_cell/kernel",
        f"{inner}output_projection_wrapper/basic_rnn_cell/bias", f"{inner}output_projection_wrapper/kernel",
        f"{inner}output_projection_wrapper/bias", f"{inner}Attention_0/kernel", f"{inner}Attention_0/bias",
        f"{inner}AttnOutputProjection/kernel", f"{inner}AttnOutputProjection/bias",
    }  # fmt: skip


def test_one_encoder_for_several_decoders(session: tf.Session) -> None:
    outputs, states = legacy.one2many_rnn_seq2seq(
        READ, {"a": WRITTEN, "b": WRITTEN[:1]}, cell(), {"a": cell(), "b": cell()}, 5, {"a": 6, "b": 7}, 3
    )
    got = run(session, outputs)
    assert [x.shape for x in got["a"]] == [(3, 6)] * 2
    assert [x.shape for x in got["b"]] == [(3, 7)]
    assert set(states) == {"a", "b"}
    assert "one2many_rnn_seq2seq/one2many_decoder_b/embedding_rnn_decoder/embedding" in names()


def test_buckets_share_their_variables(session: tf.Session) -> None:
    def network(read: Any, written: Any) -> Any:
        return legacy.embedding_rnn_seq2seq(read, written, tf.nn.rnn_cell.GRUCell(4), 5, 5, 3)

    ones = [np.ones(3, np.float32)] * 2
    outputs, losses = legacy.model_with_buckets(READ, WRITTEN, WRITTEN, ones, [(1, 1), (2, 2)], network)
    got, (one, two) = run(session, [outputs, losses])
    assert [len(x) for x in got] == [1, 2]
    scores = np.stack(got[1], 1)
    right = np.take_along_axis(scores, np.stack(WRITTEN, 1)[..., None], 2)[..., 0]
    assert_close(two, (np.log(np.exp(scores).sum(-1)) - right).mean())
    assert one != two
    assert sum("embedding_rnn_decoder/embedding" in n for n in names()) == 1


def test_a_model_learns_to_copy(session: tf.Session) -> None:
    ones = [np.ones(3, np.float32)] * 2
    _, losses = legacy.model_with_buckets(
        READ, [np.zeros(3, np.int64), READ[0]], READ, ones, [(2, 2)],
        lambda x, y: legacy.embedding_attention_seq2seq(x, y, tf.nn.rnn_cell.GRUCell(8), 5, 5, 4),
    )  # fmt: skip
    train = tf.train.AdamOptimizer(0.05).minimize(losses[0])
    session.run(tf.global_variables_initializer())
    before = session.run(losses[0])
    for _ in range(60):
        session.run(train)
    assert session.run(losses[0]) < 0.1 * before


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: legacy.attention_decoder([], STATE, SEEN, cell()), "0 inputs, 1 heads and attention states of shape"),
        (
            lambda: legacy.embedding_rnn_decoder(WRITTEN, STATE, cell(), 5, 3, (np.ones((4, 6)), np.ones(6))),
            r"output_projection has shapes \(4, 6\) and \(6,\); \(\?, 5\) and \(5,\) are required",
        ),
        (
            lambda: legacy.model_with_buckets(READ, WRITTEN, WRITTEN, WRITTEN, [(3, 2)], print),
            "encoder_inputs has 2 steps and the last bucket 3",
        ),
        (
            lambda: legacy.one2many_rnn_seq2seq(READ, {"a": WRITTEN}, cell(), {"b": cell()}, 5, {}, 3),
            r"cells for \['b'\] and inputs for \['a'\]; the same names are required",
        ),
    ],
)
def test_wrong_arguments(call: Any, message: str) -> None:
    with pytest.raises(tf.errors.OpError, match=message):
        call()
