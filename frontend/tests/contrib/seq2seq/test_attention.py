"""Attention: scores and weights of a memory, and the wrapper that puts it around a cell."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import timberframe as tf

from ...conftest import run, variables

seq2seq = tf.contrib.seq2seq

RANDOM = np.random.default_rng(0)
BATCH, STEPS, SIZE, UNITS = 3, 5, 6, 4
MEMORY = RANDOM.standard_normal((BATCH, STEPS, SIZE)).astype(np.float32)
QUERY = RANDOM.standard_normal((BATCH, UNITS)).astype(np.float32)
LENGTHS = np.array([5, 2, 3])
INSIDE = np.arange(STEPS) < LENGTHS[:, None]
NOTHING = np.zeros((BATCH, STEPS), np.float32)


def softmax(x: Any) -> Any:
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


@pytest.mark.parametrize("scale", [False, True])
def test_luong_weights(session: tf.Session, scale: bool) -> None:
    mechanism = seq2seq.LuongAttention(UNITS, MEMORY, LENGTHS, scale)
    weights, state = mechanism(QUERY, NOTHING)
    session.run(tf.global_variables_initializer())
    if scale:
        session.run(tf.assign(tf.global_variables()[1], 0.5))
    got, after = session.run([weights, state])
    v = variables(session)
    masked = MEMORY * INSIDE[..., None]
    scores = np.einsum("bu,btu->bt", QUERY, masked @ v["memory_layer/kernel"])
    if scale:
        scores *= v["luong_attention/attention_g"]
    np.testing.assert_allclose(got, softmax(np.where(INSIDE, scores, -np.inf)), rtol=1e-5, atol=1e-7)
    assert after.tolist() == got.tolist()


@pytest.mark.parametrize("normalize", [False, True])
def test_bahdanau_weights(session: tf.Session, normalize: bool) -> None:
    mechanism = seq2seq.BahdanauAttention(UNITS, MEMORY, LENGTHS, normalize)
    got = run(session, mechanism(QUERY, NOTHING)[0])
    v = variables(session)
    keys = MEMORY * INSIDE[..., None] @ v["memory_layer/kernel"]
    query = (QUERY @ v["bahdanau_attention/query_layer/kernel"])[:, None]
    direction = v["bahdanau_attention/attention_v"]
    if normalize:
        np.testing.assert_allclose(v["bahdanau_attention/attention_g"], UNITS**-0.5, rtol=1e-6)
        assert v["bahdanau_attention/attention_b"].tolist() == [0.0] * UNITS
        direction = v["bahdanau_attention/attention_g"] * direction / np.sqrt((direction**2).sum())
    scores = (direction * np.tanh(keys + query)).sum(-1)
    np.testing.assert_allclose(got, softmax(np.where(INSIDE, scores, -np.inf)), rtol=1e-5, atol=1e-7)


def test_weights_by_another_function(session: tf.Session) -> None:
    mechanism = seq2seq.LuongAttention(UNITS, MEMORY, LENGTHS, probability_fn=seq2seq.hardmax)
    got = run(session, mechanism(QUERY, NOTHING)[0])
    assert sorted(got[1].tolist()) == [0.0] * (STEPS - 1) + [1.0]
    assert not (got * ~INSIDE).any()


def test_classes_of_programs_weigh_their_own_scores(session: tf.Session) -> None:
    class Own(seq2seq.BahdanauAttention):
        def __call__(self, query: Any, state: Any) -> Any:
            weights = self._probability_fn(tf.reduce_sum(self.keys, 2), state)
            return weights, weights

    got = run(session, Own(UNITS, MEMORY, LENGTHS)(QUERY, NOTHING)[0])
    assert not (got * ~INSIDE).any()
    np.testing.assert_allclose(got.sum(1), 1, rtol=1e-6)


def test_classes_of_programs_keep_the_names_of_variables(session: tf.Session) -> None:
    class Own(seq2seq.LuongAttention):
        pass

    Own(UNITS, MEMORY, scale=True)(QUERY, NOTHING)
    assert tf.global_variables()[1].op.name == "luong_attention/attention_g"


def test_a_row_without_steps_is_refused(session: tf.Session) -> None:
    lengths = tf.placeholder(tf.int32, [BATCH])
    weights, _ = seq2seq.LuongAttention(UNITS, MEMORY, lengths)(QUERY, NOTHING)
    session.run(tf.global_variables_initializer())
    with pytest.raises(tf.errors.InvalidArgumentError, match="memory_sequence_length must be above zero"):
        session.run(weights, {lengths: [5, 0, 3]})


def wrapped(**arguments: Any) -> Any:
    mechanism = seq2seq.LuongAttention(UNITS, MEMORY, LENGTHS)
    return seq2seq.AttentionWrapper(tf.nn.rnn_cell.BasicRNNCell(UNITS), mechanism, **arguments)


def one_step(v: dict[str, np.ndarray], x: Any, h: Any, attention: Any) -> tuple[Any, Any, Any]:
    """(cell's output, weights, context) of a step."""
    h = np.tanh(np.concatenate([x, attention, h], 1) @ v["attention_wrapper/basic_rnn_cell/kernel"])
    masked = MEMORY * INSIDE[..., None]
    scores = np.einsum("bu,btu->bt", h, masked @ v["memory_layer/kernel"])
    weights = softmax(np.where(INSIDE, scores, -np.inf))
    return h, weights, np.einsum("bt,bts->bs", weights, masked)


X = RANDOM.standard_normal((2, BATCH, 2)).astype(np.float32)


def test_the_attention_joins_the_next_inputs(session: tf.Session) -> None:
    cell = wrapped(attention_layer_size=3, alignment_history=True)
    state = cell.zero_state(BATCH, tf.float32)
    outputs = []
    for x in X:
        output, state = cell(x, state)
        outputs.append(output)
    got, history, time = run(session, [outputs, state.alignment_history.stack(), state.time])
    v = variables(session)
    h, attention = np.zeros((BATCH, UNITS)), np.zeros((BATCH, 3))
    for x, found, kept in zip(X, got, history, strict=True):
        h, weights, context = one_step(v, x, h, attention)
        attention = np.concatenate([h, context], 1) @ v["attention_wrapper/attention_layer/kernel"]
        np.testing.assert_allclose(found, attention, rtol=1e-4, atol=1e-6)
        np.testing.assert_allclose(kept, weights, rtol=1e-4, atol=1e-6)
    assert time == 2


def test_without_a_layer_the_attention_is_the_context(session: tf.Session) -> None:
    cell = wrapped()
    output, state = cell(X[0], cell.zero_state(BATCH, tf.float32))
    assert cell.output_size == SIZE
    got, attention = run(session, [output, state.attention])
    _, _, context = one_step(variables(session), X[0], np.zeros((BATCH, UNITS)), np.zeros((BATCH, SIZE)))
    np.testing.assert_allclose(got, context, rtol=1e-4, atol=1e-6)
    assert attention.tolist() == got.tolist()


def test_the_output_may_be_the_cells(session: tf.Session) -> None:
    cell = wrapped(output_attention=False, cell_input_fn=lambda inputs, attention: tf.concat([inputs, attention], 1))
    output, state = cell(X[0], cell.zero_state(BATCH, tf.float32))
    assert cell.output_size == UNITS
    got, after = run(session, [output, state.cell_state])
    assert got.tolist() == after.tolist()


def test_the_cells_state_may_be_another(session: tf.Session) -> None:
    start = np.full((BATCH, UNITS), 0.5, np.float32)
    given = wrapped(initial_cell_state=tf.constant(start)).zero_state(BATCH, tf.float32)
    cloned = wrapped().zero_state(BATCH, tf.float32).clone(cell_state=start)
    one, two = run(session, [given.cell_state, cloned.cell_state])
    assert one.tolist() == two.tolist() == start.tolist()


def test_a_state_of_another_batch_size_is_refused(session: tf.Session) -> None:
    cell = wrapped()
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"tf\.contrib\.seq2seq\.tile_batch"):
        cell.zero_state(BATCH * 2, tf.float32)


