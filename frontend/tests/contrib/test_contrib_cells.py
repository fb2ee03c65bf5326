"""Cells and networks of tf.contrib.rnn."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import timberframe as tf

from ..conftest import run, variables

rnn = tf.contrib.rnn

RANDOM = np.random.default_rng(0)
X = RANDOM.standard_normal((3, 5, 2)).astype(np.float32)
C, H = (RANDOM.standard_normal((3, 4)).astype(np.float32) for _ in range(2))
LENGTHS = [5, 2, 3]


def sigmoid(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


def normed(x: Any, gain: float = 1.0, shift: float = 0.0) -> Any:
    centred = x - x.mean(1, keepdims=True)
    return gain * centred / np.sqrt((centred**2).mean(1, keepdims=True) + 1e-12) + shift


def test_an_lstm_with_normalised_gates(session: tf.Session) -> None:
    output, state = run(session, rnn.LayerNormBasicLSTMCell(4, norm_gain=0.5, norm_shift=0.1)(X[:, 0], (C, H)))
    v = variables(session)
    assert [*v][:3] == [f"layer_norm_basic_lstm_cell/{n}" for n in ("kernel", "input/gamma", "input/beta")]
    assert len(v) == 11
    gates = np.split(np.concatenate([X[:, 0], H], 1) @ v["layer_norm_basic_lstm_cell/kernel"], 4, 1)
    i, j, f, o = (normed(g, 0.5, 0.1) for g in gates)
    c = normed(C * sigmoid(f + 1) + sigmoid(i) * np.tanh(j), 0.5, 0.1)
    np.testing.assert_allclose(state.c, c, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(output, np.tanh(c) * sigmoid(o), rtol=1e-4, atol=1e-5)


def test_without_normalisation_it_is_a_plain_lstm(session: tf.Session) -> None:
    output, _ = run(session, rnn.LayerNormBasicLSTMCell(4, layer_norm=False)(X[:, 0], (C, H)))
    v = variables(session)
    gates = np.concatenate([X[:, 0], H], 1) @ v["layer_norm_basic_lstm_cell/kernel"]
    i, j, f, o = np.split(gates + v["layer_norm_basic_lstm_cell/bias"], 4, 1)
    c = C * sigmoid(f + 1) + sigmoid(i) * np.tanh(j)
    np.testing.assert_allclose(output, np.tanh(c) * sigmoid(o), rtol=1e-4, atol=1e-6)


def test_dropout_of_what_is_written_leaves_what_was_there(session: tf.Session) -> None:
    cell = rnn.LayerNormBasicLSTMCell(64, layer_norm=False, dropout_keep_prob=0.5, dropout_prob_seed=3)
    c = np.ones((3, 64), np.float32)
    _, state = run(session, cell(X[:, 0], (c, np.zeros((3, 64), np.float32))))
    v = variables(session)
    gates = np.concatenate([X[:, 0], np.zeros((3, 64))], 1) @ v["layer_norm_basic_lstm_cell/kernel"]
    f = np.split(gates + v["layer_norm_basic_lstm_cell/bias"], 4, 1)[2]
    assert 0.3 < np.isclose(state.c, sigmoid(f + 1), rtol=1e-5).mean() < 0.7


def test_the_cell_of_a_search(session: tf.Session) -> None:
    m = RANDOM.standard_normal((3, 2)).astype(np.float32)
    output, state = run(session, rnn.NASCell(4, num_proj=2, use_bias=True)(X[:, 0], (C, m)))
    v = {name.removeprefix("nas_cell/"): value for name, value in variables(session).items()}
    assert [*v] == ["recurrent_kernel", "kernel", "bias", "projection_weights"]
    a, b = np.split(X[:, 0] @ v["kernel"], 8, 1), np.split(m @ v["recurrent_kernel"] + v["bias"], 8, 1)
    gates = [
        sigmoid(a[0] + b[0]), np.maximum(a[1] + b[1], 0), sigmoid(a[2] + b[2]), np.maximum(a[3] * b[3], 0),
        np.tanh(a[4] + b[4]), sigmoid(a[5] + b[5]), np.tanh(a[6] + b[6]), sigmoid(a[7] + b[7]),
    ]  # fmt: skip
    c = np.tanh(np.tanh(gates[0] * gates[1]) + C) * np.tanh(gates[2] + gates[3])
    last = np.tanh(c * np.tanh(np.tanh(gates[4] * gates[5]) + sigmoid(gates[6] + gates[7])))
    np.testing.assert_allclose(state.c, c, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(output, last @ v["projection_weights"], rtol=1e-4, atol=1e-6)


def test_the_cell_with_one_gate(session: tf.Session) -> None:
    output, _ = run(session, rnn.UGRNNCell(4)(X[:, 0], H))
    v = variables(session)
    g, c = np.split(np.concatenate([X[:, 0], H], 1) @ v["ugrnn_cell/kernel"], 2, 1)
    np.testing.assert_allclose(output, sigmoid(g + 1) * H + (1 - sigmoid(g + 1)) * np.tanh(c), rtol=1e-4, atol=1e-6)


def test_fused_cells_are_the_plain_ones(session: tf.Session) -> None:
    with tf.variable_scope("net"):
        plain, _ = tf.nn.rnn_cell.LSTMCell(4, use_peepholes=True, cell_clip=0.5, name="lstm_cell")(X[:, 0], (C, H))
    with tf.variable_scope("net", reuse=True):
        fused, _ = rnn.LSTMBlockCell(4, cell_clip=0.5, use_peephole=True)(X[:, 0], (C, H))
    one, two = run(session, [plain, fused])
    assert one.tolist() == two.tolist()
    assert [v.op.name for v in tf.global_variables()][:2] == ["net/lstm_cell/kernel", "net/lstm_cell/bias"]


@pytest.mark.parametrize(
    ("cell", "names"),
    [
        (rnn.GRUBlockCell, ["w_ru", "b_ru", "w_c", "b_c"]),
        (rnn.GRUBlockCellV2, ["gates/kernel", "gates/bias", "candidate/kernel", "candidate/bias"]),
    ],
)
def test_fused_gru_cells(session: tf.Session, cell: Any, names: list[str]) -> None:
    fused, _ = cell(4)(X[:, 0], H)
    plain, _ = tf.nn.rnn_cell.GRUCell(4, name="plain")(X[:, 0], H)
    ours = {v.op.name: v for v in tf.global_variables()}
    session.run(tf.global_variables_initializer())
    assert [n.removeprefix("gru_cell/") for n in ours][:4] == names
    for mine, other in zip([*ours.values()][:4], [*ours.values()][4:], strict=True):
        session.run(tf.assign(other, mine))
    one, two = session.run([fused, plain])
    assert one.tolist() == two.tolist()


def test_a_fused_lstm_along_time(session: tf.Session) -> None:
    steps = X.swapaxes(0, 1)
    with tf.variable_scope("net"):
        outputs, state = rnn.LSTMBlockFusedCell(4)(steps, dtype=tf.float32, sequence_length=LENGTHS)
    assert [v.op.name for v in tf.global_variables()] == [f"net/lstm_fused_cell/{n}" for n in ("kernel", "bias")]
    with tf.variable_scope("net", reuse=True):
        cell = tf.nn.rnn_cell.LSTMCell(4, name="lstm_fused_cell")
        cell(X[:, 0], cell.zero_state(3, tf.float32))  # takes the variables
    wanted, wanted_state = tf.nn.dynamic_rnn(cell, steps, LENGTHS, dtype=tf.float32, time_major=True)
    got = run(session, [outputs, wanted, state, wanted_state])
    np.testing.assert_allclose(got[0], got[1], rtol=1e-6)
    np.testing.assert_allclose(got[2].c, got[3].c, rtol=1e-6)


@pytest.mark.parametrize("dynamic", [False, True])
def test_cells_called_as_fused_ones_are(session: tf.Session, dynamic: bool) -> None:
    steps, cell = X.swapaxes(0, 1), tf.nn.rnn_cell.GRUCell(4)
    outputs, _ = rnn.FusedRNNCellAdaptor(cell, dynamic)(steps, dtype=tf.float32, sequence_length=LENGTHS)
    wanted, _ = tf.nn.dynamic_rnn(cell, steps, LENGTHS, dtype=tf.float32, time_major=True)
    one, two = run(session, [outputs, wanted])
    np.testing.assert_allclose(one, two, rtol=1e-6)


def test_fused_networks_run_backwards(session: tf.Session) -> None:
    cell = tf.nn.rnn_cell.GRUCell(4)
    network = rnn.TimeReversedFusedRNN(rnn.FusedRNNCellAdaptor(cell, True))
    outputs, state = network(X.swapaxes(0, 1), dtype=tf.float32, sequence_length=LENGTHS)
    (_, wanted), (_, last) = tf.nn.bidirectional_dynamic_rnn(
        tf.nn.rnn_cell.GRUCell(4), cell, X, LENGTHS, dtype=tf.float32
    )
    one, two, a, b = run(session, [outputs, wanted, state, last])
    np.testing.assert_allclose(one.swapaxes(0, 1), two, rtol=1e-6)
    np.testing.assert_allclose(a, b, rtol=1e-6)


def test_a_convolution_of_one_pixel_is_a_plain_lstm(session: tf.Session) -> None:
    cell = rnn.Conv2DLSTMCell(input_shape=[1, 1, 2], output_channels=4, kernel_shape=[1, 1])
    output, _ = run(session, cell(X[:, :1, None], tuple(s[:, None, None] for s in (C, H))))
    v = variables(session)
    assert [*v] == [f"conv_2d_lstm_cell/{n}" for n in ("kernel", "biases")]
    gates = np.concatenate([X[:, 0], H], 1) @ v["conv_2d_lstm_cell/kernel"][0, 0]
    i, j, f, o = np.split(gates, 4, 1)
    c = C * sigmoid(f + 1) + sigmoid(i) * np.tanh(j)
    np.testing.assert_allclose(output[:, 0, 0], np.tanh(c) * sigmoid(o), rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize(("count", "skip"), [(1, False), (2, True), (3, False)])
def test_convolutional_cells_run_along_time(session: tf.Session, count: int, skip: bool) -> None:
    sizes = [5, 4, 3][:count]
    cell = rnn.ConvLSTMCell(count, [*sizes, 2], 3, [3] * count, skip_connection=skip)
    outputs, state = tf.nn.dynamic_rnn(cell, tf.ones([2, 6, *sizes, 2]), dtype=tf.float32)
    got, last = run(session, [outputs, state.h])
    assert got.shape == (2, 6, *sizes, 5 if skip else 3)
    assert got[:, -1, ..., :3].tolist() == last.tolist()


def test_attention_to_the_last_outputs(session: tf.Session) -> None:
    cell = rnn.AttentionCellWrapper(tf.nn.rnn_cell.BasicRNNCell(4), attn_length=3)
    state = (H, RANDOM.standard_normal((3, 4)).astype(np.float32), RANDOM.standard_normal((3, 12)).astype(np.float32))
    output, after = run(session, cell(X[:, 0], state))
    v = {name.removeprefix("attention_cell_wrapper/"): value for name, value in variables(session).items()}
    x = np.concatenate([X[:, 0], state[1]], 1) @ v["kernel"] + v["bias"]
    h = np.tanh(np.concatenate([x, H], 1) @ v["basic_rnn_cell/kernel"])
    past = state[2].reshape(3, 3, 4)
    wanted = h @ v["attention/kernel"] + v["attention/bias"]
    scores = (v["attention/attn_v"] * np.tanh(past @ v["attention/attn_w"][0, 0] + wanted[:, None])).sum(-1)
    weights = np.exp(scores) / np.exp(scores).sum(1, keepdims=True)
    attention = (weights[..., None] * past).sum(1)
    right = np.concatenate([h, attention], 1) @ v["attn_output_projection/kernel"]
    np.testing.assert_allclose(output, right, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(after[1], attention, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(after[2], np.concatenate([past[:, 1:], right[:, None]], 1).reshape(3, 12), rtol=1e-4)


def test_attention_runs_along_time(session: tf.Session) -> None:
    cell = rnn.AttentionCellWrapper(tf.nn.rnn_cell.BasicLSTMCell(4), attn_length=2)
    outputs, _ = tf.nn.dynamic_rnn(cell, X, LENGTHS, dtype=tf.float32)
    assert run(session, outputs).shape == (3, 5, 4)


def test_projections_and_embeddings(session: tf.Session) -> None:
    inner = tf.nn.rnn_cell.BasicRNNCell(4)
    cell = rnn.OutputProjectionWrapper(rnn.EmbeddingWrapper(inner, 6, 2), 3, activation=tf.nn.relu)
    output, _ = run(session, cell(np.array([1, 5, 1]), H))
    v = {name.removeprefix("output_projection_wrapper/"): value for name, value in variables(session).items()}
    rows = v["embedding_wrapper/embedding"][[1, 5, 1]]
    h = np.tanh(np.concatenate([rows, H], 1) @ v["embedding_wrapper/basic_rnn_cell/kernel"])
    np.testing.assert_allclose(output, np.maximum(h @ v["kernel"], 0), rtol=1e-4, atol=1e-6)
    assert cell.output_size == 3


def test_an_embedding_begins_as_its_scope_says(session: tf.Session) -> None:
    with tf.variable_scope("net", initializer=tf.constant_initializer(0.25)):
        rnn.EmbeddingWrapper(tf.nn.rnn_cell.BasicRNNCell(4), 6, 2)(np.array([1, 5, 1]), H)
    session.run(tf.global_variables_initializer())
    assert variables(session)["net/embedding_wrapper/embedding"].tolist() == [[0.25, 0.25]] * 6


def test_projected_inputs(session: tf.Session) -> None:
    output, _ = run(session, rnn.InputProjectionWrapper(tf.nn.rnn_cell.BasicRNNCell(4), 3)(X[:, 0], H))
    v = {name.removeprefix("input_projection_wrapper/"): value for name, value in variables(session).items()}
    h = np.tanh(np.concatenate([X[:, 0] @ v["kernel"], H], 1) @ v["basic_rnn_cell/kernel"])
    np.testing.assert_allclose(output, h, rtol=1e-4, atol=1e-6)


def test_stacks_that_run_both_ways(session: tf.Session) -> None:
    cells = [[tf.nn.rnn_cell.GRUCell(n) for n in (4, 3)] for _ in range(2)]
    outputs, fw, bw = rnn.stack_bidirectional_dynamic_rnn(*cells, X, dtype=tf.float32, sequence_length=LENGTHS)
    with tf.variable_scope("stack_bidirectional_rnn", reuse=True) as scope:
        steps = tf.unstack(tf.constant(X), 5, 1)
        static, last, _ = rnn.stack_bidirectional_rnn(
            *cells, steps, dtype=tf.float32, sequence_length=LENGTHS, scope=scope
        )
    one, two, states, others = run(session, [outputs, tf.stack(static, 1), fw, last])
    assert one.shape == (3, 5, 6)
    np.testing.assert_allclose(one, two, rtol=1e-5)
    np.testing.assert_allclose(states[1], others[1], rtol=1e-5)
    assert len(bw) == 2
    assert tf.global_variables()[0].op.name == (
        "stack_bidirectional_rnn/cell_0/bidirectional_rnn/fw/gru_cell/gates/kernel"
    )


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: rnn.AttentionCellWrapper(tf.nn.rnn_cell.GRUCell(4), 0), "attn_length is 0; it must be above zero"),
        (lambda: rnn.OutputProjectionWrapper(3, 4), "cell is 3; an RNNCell is required"),
        (lambda: rnn.GRUBlockCell(), "give one of them"),
        (lambda: rnn.ConvLSTMCell(2, [4, 1], 2, [1]), r"input_shape is \[4, 1\] for 2 dimensions; one more"),
        (lambda: rnn.stack_bidirectional_dynamic_rnn([], [], X), "two lists of equal length are required"),
        (lambda: rnn.LSTMBlockFusedCell(4)(X), "initial_state and dtype are None"),
    ],
)
def test_wrong_arguments(call: Any, message: str) -> None:
    with pytest.raises(tf.errors.OpError, match=message):
        call()
