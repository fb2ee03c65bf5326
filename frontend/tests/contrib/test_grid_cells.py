"""Cells along time and frequency against the equations of their papers, and numbers that TensorFlow 1 gives."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import timberframe as tf

from ..conftest import run
from .cell_examples import GRID, HALVES, STEPS, C, H, X, assert_close, sigmoid, tenths, variables

rnn = tf.contrib.rnn


def test_windows_of_frequencies(session: tf.Session) -> None:
    cell = rnn.TimeFreqLSTMCell(4, use_peepholes=True, cell_clip=0.9, feature_size=4, frequency_skip=2)
    state = np.concatenate([C, H, H, C], 1)
    output, after = run(session, cell(X, state))
    v = variables(session)
    lower, outputs, states = np.zeros((3, 4)), [], []
    for start, (c, h) in ((0, (C, H)), (2, (H, C))):
        joined = np.concatenate([X[:, start : start + 4], h, lower], 1)
        i, j, f, o = np.split(joined @ v["W_0"] + v["B"], 4, 1)
        c = sigmoid(f + 1 + v["W_F_diag"] * c) * c + sigmoid(i + v["W_I_diag"] * c) * np.tanh(j)
        c = np.clip(c, -0.9, 0.9)
        lower = sigmoid(o + v["W_O_diag"] * c) * np.tanh(c)
        outputs.append(lower)
        states += [c, lower]
    assert_close(output, np.concatenate(outputs, 1))
    assert_close(after, np.concatenate(states, 1))


@pytest.mark.parametrize("state_is_tuple", [True, False])
def test_a_grid_of_time_and_frequency(session: tf.Session, state_is_tuple: bool) -> None:
    cell = rnn.GridLSTMCell(2, couple_input_forget_gates=True, state_is_tuple=state_is_tuple, **GRID)
    state = cell.state_tuple_type(*[tenths(2)] * 6) if state_is_tuple else tenths(12)
    with tf.variable_scope("root", initializer=HALVES):
        output, after = cell(STEPS, state)
    got, last = run(session, [output, after])
    np.testing.assert_allclose(got[0, ::2], [0.416383, 0.403238, 0.524020, 0.565425, 0.557865, 0.609699], atol=2e-6)
    last = np.concatenate(last, 1) if state_is_tuple else last
    np.testing.assert_allclose(last[2, ::2], [0.957327, 0.711050, 0.979522, 0.736533, 0.980245, 0.737390], atol=2e-6)
    assert [v.op.name.removeprefix("root/grid_lstm_cell/") for v in tf.global_variables()] == [
        "W_f_0_0", "B_f_0", "W_t_0_0", "B_t_0",
    ]  # fmt: skip


def test_a_grid_with_peepholes_and_two_blocks(session: tf.Session) -> None:
    cell = rnn.GridLSTMCell(
        4, use_peepholes=True, feature_size=2, frequency_skip=2, num_frequency_blocks=[2, 1],
        start_freqindex_list=[0, 4], end_freqindex_list=[4, 6], cell_clip=0.7,
    )  # fmt: skip
    assert cell.state_tuple_type._fields[:4] == (
        "state_f00_b00_c", "state_f00_b00_m", "state_f01_b00_c", "state_f01_b00_m",
    )  # fmt: skip
    output, _ = run(session, cell(X, cell.state_tuple_type(C, H, H, C, C, H)))
    v, outputs = variables(session), []
    for block, starts, states in ((0, (0, 2), ((C, H), (H, C))), (1, (4,), ((C, H),))):

        def peepholes(gate: str, name: str, along: Any, across: Any, block: int = block) -> Any:
            return (v[f"W_{gate}_diag_{name}f_{block}"] * along) + v[f"W_{gate}_diag_{name}t_{block}"] * across

        c_along = h_along = np.zeros((3, 4))
        for start, (c, h) in zip(starts, states, strict=True):
            joined, new, last = np.concatenate([X[:, start : start + 2], h, h_along], 1), {}, {}
            for name, short, own in (("freq", "f", c_along), ("time", "t", c)):
                i, j, f, last[name] = np.split(joined @ v[f"W_{short}_{block}_0"], 4, 1)
                i, f = (x + peepholes(gate, name, c_along, c) for gate, x in (("I", i), ("F", f)))
                new[name] = np.clip(sigmoid(f + 1) * own + sigmoid(i) * np.tanh(j), -0.7, 0.7)
            h_along, h = (sigmoid(last[n] + peepholes("O", n, new["freq"], new["time"])) * np.tanh(new[n]) for n in new)
            c_along = new["freq"]
            outputs += [h, h_along]
    assert_close(output, np.concatenate(outputs, 1))


@pytest.mark.parametrize(("offset", "back"), [
    (0, [0.520789, 0.476968, 0.604341, 0.760207, 0.635773, 0.850218]),
    (1, [0.322645, 0.276068, 0.584654, 0.690292, 0.640446, 0.840071]),
])  # fmt: skip
def test_a_grid_along_the_frequencies_both_ways(session: tf.Session, offset: int, back: list[float]) -> None:
    cell = rnn.BidirectionalGridLSTMCell(2, share_time_frequency_weights=True, backward_slice_offset=offset, **GRID)
    inputs = np.array([[1.0, 1.1, 1.2, 1.3], [2.0, 2.1, 2.2, 2.3], [3.0, 3.1, 3.2, 3.3]], np.float32)
    with tf.variable_scope("root", initializer=HALVES):
        output, after = cell(inputs, cell.state_tuple_type(*[tenths(2)] * 12))
    got, last = run(session, [output, after])
    forth = [0.464130, 0.419165, 0.593283, 0.738350, 0.661638, 0.866774]
    np.testing.assert_allclose(got[0, ::2], forth + back, atol=2e-6)
    np.testing.assert_allclose(last.fwd_state_f02_b00_c[0], [0.958505] * 2, atol=2e-6)
    assert tf.global_variables()[2].op.name == "root/bidirectional_grid_lstm_cell/bwd/W_f_0_0"


def test_a_grid_runs_along_time(session: tf.Session) -> None:
    cell = rnn.GridLSTMCell(2, **GRID)
    outputs, _ = tf.nn.dynamic_rnn(cell, X.reshape(3, 2, 3)[:, :, [0, 1, 2, 0]], dtype=tf.float32)
    assert run(session, outputs).shape == (3, 2, 12)