def test_several_memories(session: tf.Session) -> None:
    other = RANDOM.standard_normal((BATCH, 7, 8)).astype(np.float32)
    mechanisms = [seq2seq.BahdanauAttention(UNITS, m) for m in (MEMORY, other)]
    cell = seq2seq.AttentionWrapper(tf.nn.rnn_cell.GRUCell(UNITS), mechanisms, [3, 2])
    output, state = cell(X[0], cell.zero_state(BATCH, tf.float32))
    got = run(session, [output, *state.alignments])
    assert [x.shape for x in got] == [(BATCH, 5), (BATCH, STEPS), (BATCH, 7)]
    assert {v.op.name for v in tf.global_variables() if "attention_v" in v.op.name} == {
        "attention_wrapper/bahdanau_attention/attention_v", "attention_wrapper/bahdanau_attention_1/attention_v",
    }  # fmt: skip


def test_variables_have_the_names_that_checkpoints_have(session: tf.Session) -> None:
    with tf.variable_scope("dynamic_seq2seq"), tf.variable_scope("decoder") as scope:
        mechanism = seq2seq.LuongAttention(UNITS, MEMORY, scale=True)
        cell = tf.nn.rnn_cell.MultiRNNCell([tf.nn.rnn_cell.BasicLSTMCell(UNITS) for _ in range(2)])
        cell = seq2seq.AttentionWrapper(cell, mechanism, UNITS, name="attention")
        state = cell.zero_state(BATCH, tf.float32)
        helper = seq2seq.TrainingHelper(X, [2] * BATCH, time_major=True)
        layer = tf.layers.Dense(9, use_bias=False, name="output_projection")
        seq2seq.dynamic_decode(seq2seq.BasicDecoder(cell, helper, state, layer), scope=scope)
    assert {v.op.name.removeprefix("dynamic_seq2seq/decoder/") for v in tf.global_variables()} == {
        "memory_layer/kernel",
        *(
            f"attention/multi_rnn_cell/cell_{i}/basic_lstm_cell/{part}"
            for i in (0, 1) for part in ("kernel", "bias")
        ),
        "attention/luong_attention/attention_g",
        "attention/attention_layer/kernel",
        "output_projection/kernel",
    }  # fmt: skip


