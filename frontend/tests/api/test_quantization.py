"""tf.quantization.fake_quant_*: numbers as quantized integers would have them, and what gradients see of it."""

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
