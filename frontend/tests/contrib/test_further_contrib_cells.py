"""Cells of tf.contrib.rnn against the equations of their papers, and numbers that TensorFlow 1 gives for them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import timberframe as tf

from ..conftest import run
from .cell_examples import GRID, HALVES, RANDOM, STEPS, C, H, X, assert_close, sigmoid, tenths, variables

rnn = tf.contrib.rnn

LENGTHS = [5, 3, 1]


def normed(x: Any) -> Any:
    centred = x - x.mean(1, keepdims=True)
    return centred / np.sqrt((centred**2).mean(1, keepdims=True) + 1e-12)


def test_units_that_see_their_own_state_alone(session: tf.Session) -> None:
    output, state = run(session, rnn.IndRNNCell(4)(X, H))
    v = variables(session)
    assert [*v] == ["kernel_w", "kernel_u", "bias"]
    assert_close(output, np.tanh(X @ v["kernel_w"] + H * v["kernel_u"]))
    assert output.tolist() == state.tolist()


def test_gated_units_that_see_their_own_state_alone(session: tf.Session) -> None:
    output, _ = run(session, rnn.IndyGRUCell(4)(X, H))
    v = variables(session)
    assert [*v] == [*(f"gates/{n}" for n in ("kernel_w", "kernel_u", "bias")), "candidate/kernel",
                    "candidate/kernel_u", "candidate/bias"]  # fmt: skip
    gates = X @ v["gates/kernel_w"] + np.tile(H, 2) * v["gates/kernel_u"] + 1
    r, u = np.split(sigmoid(gates), 2, 1)
    new = np.tanh(X @ v["candidate/kernel"] + r * H * v["candidate/kernel_u"])
    assert_close(output, u * H + (1 - u) * new)


def test_an_lstm_whose_units_see_their_own_state_alone(session: tf.Session) -> None:
    output, state = run(session, rnn.IndyLSTMCell(4)(X, (C, H)))
    v = variables(session)
    i, j, f, o = np.split(X @ v["kernel_w"] + np.tile(H, 4) * v["kernel_u"], 4, 1)
    c = C * sigmoid(f + 1) + sigmoid(i) * np.tanh(j)
    assert_close(state.c, c)
    assert_close(output, np.tanh(c) * sigmoid(o))


def test_the_simple_recurrent_unit(session: tf.Session) -> None:
    output, state = run(session, rnn.SRUCell(4)(X, C))
    v = variables(session)
    new, f, r, past = np.split(X @ v["kernel"], 4, 1)
    c = sigmoid(f) * C + (1 - sigmoid(f)) * new
    assert_close(state, c)
    assert_close(output, sigmoid(r) * np.tanh(c) + (1 - sigmoid(r)) * past)
    assert v["bias"].shape == (8,)


def test_a_gate_between_inputs_and_outputs(session: tf.Session) -> None:
    with tf.variable_scope("root", initializer=HALVES):
        output, state = rnn.IntersectionRNNCell(2, num_in_proj=2)(STEPS, tenths(2))
    got, after = run(session, [output, state])
    assert_close(got[:, 0], [2.00431061, 4.00060606, 6.00008249])
    assert_close(after[:, 1], [0.13752282, 0.10545051, 0.10074195])
    assert [v.op.name.removeprefix("root/intersection_rnn_cell/") for v in tf.global_variables()] == [
        "in_projection/kernel", "in_projection/bias", "kernel", "bias",
    ]  # fmt: skip


def test_an_lstm_that_opens_periodically(session: tf.Session) -> None:
    times = np.array([[1.0], [2.0], [30.0]])
    output, state = run(session, rnn.PhasedLSTMCell(4, use_peepholes=True, ratio_on=0.3)((times, X), (C, H)))
    v = variables(session)
    assert [*v][-3:] == ["period", "phase", "ratio_on"]
    i, f = np.split(sigmoid(np.concatenate([X, H, C], 1) @ v["mask_gates/kernel"]), 2, 1)
    c = C * f + i * np.tanh(np.concatenate([X, H], 1) @ v["new_input/kernel"])
    h = np.tanh(c) * sigmoid(np.concatenate([X, H, c], 1) @ v["output_gate/kernel"])
    ratio = np.mod(times - v["phase"], v["period"]) / v["period"]
    opened = np.where(ratio < 0.15, ratio / 0.15, np.where(ratio < 0.3, 2 - ratio / 0.15, 0.001 * ratio))
    assert_close(state.c, opened * c + (1 - opened) * C)
    assert_close(output, opened * h + (1 - opened) * H)


def test_periods_begin_between_their_bounds(session: tf.Session) -> None:
    rnn.PhasedLSTMCell(200, period_init_min=2.0, period_init_max=50.0)((np.ones((3, 1)), X), (tenths(200), tenths(200)))
    session.run(tf.global_variables_initializer())
    v = variables(session)
    assert v["period"].min() >= 2
    assert v["period"].max() <= 50
    assert (v["phase"] < v["period"]).all()


@pytest.mark.parametrize(("use_peepholes", "c", "h"), [
    (False, [0.50125383, 0.58805949], [0.32770363, 0.37397948]),
    (True, [0.50125383, 0.59587258], [0.35041603, 0.40873795]),
])  # fmt: skip
def test_normalised_kernels(session: tf.Session, use_peepholes: bool, c: list[float], h: list[float]) -> None:
    state = tuple(0.1 * np.array([x], np.float32) for x in ([0, 1], [2, 3]))
    with tf.variable_scope("root", initializer=HALVES):
        _, after = rnn.WeightNormLSTMCell(2, use_peepholes=use_peepholes)(np.ones((1, 2), np.float32), state)
    got = run(session, after)
    assert_close(got.c, [c])
    assert_close(got.h, [h])


def test_without_norm_the_kernels_are_those_of_a_plain_lstm(session: tf.Session) -> None:
    state = tuple(0.1 * np.array([x], np.float32) for x in ([0, 1], [2, 3]))
    with tf.variable_scope("root", initializer=HALVES):
        _, after = rnn.WeightNormLSTMCell(2, norm=False)(np.ones((1, 2), np.float32), state)
    assert_close(run(session, after).c, [[0.65937078, 0.74983585]])


def test_normalised_kernels_along_time(session: tf.Session) -> None:
    cell = rnn.WeightNormLSTMCell(4, num_proj=2)
    outputs = [tf.nn.dynamic_rnn(cell, X.reshape(3, 2, 3), dtype=tf.float32)[0] for _ in range(2)]
    one, two = run(session, outputs)
    assert one.shape == (3, 2, 2)
    assert one.tolist() == two.tolist()


def test_normalised_gates_with_peepholes_and_a_projection(session: tf.Session) -> None:
    cell = rnn.LayerNormLSTMCell(4, use_peepholes=True, cell_clip=0.8, num_proj=2, layer_norm=True)
    output, state = run(session, cell(X, (C, H[:, :2])))
    v = variables(session)
    gates = np.split(np.concatenate([X, H[:, :2]], 1) @ v["kernel"], 4, 1)
    i, j, f, o = (normed(g) for g in gates)
    c = C * sigmoid(f + 1 + v["w_f_diag"] * C) + sigmoid(i + v["w_i_diag"] * C) * np.tanh(j)
    c = np.clip(normed(c), -0.8, 0.8)
    assert_close(state.c, c)
    assert_close(output, sigmoid(o + v["w_o_diag"] * c) * np.tanh(c) @ v["projection/kernel"])


def test_a_forget_gate_that_is_the_input_gate(session: tf.Session) -> None:
    with tf.variable_scope("root", initializer=HALVES):
        output, state = rnn.CoupledInputForgetGateLSTMCell(2, state_is_tuple=False)(STEPS, tenths(4))
    got, after = run(session, [output, state])
    np.testing.assert_allclose(got[:, 0], [0.121753, 0.103349, 0.100178], atol=1e-6)
    np.testing.assert_allclose(after[:, 1], [0.137523, 0.105450, 0.100742], atol=1e-6)
    assert [v.op.name for v in tf.global_variables()] == [
        f"root/coupled_input_forget_gate_lstm_cell/{n}" for n in ("W_0", "B")
    ]


def test_coupled_gates_with_all_that_they_may_have(session: tf.Session) -> None:
    cell = rnn.CoupledInputForgetGateLSTMCell(
        4, use_peepholes=True, num_proj=2, num_unit_shards=3, num_proj_shards=2, layer_norm=True
    )
    output, state = run(session, cell(X, (C, H[:, :2])))
    v = variables(session)
    assert [v[f"W_{i}"].shape[0] for i in range(3)] == [3, 3, 2]
    kernel = np.concatenate([v[f"W_{i}"] for i in range(3)])
    j, f, o = (normed(g) for g in np.split(np.concatenate([X, H[:, :2]], 1) @ kernel, 3, 1))
    kept = sigmoid(f + 1 + v["W_F_diag"] * C)
    c = normed(kept * C + (1 - kept) * np.tanh(j))
    assert_close(state.c, c)
    projection = np.concatenate([v["W_P_0"], v["W_P_1"]])
    assert_close(output, sigmoid(o + v["W_O_diag"] * c) * np.tanh(c) @ projection)


def test_one_group_is_a_plain_lstm(session: tf.Session) -> None:
    with tf.variable_scope("root", initializer=HALVES):
        grouped, _ = rnn.GLSTMCell(4)(X, (C, H))
        plain, _ = tf.nn.rnn_cell.LSTMCell(4)(X, (C, H))
    one, two = run(session, [grouped, plain])
    assert_close(one, two)


def test_groups_of_units_see_their_own_inputs(session: tf.Session) -> None:
    output, state = run(session, rnn.GLSTMCell(4, num_proj=2, number_of_groups=2)(X, (C, H[:, :2])))
    v = variables(session)
    assert [*v][:2] == ["group0/kernel", "group1/kernel"]
    parts = [
        np.split(np.concatenate([X[:, 3 * g : 3 * g + 3], H[:, g : g + 1]], 1) @ v[f"group{g}/kernel"], 4, 1)
        for g in range(2)
    ]
    i, j, f, o = (np.concatenate(gate, 1) for gate in zip(*parts, strict=True))
    c = C * sigmoid(f + 1) + sigmoid(i) * np.tanh(j)
    assert_close(state.c, c)
    assert_close(output, sigmoid(o) * np.tanh(c) @ v["projection/kernel"])


def test_a_highway_lets_a_part_of_the_inputs_through(session: tf.Session) -> None:
    with tf.variable_scope("root"):
        cell = tf.nn.rnn_cell.BasicRNNCell(4)
        output, _ = rnn.HighwayWrapper(cell, couple_carry_transform_gates=False, carry_bias_init=-1.0)(X[:, :4], H)
    got = run(session, output)
    v = variables(session)
    assert [*v] == ["basic_rnn_cell/kernel", "basic_rnn_cell/bias", "carry_w", "carry_b", "transform_w", "transform_b"]
    carried, passed = (sigmoid(X[:, :4] @ v[f"{n}_w"] + v[f"{n}_b"]) for n in ("carry", "transform"))
    inner = np.tanh(np.concatenate([X[:, :4], H], 1) @ v["basic_rnn_cell/kernel"])
    assert_close(got, X[:, :4] * carried + inner * passed)
    assert v["transform_b"].tolist() == [1.0] * 4


def test_a_compiled_cell_is_the_cell(session: tf.Session) -> None:
    cell = tf.nn.rnn_cell.GRUCell(4)
    one, two = run(session, [wrapped(X, H)[0] for wrapped in (cell, rnn.CompiledWrapper(cell))])
    assert one.tolist() == two.tolist()


CELLS = {
    "units": lambda: rnn.IndRNNCell(4),
    "gated units": lambda: rnn.IndyGRUCell(4),
    "simple units": lambda: rnn.SRUCell(4),
    "a stack": lambda: tf.nn.rnn_cell.MultiRNNCell([rnn.IntersectionRNNCell(4), rnn.IndyLSTMCell(4)]),
    "phases": lambda: rnn.PhasedLSTMCell(4),
    "normalised kernels": lambda: rnn.WeightNormLSTMCell(4, num_proj=3, use_peepholes=True),
    "normalised gates": lambda: rnn.LayerNormLSTMCell(4, layer_norm=True, num_proj=3),
    "coupled gates": lambda: rnn.CoupledInputForgetGateLSTMCell(4, num_unit_shards=2, state_is_tuple=False),
    "groups": lambda: rnn.GLSTMCell(4, number_of_groups=2),
    "a grid": lambda: rnn.GridLSTMCell(2, use_peepholes=True, num_unit_shards=2, **GRID),
    "a grid both ways": lambda: rnn.BidirectionalGridLSTMCell(2, **GRID),
    "a highway": lambda: rnn.HighwayWrapper(tf.nn.rnn_cell.GRUCell(4)),
}


@pytest.mark.parametrize("name", CELLS)
def test_cells_learn_along_time(session: tf.Session, name: str) -> None:
    steps: Any = tf.constant(RANDOM.standard_normal((3, 5, 4)), tf.float32)
    if name == "phases":
        steps = tf.cumsum(tf.ones([3, 5, 1], tf.float64), 1), steps
    outputs, _ = tf.nn.dynamic_rnn(CELLS[name](), steps, LENGTHS, dtype=tf.float32)
    loss = tf.reduce_mean(tf.square(outputs - 0.3))
    train = tf.train.AdamOptimizer(0.05).minimize(loss)
    before = run(session, loss)
    for _ in range(30):
        session.run(train)
    assert session.run(loss) < before


class _Doubling(rnn.LSTMBlockWrapper):
    """Its c is the sum of all inputs so far, its h twice that."""

    @property
    def num_units(self) -> int:
        return 2

    def _call_cell(self, inputs: Any, c: Any, h: Any, dtype: Any, sequence_length: Any) -> Any:
        sums = c + tf.cumsum(inputs)
        return sums, 2.0 * sums


def test_an_lstm_of_the_users_own_along_time(session: tf.Session) -> None:
    outputs, state = run(session, _Doubling()(np.ones((3, 2, 2), np.float32), dtype=tf.float32, sequence_length=[3, 0]))
    assert outputs[:, 0, 0].tolist() == [2.0, 4.0, 6.0]
    assert outputs[:, 1].tolist() == [[0.0, 0.0]] * 3
    assert state.c.tolist() == [[3.0, 3.0], [0.0, 0.0]]
    assert state.h.tolist() == [[6.0, 6.0], [0.0, 0.0]]


def test_the_axes_of_time_and_batch_change_places(session: tf.Session) -> None:
    assert session.run(rnn.transpose_batch_time(np.arange(6).reshape(2, 3, 1))).shape == (3, 2, 1)


def test_the_size_of_a_batch_is_that_of_the_first_input_that_says_it(session: tf.Session) -> None:
    unknown, known = tf.placeholder(tf.float32, [4, None]), tf.placeholder(tf.float32, [4, 7])
    assert rnn.best_effort_input_batch_size([unknown, known]) == 7
    size = rnn.best_effort_input_batch_size([unknown])
    assert session.run(size, {unknown: np.zeros((4, 5))}) == 5


class _Saver:
    """Keeps states in variables, as a queue of sequences does for its rows."""

    def __init__(self, names: Any) -> None:
        self._kept = {name: tf.get_variable(name, [3, 4], initializer=tf.zeros_initializer()) for name in names}

    def state(self, name: str) -> Any:
        return tf.identity(self._kept[name])

    def save_state(self, name: str, value: Any) -> Any:
        return self._kept[name].assign(value)


def test_a_state_that_is_kept_goes_on(session: tf.Session) -> None:
    cell = tf.nn.rnn_cell.BasicLSTMCell(4)
    outputs, _ = tf.nn.static_state_saving_rnn(cell, [X, X], _Saver("ch"), ("c", "h"))
    with tf.variable_scope("rnn", reuse=True):
        whole, _ = tf.nn.static_rnn(cell, [X] * 4, dtype=tf.float32, scope=tf.get_variable_scope())
    session.run(tf.global_variables_initializer())
    first, second = session.run(outputs[-1]), session.run(outputs[-1])
    wanted = session.run(whole)
    assert_close(first, wanted[1])
    assert_close(second, wanted[3])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: rnn.IntersectionRNNCell(4)(X, H), "inputs have size 6 and there are 4 units"),
        (lambda: rnn.GLSTMCell(4, number_of_groups=3), "num_units is 4 for 3 groups; it must be divisible"),
        (lambda: rnn.GLSTMCell(4, number_of_groups=4)(X, (C, H)), "the size of the inputs is 6 for 4 groups"),
        (lambda: rnn.GridLSTMCell(4, feature_size=2, frequency_skip=1), "num_frequency_blocks is None"),
        (lambda: rnn.TimeFreqLSTMCell(4), "feature_size is None and frequency_skip None"),
        (lambda: rnn.GridLSTMCell(2, **GRID).build([3, 9]), "from 0 to 9 have 8 windows of 2; as many are required"),
        (lambda: rnn.CoupledInputForgetGateLSTMCell(4, num_unit_shards=20)(X, (C, H)), "20 shards for the 10 rows"),
        (lambda: rnn.transpose_batch_time([1.0]), "x has shape"),
        (lambda: rnn.best_effort_input_batch_size([[1.0]]), "two axes at least are required"),
        (lambda: rnn.HighwayWrapper(3), "cell is 3; an RNNCell is required"),
        (
            lambda: tf.nn.static_state_saving_rnn(tf.nn.rnn_cell.BasicLSTMCell(4), [X], None, "c"),
            "state_name is 'c' for a state of sizes",
        ),
    ],
)
def test_wrong_arguments(call: Any, message: str) -> None:
    with pytest.raises(tf.errors.OpError, match=message):
        call()
