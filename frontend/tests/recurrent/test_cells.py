"""Cells of recurrent networks, and networks of them along time."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import timberframe as tf

from ..conftest import run, variables

pytestmark = pytest.mark.usefixtures("session")

cells = tf.nn.rnn_cell

X = np.random.default_rng(0).standard_normal((3, 5, 2)).astype(np.float32)
LENGTHS = [5, 2, 0]


def sigmoid(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


def test_basic_cell(session: tf.Session) -> None:
    h = np.full((3, 4), 0.5, np.float32)
    output, state = run(session, tf.nn.rnn_cell.BasicRNNCell(4)(X[:, 0], h))
    v = variables(session)
    wanted = np.tanh(np.concatenate([X[:, 0], h], 1) @ v["basic_rnn_cell/kernel"] + v["basic_rnn_cell/bias"])
    np.testing.assert_allclose(output, wanted, rtol=1e-5, atol=1e-7)
    assert output.tolist() == state.tolist()


def test_gru_cell(session: tf.Session) -> None:
    h = np.full((3, 4), 0.5, np.float32)
    output, _ = run(session, tf.nn.rnn_cell.GRUCell(4)(X[:, 0], h))
    v = variables(session)
    assert v["gru_cell/gates/bias"].tolist() == [1.0] * 8
    gates = sigmoid(np.concatenate([X[:, 0], h], 1) @ v["gru_cell/gates/kernel"] + 1)
    r, u = gates[:, :4], gates[:, 4:]
    c = np.tanh(np.concatenate([X[:, 0], r * h], 1) @ v["gru_cell/candidate/kernel"])
    np.testing.assert_allclose(output, u * h + (1 - u) * c, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("cell", [tf.nn.rnn_cell.BasicLSTMCell, tf.nn.rnn_cell.LSTMCell])
def test_lstm_cells(session: tf.Session, cell: Any) -> None:
    c, h = np.full((3, 4), 0.25, np.float32), np.full((3, 4), 0.5, np.float32)
    lstm = cell(4)
    output, state = run(session, lstm(X[:, 0], tf.nn.rnn_cell.LSTMStateTuple(c, h)))
    kernel = variables(session)[f"{lstm.name}/kernel"]
    i, j, f, o = np.split(np.concatenate([X[:, 0], h], 1) @ kernel, 4, 1)
    c = c * sigmoid(f + 1) + sigmoid(i) * np.tanh(j)
    np.testing.assert_allclose(state.c, c, rtol=1e-5, atol=1e-7)
    np.testing.assert_allclose(output, np.tanh(c) * sigmoid(o), rtol=1e-5, atol=1e-7)


def test_lstm_with_peepholes_clips_and_projection(session: tf.Session) -> None:
    c, h = np.full((3, 4), 0.25, np.float32), np.full((3, 2), 0.5, np.float32)
    cell = tf.nn.rnn_cell.LSTMCell(4, use_peepholes=True, cell_clip=0.2, num_proj=2, proj_clip=0.1)
    output, state = run(session, cell(X[:, 0], (c, h)))
    v = {name.removeprefix("lstm_cell/"): value for name, value in variables(session).items()}
    i, j, f, o = np.split(np.concatenate([X[:, 0], h], 1) @ v["kernel"], 4, 1)
    c = sigmoid(f + 1 + v["w_f_diag"] * c) * c + sigmoid(i + v["w_i_diag"] * c) * np.tanh(j)
    c = np.clip(c, -0.2, 0.2)
    wanted = np.clip((sigmoid(o + v["w_o_diag"] * c) * np.tanh(c)) @ v["projection/kernel"], -0.1, 0.1)
    np.testing.assert_allclose(state.c, c, rtol=1e-5, atol=1e-7)
    np.testing.assert_allclose(output, wanted, rtol=1e-4)


def test_dynamic_and_static_networks_agree(session: tf.Session) -> None:
    cell = tf.nn.rnn_cell.GRUCell(4)
    with tf.variable_scope("net"):
        dynamic, last = tf.nn.dynamic_rnn(cell, X, LENGTHS, dtype=tf.float32)
        static, static_last = tf.nn.static_rnn(
            cell, tf.unstack(tf.constant(X), 5, 1), dtype=tf.float32, sequence_length=LENGTHS
        )
    a, b, c, d = run(session, [dynamic, tf.stack(static, 1), last, static_last])
    np.testing.assert_allclose(a, b, rtol=1e-6)
    np.testing.assert_allclose(c, d, rtol=1e-6)
    assert tf.global_variables()[0].op.name == "net/rnn/gru_cell/gates/kernel"


def test_rows_that_are_over_give_zeros_and_keep_their_state(session: tf.Session) -> None:
    outputs, last = tf.nn.dynamic_rnn(tf.nn.rnn_cell.BasicRNNCell(4), X, LENGTHS, dtype=tf.float32)
    got, state = run(session, [outputs, last])
    assert not got[1, 2:].any()
    assert not got[2].any()
    assert state[1].tolist() == got[1, 1].tolist()
    assert not state[2].any()


def test_time_major_exchanges_the_axes(session: tf.Session) -> None:
    with tf.variable_scope("net") as scope:
        batch, _ = tf.nn.dynamic_rnn(tf.nn.rnn_cell.GRUCell(4), X, dtype=tf.float32)
    with tf.variable_scope(scope, reuse=True):
        time, _ = tf.nn.dynamic_rnn(tf.nn.rnn_cell.GRUCell(4), X.swapaxes(0, 1), dtype=tf.float32, time_major=True)
    a, b = run(session, [batch, time])
    assert a.swapaxes(0, 1).tolist() == b.tolist()


def test_sizes_may_be_known_in_the_run_alone(session: tf.Session) -> None:
    x = tf.placeholder(tf.float32, [None, None, 2])
    outputs, _ = tf.nn.dynamic_rnn(tf.nn.rnn_cell.GRUCell(4), x, dtype=tf.float32)
    assert outputs.shape.as_list() == [None, None, 4]
    session.run(tf.global_variables_initializer())
    assert session.run(outputs, {x: X}).shape == (3, 5, 4)
    assert session.run(outputs, {x: X[:1, :2]}).shape == (1, 2, 4)


def test_outputs_have_the_given_dtype_beside_a_state_of_another(session: tf.Session) -> None:
    class Rounded(tf.nn.rnn_cell.RNNCell):  # type: ignore[misc]  # the base class is untyped for users
        state_size = output_size = 2

        def call(self, inputs: Any, state: Any) -> Any:
            return tf.cast(state, tf.int32), state + inputs

    outputs, last = tf.nn.dynamic_rnn(Rounded(), tf.ones([1, 3, 2]), None, tf.zeros([1, 2]), tf.int32)
    assert outputs.dtype == tf.int32
    assert session.run(outputs).tolist() == [[[0, 0], [1, 1], [2, 2]]]
    assert session.run(last).tolist() == [[3.0, 3.0]]


def test_both_directions(session: tf.Session) -> None:
    forward, backward = tf.nn.rnn_cell.GRUCell(4), tf.nn.rnn_cell.GRUCell(4)
    (fw, bw), (_, last) = tf.nn.bidirectional_dynamic_rnn(forward, backward, X, LENGTHS, dtype=tf.float32)
    steps = tf.unstack(tf.constant(X), 5, 1)
    with tf.variable_scope(tf.get_variable_scope(), reuse=True):
        static, _, _ = tf.nn.static_bidirectional_rnn(
            forward, backward, steps, dtype=tf.float32, sequence_length=LENGTHS
        )
    a, b, c, state = run(session, [fw, bw, tf.stack(static, 1), last])
    np.testing.assert_allclose(np.concatenate([a, b], 2), c, rtol=1e-6)
    np.testing.assert_allclose(b[0, 0], state[0], rtol=1e-6)
    assert tf.global_variables()[0].op.name == "bidirectional_rnn/fw/gru_cell/gates/kernel"


def test_stacks_run_one_after_the_other(session: tf.Session) -> None:
    stack = tf.nn.rnn_cell.MultiRNNCell([tf.nn.rnn_cell.BasicLSTMCell(4), tf.nn.rnn_cell.GRUCell(3)])
    outputs, last = tf.nn.dynamic_rnn(stack, X, dtype=tf.float32)
    got, state = run(session, [outputs, last])
    assert got.shape == (3, 5, 3)
    assert state[1].tolist() == got[:, -1].tolist()
    assert [v.op.name for v in stack.variables][::2] == [
        "rnn/multi_rnn_cell/cell_0/basic_lstm_cell/kernel",
        "rnn/multi_rnn_cell/cell_1/gru_cell/gates/kernel",
        "rnn/multi_rnn_cell/cell_1/gru_cell/candidate/kernel",
    ]


def test_states_side_by_side(session: tf.Session) -> None:
    cells = [tf.nn.rnn_cell.BasicLSTMCell(n, state_is_tuple=False) for n in (4, 3)]
    stack = tf.nn.rnn_cell.MultiRNNCell(cells, state_is_tuple=False)
    output, state = stack(X[:, 0], stack.zero_state(3, tf.float32))
    got, after = run(session, [output, state])
    assert after.shape == (3, 14)
    assert after[:, -3:].tolist() == got.tolist()


def test_dropout_of_outputs_keeps_the_state(session: tf.Session) -> None:
    cell = tf.nn.rnn_cell.DropoutWrapper(tf.nn.rnn_cell.BasicRNNCell(64), output_keep_prob=0.5, seed=3)
    output, state = run(session, cell(X[:, 0], tf.zeros([3, 64])))
    kept = output != 0
    assert 0.3 < kept.mean() < 0.7
    np.testing.assert_allclose(output[kept], 2 * state[kept], rtol=1e-6)


def test_dropout_of_states_leaves_the_memory_of_an_lstm(session: tf.Session) -> None:
    cell = tf.nn.rnn_cell.DropoutWrapper(tf.nn.rnn_cell.BasicLSTMCell(64), state_keep_prob=0.5)
    _, state = run(session, cell(X[:, 0], cell.zero_state(3, tf.float32)))
    assert (state.c != 0).all()
    assert 0.3 < (state.h != 0).mean() < 0.7


def test_variational_dropout_drops_the_same_in_all_steps(session: tf.Session) -> None:
    cell = tf.nn.rnn_cell.DropoutWrapper(
        tf.nn.rnn_cell.BasicRNNCell(32), output_keep_prob=0.5, variational_recurrent=True, dtype=tf.float32
    )
    got = run(session, tf.nn.dynamic_rnn(cell, X, dtype=tf.float32)[0])
    dropped = got == 0
    assert (dropped == dropped[:1, :1]).all()
    assert 0.2 < dropped.mean() < 0.8


def test_residuals_and_devices(session: tf.Session) -> None:
    plain = tf.nn.rnn_cell.GRUCell(2)
    h = tf.zeros([3, 2])
    a, _ = plain(X[:, 0], h)
    b, _ = tf.nn.rnn_cell.ResidualWrapper(plain)(X[:, 0], h)
    c, _ = tf.nn.rnn_cell.DeviceWrapper(plain, "/cpu:0")(X[:, 0], h)
    one, two, three = run(session, [a, b, c])
    np.testing.assert_allclose(two, one + X[:, 0], rtol=1e-6)
    assert one.tolist() == three.tolist()
    assert c.op.device.endswith("CPU:0") or "cpu:0" in c.op.device


def test_raw_rnn_decides_its_inputs_and_its_end(session: tf.Session) -> None:
    cell, steps = tf.nn.rnn_cell.GRUCell(4), tf.TensorArray(tf.float32, 5).unstack(X.swapaxes(0, 1))

    def loop(time: Any, output: Any, state: Any, extra: Any) -> Any:
        after = cell.zero_state(3, tf.float32) if output is None else state
        finished = time >= tf.constant(LENGTHS)
        following = tf.cond(
            tf.reduce_all(finished), lambda: tf.zeros([3, 2]), lambda: tf.ensure_shape(steps.read(time), [3, 2])
        )
        return finished, following, after, output, None

    outputs, last, _ = tf.nn.raw_rnn(cell, loop)
    wanted, wanted_last = tf.nn.dynamic_rnn(cell, X, LENGTHS, dtype=tf.float32)
    a, b, c, d = run(session, [outputs.stack(), tf.transpose(wanted, [1, 0, 2]), last, wanted_last])
    np.testing.assert_allclose(a, b, rtol=1e-6)
    np.testing.assert_allclose(c, d, rtol=1e-6)


def test_a_network_learns(session: tf.Session) -> None:
    tf.set_random_seed(1)
    x = np.random.default_rng(1).standard_normal((64, 6, 1)).astype(np.float32)
    wanted = x.sum(1)
    outputs, _ = tf.nn.dynamic_rnn(tf.nn.rnn_cell.BasicLSTMCell(8), x, dtype=tf.float32)
    loss = tf.losses.mean_squared_error(wanted, tf.layers.dense(outputs[:, -1], 1))
    train = tf.train.AdamOptimizer(0.05).minimize(loss)
    before = run(session, loss)
    for _ in range(40):
        session.run(train)
    assert session.run(loss) < before / 4


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: tf.nn.dynamic_rnn(3, X, dtype=tf.float32), "cell is 3; an RNNCell is required"),
        (lambda: tf.nn.dynamic_rnn(cells.GRUCell(4), X), "initial_state and dtype are None"),
        (lambda: tf.nn.dynamic_rnn(cells.GRUCell(4), X, [1, 2], None, None, tf.float32), "2 sequence lengths for 3"),
        (
            lambda: tf.nn.dynamic_rnn(cells.LSTMCell(4), X, initial_state=tf.zeros([3, 4])),
            r"tf.nn.dynamic_rnn: initial_state is .*Tensor.*state_size, LSTMStateTuple\(c=4, h=4\), are required",
        ),
        (lambda: tf.nn.static_rnn(cells.LSTMCell(4), [X[:, 0]], tf.zeros([3, 4])), "tf.nn.static_rnn: initial_state"),
        (
            lambda: tf.nn.dynamic_rnn(cells.GRUCell(4), X[:, 0], dtype=tf.float32),
            r"inputs have shape \(3, 2\); rank 3 at least, \[batch, time, features\], is required",
        ),
        (
            lambda: tf.nn.dynamic_rnn(cells.GRUCell(4), X[0, 0], dtype=tf.float32, time_major=True),
            r"inputs have shape \(2,\); rank 3 at least, \[time, batch, features\], is required",
        ),
        (lambda: tf.nn.static_rnn(cells.GRUCell(4), [], dtype=tf.float32), r"inputs is \[\]; a list of tensors"),
        (lambda: cells.MultiRNNCell([]), r"cells is \[\]"),
        (lambda: cells.DropoutWrapper(cells.GRUCell(4), 1.5), "input_keep_prob is 1.5"),
        (lambda: cells.GRUCell(4)(tf.placeholder(tf.float32, [2, None]), X[:, 0]), "last axis must be known"),
    ],
)  # fmt: skip
def test_wrong_arguments(call: Any, message: str) -> None:
    with pytest.raises(tf.errors.OpError, match=message):
        call()
