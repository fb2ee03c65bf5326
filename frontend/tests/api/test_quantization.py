"""tf.quantization: numbers as integers, back again, and as integers would have them; what gradients see of it."""

from __future__ import annotations

import numpy as np
import pytest

import timberframe as tf

pytestmark = pytest.mark.usefixtures("session")

X = np.array([-9.0, -0.6, -0.1, 0.0, 0.3, 1.4, 9.0], np.float32)


def test_numbers_are_rounded_to_those_of_integers(session: tf.Session) -> None:
    y = tf.fake_quant_with_min_max_args(X, -1, 0.75, num_bits=3)
    assert session.run(y).tolist() == [-1.0, -0.5, 0.0, 0.0, 0.25, 0.75, 0.75]


def test_one_integer_less(session: tf.Session) -> None:
    y = tf.quantization.fake_quant_with_min_max_vars(X, -0.75, 0.75, num_bits=3, narrow_range=True)
    assert session.run(y).tolist() == [-0.75, -0.5, 0.0, 0.0, 0.25, 0.75, 0.75]


def test_the_range_is_moved_to_have_zero(session: tf.Session) -> None:
    y = tf.fake_quant_with_min_max_vars(X, 1.0, 2.75, num_bits=3)
    assert session.run(y).tolist() == [0.0, 0.0, 0.0, 0.0, 0.25, 1.5, 1.75]


def test_gradients_pass_the_rounding_by(session: tf.Session) -> None:
    x, low, high = tf.constant(X), tf.constant(-1.0), tf.constant(0.75)
    y = tf.fake_quant_with_min_max_vars(x, low, high, num_bits=3)
    slopes = session.run(tf.gradients(y, [x, low, high], np.arange(1.0, 8.0, dtype=np.float32)))
    assert [s.tolist() for s in slopes] == [[0.0, 2.0, 3.0, 4.0, 5.0, 0.0, 0.0], 1.0, 13.0]


def test_a_range_for_each_channel(session: tf.Session) -> None:
    x = tf.constant([[0.3, 0.3], [-4.0, 4.0]])
    low, high = tf.constant([-1.0, -4.0]), tf.constant([0.75, 3.0])
    y = tf.fake_quant_with_min_max_vars_per_channel(x, low, high, num_bits=3)
    made = session.run([y, *tf.gradients(y, [low, high])])
    assert [m.tolist() for m in made] == [[[0.25, 0.0], [-1.0, 3.0]], [1.0, 0.0], [0.0, 1.0]]


def test_wrong_bits(session: tf.Session) -> None:
    with pytest.raises(tf.errors.InvalidArgumentError, match="num_bits is 1; 2 to 16 are required"):
        session.run(tf.fake_quant_with_min_max_args(X, num_bits=1))


def test_integers_that_stand_for_numbers(session: tf.Session) -> None:
    levels = tf.quantize(X, -1.0, 0.5, tf.qint8, mode="SCALED")
    integers, low, high = session.run(levels)
    assert integers.tolist() == [-128, -77, -13, 0, 38, 127, 127]
    assert (low, high) == (-1.0, 127 / 128)
    assert session.run(tf.dequantize(levels.output, low, high, "SCALED")).tolist()[3] == 0.0


def test_integers_and_back_are_within_half_a_step(session: tf.Session) -> None:
    x = np.linspace(-2, 3, 101, dtype=np.float32)
    for dtype, steps in ((tf.qint8, 255), (tf.quint8, 255), (tf.qint16, 65535), (tf.quint16, 65535)):
        integers, low, high = tf.quantize_v2(x, -2.0, 3.0, dtype, "MIN_FIRST")
        back = session.run(tf.dequantize(integers, low, high, "MIN_FIRST"))
        assert np.abs(back - x).max() <= 5 / steps * 1.01


def test_a_range_that_is_narrow_is_widened(session: tf.Session) -> None:
    _, low, high = session.run(tf.quantize(X, 0.0, 0.0, tf.quint8, ensure_minimum_range=0.25))
    assert (low, high) == (0.0, 0.25)


def test_integers_of_a_range_for_each_slice(session: tf.Session) -> None:
    x = np.array([[1, 2], [10, -20]], np.float32)
    integers, low, high = session.run(tf.quantize(x, [-2.0, -20.0], [2.0, 20.0], tf.qint8, "SCALED", axis=0))
    assert integers.tolist() == [[64, 127], [64, -127]]
    assert low.shape == high.shape == (2,)


def test_ends_in_the_wrong_order(session: tf.Session) -> None:
    words = "min_range is 2.5 and max_range 1.0; max_range must be at least min_range"
    with pytest.raises(tf.errors.InvalidArgumentError, match=words):
        session.run(tf.quantize(X, 2.5, 1.0, tf.qint8).output)
    words = "input_min is 2.5 and input_max 1.0; input_min must be at most input_max"
    with pytest.raises(tf.errors.InvalidArgumentError, match=words):
        session.run(tf.quantization.quantize_and_dequantize(X, 2.5, 1.0, range_given=True))


def test_numbers_there_and_back_at_once(session: tf.Session) -> None:
    given = tf.quantization.quantize_and_dequantize(X, -1.0, 0.75, num_bits=3, range_given=True)
    assert session.run(given).tolist() == [-1.0, -0.5, 0.0, 0.0, 0.25, 0.75, 0.75]
    found = tf.quantization.quantize_and_dequantize(X, 0.0, 0.0, num_bits=2, narrow_range=True)
    assert session.run(found).tolist() == [-9.0, 0.0, 0.0, 0.0, 0.0, 0.0, 9.0]


def test_which_inputs_get_gradients(session: tf.Session) -> None:
    x = tf.constant(X)
    ones = [1.0] * len(X)
    y = tf.quantization.quantize_and_dequantize(x, -1.0, 1.5, range_given=True)
    assert session.run(tf.gradients(y, x)[0]).tolist() == ones
    y = tf.quantization.quantize_and_dequantize_v2(x, -1.0, 1.5, range_given=True)
    assert session.run(tf.gradients(y, x)[0]).tolist() == [0.0, *ones[2:], 0.0]


def test_a_number_of_bits_that_is_fed(session: tf.Session) -> None:
    bits = tf.placeholder(tf.int32, [])
    y = tf.raw_ops.QuantizeAndDequantizeV3(input=X, input_min=-1.0, input_max=0.75, num_bits=bits)
    assert session.run(y, {bits: 3}).tolist() == [-1.0, -0.5, 0.0, 0.0, 0.25, 0.75, 0.75]
    with pytest.raises(tf.errors.InvalidArgumentError, match="num_bits is 1; 2 to 63 are required"):
        session.run(y, {bits: 1})