@pytest.mark.slow
def test_a_decoder_copies_its_memory(session: tf.Session) -> None:
    words = np.random.default_rng(1).integers(0, 8, (32, 4))
    memory = tf.concat([tf.one_hot(words, 8), tf.one_hot(np.tile(np.arange(4), (32, 1)), 4)], 2)
    cell = seq2seq.AttentionWrapper(tf.nn.rnn_cell.GRUCell(16), seq2seq.BahdanauAttention(16, memory))
    helper = seq2seq.TrainingHelper(tf.one_hot(np.tile(np.arange(4), (32, 1)), 4), [4] * 32)
    decoder = seq2seq.BasicDecoder(cell, helper, cell.zero_state(32, tf.float32), tf.layers.Dense(8))
    outputs, _, _ = seq2seq.dynamic_decode(decoder)
    loss = seq2seq.sequence_loss(outputs.rnn_output, tf.constant(words), tf.ones([32, 4]))
    train = tf.train.AdamOptimizer(0.02).minimize(loss)
    before = run(session, loss)
    for _ in range(60):
        session.run(train)
    assert session.run(loss) < before / 2


def test_sizes_of_a_memory_may_be_known_in_the_run_alone(session: tf.Session) -> None:
    memory, lengths = tf.placeholder(tf.float32, [None, None, SIZE]), tf.placeholder(tf.int32, [None])
    batch = tf.size(lengths)
    table, layer = tf.get_variable("table", [7, 2]), tf.layers.Dense(7, name="projection")
    cells = tf.nn.rnn_cell.MultiRNNCell([tf.nn.rnn_cell.BasicLSTMCell(UNITS) for _ in range(2)])
    tiled, tiled_lengths = seq2seq.tile_batch((memory, lengths), 2)
    mechanism = seq2seq.BahdanauAttention(UNITS, tiled, tiled_lengths)
    cell = seq2seq.AttentionWrapper(cells, mechanism, UNITS, alignment_history=True)
    decoder = seq2seq.BeamSearchDecoder(
        cell, table, tf.fill([batch], 1), 0, cell.zero_state(batch * 2, tf.float32), 2, layer
    )
    outputs, state, _ = seq2seq.dynamic_decode(decoder, maximum_iterations=2 * tf.reduce_max(lengths))
    session.run(tf.global_variables_initializer())
    fed = {memory: MEMORY, lengths: LENGTHS}
    ids, history = session.run([outputs.predicted_ids, state.cell_state.alignment_history], fed)
    assert ids.shape[::2] == (BATCH, 2)
    assert history.shape == (ids.shape[1], BATCH * 2, STEPS)
    assert not (history[0, ::2] * ~INSIDE).any()
    one = session.run(outputs.predicted_ids, {memory: MEMORY[:1, :3], lengths: [3]})
    assert one.shape[0] == 1


