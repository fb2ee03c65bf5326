"""tf.contrib.training.HParams, and tf.contrib.legacy_seq2seq."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import timberframe as tf

HParams = tf.contrib.training.HParams


def settings() -> Any:
    return HParams(rate=0.1, units=[64, 32], name="model", deep=True, steps=10)


def test_settings_are_attributes() -> None:
    assert (settings().rate, settings().units, settings().deep) == (0.1, [64, 32], True)


def test_settings_print_in_the_order_of_their_names() -> None:
    assert str(HParams(b=[1, 2], a="x")) == "[('a', 'x'), ('b', [1, 2])]"
    assert repr(HParams(a=1)) == "HParams([('a', 1)])"


def test_a_text_changes_settings() -> None:
    made = settings().parse("rate=1e-3, units=[16,8,4],name=other one,deep=false,steps=7")
    assert made.values() == {"rate": 1e-3, "units": [16, 8, 4], "name": "other one", "deep": False, "steps": 7}


def test_a_text_changes_an_element() -> None:
    assert settings().parse("units[1]=8").units == [64, 8]


def test_json_there_and_back() -> None:
    text = settings().to_json(sort_keys=True)
    assert text == '{"deep": true, "name": "model", "rate": 0.1, "steps": 10, "units": [64, 32]}'
    assert HParams(rate=1.0, units=[1], name="", deep=False, steps=0).parse_json(text).values() == settings().values()


def test_an_integer_is_a_float_setting() -> None:
    made = settings()
    made.set_hparam("rate", 2)
    assert (made.rate, type(made.rate)) == (2.0, float)


def test_get_and_in() -> None:
    made = settings()
    made.add_hparam("extra", None)
    assert made.get("rate") == 0.1
    assert made.get("other", 5) == 5
    assert "extra" in made
    made.del_hparam("extra")
    assert "extra" not in made


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: settings().add_hparam("rate", 2), "'rate' exists"),
        (lambda: settings().add_hparam("none", []), "is an empty list"),
        (lambda: settings().set_hparam("rates", 2), "there is no 'rates'; known are deep, name, rate, steps, units"),
        (lambda: settings().set_hparam("steps", 1.5), "'steps' is 1.5; a value of type int is required"),
        (lambda: settings().set_hparam("steps", True), "'steps' is True; a value of type int is required"),
        (lambda: settings().set_hparam("units", 3), "'units' is 3; a list is required"),
        (lambda: settings().parse("rate"), "'rate' is no setting; name=value is required"),
        (lambda: settings().parse("rate=a"), "'rate' is 'a'; a value of type float is required"),
        (lambda: settings().parse("rate=1,rate=2"), "'rate' is there twice"),
        (lambda: settings().parse("units[5]=1"), "'units' has 2 elements"),
        (lambda: settings().parse("other=1"), "there is no 'other'"),
    ],
)
def test_wrong_settings(call: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()


def test_losses_of_lists_of_steps() -> None:
    random = np.random.default_rng(0)
    logits = [random.standard_normal((3, 4)).astype(np.float32) for _ in range(2)]
    targets, weights = [np.array([0, 1, 2]), np.array([3, 3, 0])], [np.array([1, 1, 0.5], np.float32)] * 2
    legacy = tf.contrib.legacy_seq2seq
    with tf.Graph().as_default(), tf.Session() as session:
        constants = [[tf.constant(x) for x in xs] for xs in (logits, targets, weights)]
        each = session.run(legacy.sequence_loss_by_example(*constants))
        mean = session.run(legacy.sequence_loss(*constants))
    logs = [x - np.log(np.exp(x).sum(1, keepdims=True)) for x in logits]
    losses = sum(-w * x[np.arange(3), t] for x, t, w in zip(logs, targets, weights, strict=True))
    np.testing.assert_allclose(each, losses / (2 * weights[0]), rtol=1e-5)
    np.testing.assert_allclose(mean, each.mean(), rtol=1e-5)


def test_a_loss_function_of_a_program_gets_the_targets_as_they_are() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        loss = tf.contrib.legacy_seq2seq.sequence_loss_by_example(
            [tf.ones([2, 4])], [tf.constant([[1], [2]])], [tf.ones([2, 1])],
            softmax_loss_function=lambda labels, logits: tf.cast(labels, tf.float32),
        )  # fmt: skip
        assert session.run(loss).tolist() == [[1.0], [2.0]]


def test_a_decoder_of_a_list_feeds_what_a_function_makes() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        cell, first = tf.nn.rnn_cell.BasicRNNCell(2), tf.ones([3, 2])
        outputs, last = tf.contrib.legacy_seq2seq.rnn_decoder(
            [first, first], cell.zero_state(3, tf.float32), cell, lambda output, index: output * 2
        )
        with tf.variable_scope("rnn_decoder", reuse=True):
            again, _ = cell(outputs[0] * 2, outputs[0])
        session.run(tf.global_variables_initializer())
        one, two, three = session.run([outputs[1], again, last])
    assert one.tolist() == two.tolist() == three.tolist()
    assert tf.global_variables() == []
