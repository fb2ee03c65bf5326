"""Decoders without attention: their helpers, the loss of their outputs, and when they stop."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import timberframe as tf

from ...conftest import run

seq2seq = tf.contrib.seq2seq

RANDOM = np.random.default_rng(0)
BATCH, TIME, UNITS, CLASSES = 3, 5, 4, 6
INPUTS = RANDOM.standard_normal((BATCH, TIME, 2)).astype(np.float32)
TABLE = RANDOM.standard_normal((CLASSES, UNITS)).astype(np.float32)
LENGTHS = [5, 2, 3]
KERNEL = RANDOM.standard_normal((2 * UNITS, UNITS)).astype(np.float32)
PROJECTION = RANDOM.standard_normal((UNITS, CLASSES)).astype(np.float32)
END = 0


def greedy_steps(steps: int) -> list[np.ndarray]:
    """Returns the classes that a simple cell with KERNEL chooses, fed with the embeddings of its own choices."""
    state, ids, found = np.zeros((BATCH, UNITS)), np.arange(1, BATCH + 1), []
    for _ in range(steps):
        state = np.tanh(np.concatenate([TABLE[ids], state], 1) @ KERNEL)
        ids = (state @ PROJECTION).argmax(1)
        found.append(ids)
    return found


def cell_with_weights() -> tuple[Any, Any]:
    """Returns a simple cell and an output layer with the weights above."""
    with tf.variable_scope("", initializer=tf.constant_initializer(KERNEL)):
        cell = tf.nn.rnn_cell.BasicRNNCell(UNITS)
        with tf.variable_scope("decoder"):
            cell(tf.zeros([1, UNITS]), tf.zeros([1, UNITS]))
    layer = tf.layers.Dense(CLASSES, use_bias=False, kernel_initializer=tf.constant_initializer(PROJECTION))
    return cell, layer


def decoded(helper: Any, **arguments: Any) -> Any:
    cell, layer = cell_with_weights()
    decoder = seq2seq.BasicDecoder(cell, helper, cell.zero_state(BATCH, tf.float32), layer)
    return seq2seq.dynamic_decode(decoder, **arguments)


def test_training_outputs_are_those_of_a_network_along_time(session: tf.Session) -> None:
    cell = tf.nn.rnn_cell.GRUCell(UNITS)
    helper = seq2seq.TrainingHelper(INPUTS, LENGTHS)
    decoder = seq2seq.BasicDecoder(cell, helper, cell.zero_state(BATCH, tf.float32))
    outputs, last, lengths = seq2seq.dynamic_decode(decoder, impute_finished=True)
    with tf.variable_scope("decoder", reuse=True) as scope:
        wanted, wanted_last = tf.nn.dynamic_rnn(cell, INPUTS, LENGTHS, dtype=tf.float32, scope=scope)
    got, state, counts, right, right_state = run(session, [outputs, last, lengths, wanted, wanted_last])
    np.testing.assert_allclose(got.rnn_output, right, rtol=1e-6)
    np.testing.assert_allclose(state, right_state, rtol=1e-6)
    assert counts.tolist() == LENGTHS
    assert tf.global_variables()[0].op.name == "decoder/gru_cell/gates/kernel"


def test_samples_in_training_are_the_greatest_outputs(session: tf.Session) -> None:
    cell = tf.nn.rnn_cell.GRUCell(UNITS)
    helper = seq2seq.TrainingHelper(INPUTS.swapaxes(0, 1), LENGTHS, time_major=True)
    decoder = seq2seq.BasicDecoder(cell, helper, cell.zero_state(BATCH, tf.float32))
    outputs, _, _ = seq2seq.dynamic_decode(decoder, output_time_major=True)
    got = run(session, outputs)
    assert got.rnn_output.shape == (TIME, BATCH, UNITS)
    assert got.sample_id.tolist() == got.rnn_output.argmax(-1).tolist()


def test_batch_and_time_may_be_known_in_the_run_alone(session: tf.Session) -> None:
    x, lengths = tf.placeholder(tf.float32, [None, None, 2]), tf.placeholder(tf.int32, [None])
    cell = tf.nn.rnn_cell.BasicLSTMCell(UNITS)
    state = cell.zero_state(tf.shape(x)[0], tf.float32)
    outputs, _, _ = seq2seq.dynamic_decode(seq2seq.BasicDecoder(cell, seq2seq.TrainingHelper(x, lengths), state))
    assert outputs.rnn_output.shape.as_list() == [None, None, UNITS]
    session.run(tf.global_variables_initializer())
    assert session.run(outputs.rnn_output, {x: INPUTS, lengths: LENGTHS}).shape == (BATCH, TIME, UNITS)
    assert session.run(outputs.rnn_output, {x: INPUTS[:2], lengths: [1, 4]}).shape == (2, 4, UNITS)


def test_a_length_greater_than_the_inputs_is_refused(session: tf.Session) -> None:
    lengths = tf.placeholder(tf.int32, [BATCH])
    cell = tf.nn.rnn_cell.GRUCell(UNITS)
    helper = seq2seq.TrainingHelper(INPUTS, lengths)
    outputs, _, _ = seq2seq.dynamic_decode(seq2seq.BasicDecoder(cell, helper, cell.zero_state(BATCH, tf.float32)))
    session.run(tf.global_variables_initializer())
    with pytest.raises(tf.errors.InvalidArgumentError, match="sequence_length is greater than the number of steps"):
        session.run(outputs, {lengths: [5, 6, 2]})


def test_outputs_end_with_the_longest_row(session: tf.Session) -> None:
    cell = tf.nn.rnn_cell.GRUCell(UNITS)
    helper = seq2seq.TrainingHelper(INPUTS, [1, 0, 3])
    decoder = seq2seq.BasicDecoder(cell, helper, cell.zero_state(BATCH, tf.float32))
    outputs, _, lengths = seq2seq.dynamic_decode(decoder)
    got, counts = run(session, [outputs.rnn_output, lengths])
    assert got.shape == (BATCH, 3, UNITS)
    assert counts.tolist() == [1, 0, 3]


def test_maximum_iterations_cut_training_short(session: tf.Session) -> None:
    cell = tf.nn.rnn_cell.GRUCell(UNITS)
    decoder = seq2seq.BasicDecoder(cell, seq2seq.TrainingHelper(INPUTS, LENGTHS), cell.zero_state(BATCH, tf.float32))
    outputs, _, lengths = seq2seq.dynamic_decode(decoder, maximum_iterations=2)
    got, counts = run(session, [outputs.sample_id, lengths])
    assert got.shape == (BATCH, 2)
    assert counts.tolist() == [2, 2, 2]


def test_lists_of_numbers_are_inputs(session: tf.Session) -> None:
    finished, first = seq2seq.TrainingHelper(INPUTS.tolist(), LENGTHS).initialize()
    assert session.run(first).tolist() == INPUTS[:, 0].tolist()
    assert not session.run(finished).any()


def test_inputs_of_several_parts(session: tf.Session) -> None:
    helper = seq2seq.TrainingHelper({"a": INPUTS, "b": INPUTS[..., 0]}, LENGTHS)
    _, following, _ = helper.next_inputs(tf.constant(1), None, None)
    got = session.run(following)
    assert got["a"].tolist() == INPUTS[:, 2].tolist()
    assert got["b"].tolist() == INPUTS[:, 2, 0].tolist()


def test_a_helper_of_the_users_may_go_on_after_its_inputs(session: tf.Session) -> None:
    class Longer(seq2seq.TrainingHelper):
        def next_inputs(self, time: Any, outputs: Any, state: Any, sample_ids: Any = None, name: Any = None) -> Any:
            _, following, state = super().next_inputs(time, outputs, state, sample_ids, name)
            return tf.fill([BATCH], time >= TIME + 1), following, state

    cell = tf.nn.rnn_cell.GRUCell(UNITS)
    decoder = seq2seq.BasicDecoder(cell, Longer(INPUTS, LENGTHS), cell.zero_state(BATCH, tf.float32))
    assert run(session, seq2seq.dynamic_decode(decoder)[2]).tolist() == [TIME + 2] * BATCH


def test_greedy_choices_are_the_next_inputs(session: tf.Session) -> None:
    helper = seq2seq.GreedyEmbeddingHelper(tf.constant(TABLE), [1, 2, 3], -1)
    outputs, _, lengths = decoded(helper, maximum_iterations=6)
    got, counts = run(session, [outputs.sample_id, lengths])
    assert got.T.tolist() == np.array(greedy_steps(6)).tolist()
    assert counts.tolist() == [6] * BATCH


def test_decoding_stops_after_the_end_of_all(session: tf.Session) -> None:
    steps = np.array(greedy_steps(6))
    end = int(steps[2, 0])
    helper = seq2seq.GreedyEmbeddingHelper(lambda ids: tf.gather(TABLE, ids), [1, 2, 3], end)
    _, _, lengths = decoded(helper, maximum_iterations=6)
    wanted = [next((t + 1 for t in range(6) if steps[t, row] == end), 6) for row in range(BATCH)]
    assert run(session, lengths).tolist() == wanted


def test_a_low_temperature_samples_the_greatest(session: tf.Session) -> None:
    helper = seq2seq.SampleEmbeddingHelper(tf.constant(TABLE), [1, 2, 3], -1, softmax_temperature=1e-3, seed=3)
    outputs, _, _ = decoded(helper, maximum_iterations=4)
    assert run(session, outputs.sample_id).T.tolist() == np.array(greedy_steps(4)).tolist()


def test_samples_vary(session: tf.Session) -> None:
    helper = seq2seq.SampleEmbeddingHelper(tf.constant(TABLE), [1, 2, 3], -1, softmax_temperature=100.0, seed=3)
    outputs, _, _ = decoded(helper, maximum_iterations=20)
    session.run(tf.global_variables_initializer())
    first, second = session.run(outputs.sample_id), session.run(outputs.sample_id)
    assert first.tolist() != second.tolist()
    assert set(first.ravel().tolist()) == set(range(CLASSES))


def test_inference_feeds_what_functions_make(session: tf.Session) -> None:
    helper = seq2seq.InferenceHelper(
        sample_fn=lambda outputs: outputs * 2,
        sample_shape=[UNITS],
        sample_dtype=tf.float32,
        start_inputs=tf.constant(TABLE[:BATCH]),
        end_fn=lambda ids: tf.constant([False] * BATCH),
    )
    cell, _ = cell_with_weights()
    decoder = seq2seq.BasicDecoder(cell, helper, cell.zero_state(BATCH, tf.float32))
    outputs, _, _ = seq2seq.dynamic_decode(decoder, maximum_iterations=3)
    got = run(session, outputs.sample_id)
    state, x = np.zeros((BATCH, UNITS)), TABLE[:BATCH].astype(np.float64)
    for step in range(3):
        state = np.tanh(np.concatenate([x, state], 1) @ KERNEL)
        x = 2 * state
        np.testing.assert_allclose(got[:, step], x, rtol=1e-5, atol=1e-5)


def test_a_helper_of_functions(session: tf.Session) -> None:
    helper = seq2seq.CustomHelper(
        lambda: (tf.constant([False] * BATCH), tf.constant(TABLE[:BATCH])),
        lambda time, outputs, state: tf.fill([BATCH], time),
        lambda time, outputs, state, sample_ids: (tf.fill([BATCH], time >= 2), outputs, state),
    )
    cell, _ = cell_with_weights()
    decoder = seq2seq.BasicDecoder(cell, helper, cell.zero_state(BATCH, tf.float32))
    outputs, _, lengths = seq2seq.dynamic_decode(decoder)
    ids, counts = run(session, [outputs.sample_id, lengths])
    assert ids.tolist() == [[0, 1, 2]] * BATCH
    assert counts.tolist() == [3] * BATCH


@pytest.mark.parametrize("probability", [0.0, 1.0])
def test_scheduled_sampling_of_embeddings(session: tf.Session, probability: float) -> None:
    words = TABLE[RANDOM.integers(0, CLASSES, (BATCH, TIME))]
    words[:, 0] = TABLE[[1, 2, 3]]
    helper = seq2seq.ScheduledEmbeddingTrainingHelper(
        words, [TIME] * BATCH, lambda ids: tf.gather(TABLE, ids), probability, seed=1, scheduling_seed=2
    )
    outputs, _, _ = decoded(helper)
    got = run(session, outputs)
    if probability == 0:
        assert (got.sample_id == -1).all()
    state, x = np.zeros((BATCH, UNITS)), words[:, 0]
    for step in range(TIME):
        state = np.tanh(np.concatenate([x, state], 1) @ KERNEL)
        np.testing.assert_allclose(got.rnn_output[:, step], state @ PROJECTION, rtol=1e-4, atol=1e-5)
        if step + 1 < TIME:
            x = TABLE[got.sample_id[:, step]] if probability else words[:, step + 1]


@pytest.mark.parametrize("probability", [0.0, 1.0])
def test_scheduled_sampling_of_outputs(session: tf.Session, probability: float) -> None:
    given = RANDOM.standard_normal((BATCH, TIME, UNITS)).astype(np.float32)
    helper = seq2seq.ScheduledOutputTrainingHelper(
        given, [TIME] * BATCH, probability, seed=1, next_inputs_fn=lambda outputs: outputs * 0.5
    )
    cell, _ = cell_with_weights()
    decoder = seq2seq.BasicDecoder(cell, helper, cell.zero_state(BATCH, tf.float32))
    outputs, _, _ = seq2seq.dynamic_decode(decoder)
    got = run(session, outputs)
    assert got.sample_id.tolist() == [[bool(probability)] * TIME] * BATCH
    state, x = np.zeros((BATCH, UNITS)), given[:, 0]
    for step in range(TIME):
        state = np.tanh(np.concatenate([x, state], 1) @ KERNEL)
        np.testing.assert_allclose(got.rnn_output[:, step], state, rtol=1e-4, atol=1e-5)
        if step + 1 < TIME:
            x = 0.5 * state if probability else given[:, step + 1]


def test_auxiliary_inputs_join_both(session: tf.Session) -> None:
    extra = RANDOM.standard_normal((BATCH, TIME, UNITS - 2)).astype(np.float32)
    helper = seq2seq.ScheduledOutputTrainingHelper(
        INPUTS, [TIME] * BATCH, 1.0, next_inputs_fn=lambda outputs: outputs[:, :2], auxiliary_inputs=extra
    )
    cell, _ = cell_with_weights()
    decoder = seq2seq.BasicDecoder(cell, helper, cell.zero_state(BATCH, tf.float32))
    got = run(session, seq2seq.dynamic_decode(decoder)[0].rnn_output)
    state, x = np.zeros((BATCH, UNITS)), INPUTS[:, 0]
    for step in range(TIME):
        state = np.tanh(np.concatenate([x, extra[:, step], state], 1) @ KERNEL)
        np.testing.assert_allclose(got[:, step], state, rtol=1e-4, atol=1e-5)
        x = state[:, :2]


def test_a_decoder_learns(session: tf.Session) -> None:
    words = np.tile(np.arange(CLASSES), (8, 1))
    table, cell = tf.get_variable("table", [CLASSES, UNITS]), tf.nn.rnn_cell.GRUCell(16)
    helper = seq2seq.TrainingHelper(tf.nn.embedding_lookup(table, words[:, :-1]), [CLASSES - 1] * 8)
    decoder = seq2seq.BasicDecoder(cell, helper, cell.zero_state(8, tf.float32), tf.layers.Dense(CLASSES))
    outputs, _, _ = seq2seq.dynamic_decode(decoder)
    loss = seq2seq.sequence_loss(outputs.rnn_output, tf.constant(words[:, 1:]), tf.ones([8, CLASSES - 1]))
    train = tf.train.AdamOptimizer(0.05).minimize(loss)
    before = run(session, loss)
    for _ in range(30):
        session.run(train)
    assert session.run(loss) < before / 4


LOGITS = RANDOM.standard_normal((2, 3, 4)).astype(np.float32)
TARGETS = np.array([[0, 1, 2], [3, 3, 0]])
WEIGHTS = np.array([[1, 0.5, 0], [2, 1, 0]], np.float32)
LOSSES = WEIGHTS * -np.take_along_axis(
    LOGITS - np.log(np.exp(LOGITS).sum(-1, keepdims=True)), TARGETS[..., None], -1
).squeeze(-1)


@pytest.mark.parametrize(
    ("arguments", "wanted"),
    [
        ({}, LOSSES.sum() / WEIGHTS.sum()),
        ({"average_across_timesteps": False}, [*(LOSSES.sum(0) / np.maximum(WEIGHTS.sum(0), 1e-9))]),
        ({"average_across_batch": False}, LOSSES.sum(1) / WEIGHTS.sum(1)),
        ({"average_across_timesteps": False, "average_across_batch": False}, LOSSES),
        (
            {"average_across_timesteps": False, "average_across_batch": False, "sum_over_timesteps": True,
             "sum_over_batch": True},
            LOSSES.sum() / 4,
        ),
        (
            {"average_across_timesteps": False, "average_across_batch": False, "sum_over_batch": True},
            LOSSES.sum(0) / [2, 2, 1],
        ),
    ],
)  # fmt: skip
def test_loss_of_sequences(session: tf.Session, arguments: dict[str, bool], wanted: Any) -> None:
    loss = seq2seq.sequence_loss(tf.constant(LOGITS), tf.constant(TARGETS), tf.constant(WEIGHTS), **arguments)
    np.testing.assert_allclose(session.run(loss), wanted, rtol=1e-5)


def test_a_loss_function_of_the_user(session: tf.Session) -> None:
    loss = seq2seq.sequence_loss(
        tf.constant(LOGITS), tf.constant(TARGETS), tf.constant(WEIGHTS),
        softmax_loss_function=lambda labels, logits: tf.cast(labels, tf.float32) + logits[:, 0] * 0,
    )  # fmt: skip
    np.testing.assert_allclose(session.run(loss), (TARGETS * WEIGHTS).sum() / WEIGHTS.sum(), rtol=1e-6)


def cell() -> Any:
    return tf.nn.rnn_cell.GRUCell(UNITS)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: seq2seq.dynamic_decode(3), "decoder is 3; a Decoder is required"),
        (lambda: seq2seq.BasicDecoder(cell(), 3, None), "helper is 3; a Helper is required"),
        (lambda: seq2seq.TrainingHelper(INPUTS, 3), r"sequence_length has shape \(\)"),
        (lambda: seq2seq.GreedyEmbeddingHelper(TABLE, [1], [2]), r"end_token has shape \(1,\); a scalar is required"),
        (lambda: seq2seq.GreedyEmbeddingHelper(TABLE, 1, 2), r"start_tokens has shape \(\); a vector"),
        (lambda: seq2seq.sequence_loss(LOGITS[0], TARGETS, WEIGHTS), r"logits has shape \(3, 4\); rank 3"),
        (
            lambda: seq2seq.sequence_loss(LOGITS, TARGETS, WEIGHTS, sum_over_batch=True),
            "average_across_batch and sum_over_batch are set",
        ),
        (
            lambda: seq2seq.ScheduledOutputTrainingHelper(INPUTS, LENGTHS, [[0.5]]),
            r"sampling_probability has shape \(1, 1\)",
        ),
    ],
)
def test_wrong_arguments(call: Any, message: str) -> None:
    with pytest.raises(tf.errors.OpError, match=message):
        call()