CHOOSING = RANDOM.uniform(0.1, 0.9, (BATCH, STEPS)).astype(np.float32)
BEFORE = softmax(RANDOM.standard_normal((BATCH, STEPS))).astype(np.float32)


@pytest.mark.parametrize("mode", ["recursive", "parallel"])
def test_monotonic_weights(session: tf.Session, mode: str) -> None:
    got = session.run(seq2seq.monotonic_attention(CHOOSING, BEFORE, mode))
    arriving = np.zeros(BATCH)
    for step in range(STEPS):
        passed = (1 - CHOOSING[:, step - 1]) * arriving if step else 0
        arriving = passed + BEFORE[:, step]
        np.testing.assert_allclose(got[:, step], CHOOSING[:, step] * arriving, rtol=1e-4)


def test_hard_monotonic_weights_stop_at_the_first_choice(session: tf.Session) -> None:
    chosen = np.array([[1, 0, 0, 1, 1], [0, 0, 1, 1, 0]], np.float32)
    before = np.array([[0, 1, 0, 0, 0], [0, 0, 1, 0, 0]], np.float32)
    got = session.run(seq2seq.monotonic_attention(chosen, before, "hard"))
    assert got.tolist() == [[0, 0, 0, 1, 0], [0, 0, 1, 0, 0]]


@pytest.mark.parametrize("kind", ["Bahdanau", "Luong"])
@pytest.mark.parametrize("mode", ["parallel", "recursive", "hard"])
def test_monotonic_mechanisms(session: tf.Session, kind: str, mode: str) -> None:
    mechanism = getattr(seq2seq, f"{kind}MonotonicAttention")(UNITS, MEMORY, LENGTHS, score_bias_init=1.5, mode=mode)
    start = mechanism.initial_state(BATCH, tf.float32)
    weights, _ = mechanism(QUERY, start)
    first, got = run(session, [start, weights])
    assert first.tolist() == [[1.0, 0, 0, 0, 0]] * BATCH
    assert (got >= 0).all()
    assert (got.sum(1) <= 1 + 1e-5).all()
    assert not (got * ~INSIDE).any()
    assert variables(session)[f"{kind.lower()}_monotonic_attention/attention_score_bias"] == 1.5


def test_hardmax(session: tf.Session) -> None:
    assert session.run(seq2seq.hardmax([[1.0, 3.0, 3.0], [2.0, 0.0, 1.0]])).tolist() == [[0, 1, 0], [1, 0, 0]]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: seq2seq.AttentionWrapper(3, None), "cell is 3; an RNNCell is required"),
        (lambda: seq2seq.AttentionWrapper(tf.nn.rnn_cell.GRUCell(4), 3), "attention_mechanism is 3"),
        (lambda: wrapped(attention_layer_size=[3, 4]), "2 attention layers for 1 mechanisms"),
        (lambda: wrapped()(X[0], tf.zeros([3, 4])), "an AttentionWrapperState, which zero_state gives"),
        (lambda: wrapped().zero_state(3, tf.float32).clone(cell_state=tf.zeros([3, 5])), "dtype and shape must agree"),
        (lambda: seq2seq.LuongAttention(9, MEMORY)(QUERY, NOTHING), "num_units must be the size of the query"),
        (lambda: seq2seq.LuongAttention(4, tf.placeholder(tf.float32, [2, 3, None])), "sizes after time must be known"),
        (lambda: seq2seq.monotonic_attention(CHOOSING, BEFORE, "soft"), "mode is 'soft'"),
    ],
)
def test_wrong_arguments(call: Any, message: str) -> None:
    with pytest.raises(tf.errors.OpError, match=message):
        call()
