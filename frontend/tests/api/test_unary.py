from __future__ import annotations

import numpy as np
import pytest

import timberframe as tf


def test_function_adds_one_node_of_its_op() -> None:
    with tf.Graph().as_default():
        y = tf.tanh(np.float32([1, 2]), name="t")
    assert (y.op.type, y.op.name, y.dtype) == ("Tanh", "t", tf.float32)


def test_abs_of_complex_is_real() -> None:
    with tf.Graph().as_default():
        y = tf.abs(np.complex128([3 + 4j]))
    assert (y.op.type, y.dtype) == ("ComplexAbs", tf.float64)


@pytest.mark.parametrize("function", [tf.real, tf.conj])
def test_complex_part_of_a_real_tensor_is_the_tensor(function) -> None:
    with tf.Graph().as_default():
        x = tf.constant([1.0])
        assert function(x) is x


def test_round_leaves_integers_alone() -> None:
    with tf.Graph().as_default():
        x = tf.constant([1, 2])
        assert tf.round(x) is x


def test_leaky_relu_takes_alpha_second() -> None:
    with tf.Graph().as_default():
        y = tf.nn.leaky_relu(tf.constant([1.0]), 0.25)
    assert y.op.attrs["alpha"] == 0.25


def test_imaginary_part_needs_the_matching_real_dtype() -> None:
    from timberframe_core.graph.apply import apply_op

    with (
        tf.Graph().as_default(),
        pytest.raises(tf.errors.InvalidArgumentError, match="Tout is float32; Tout must be float64"),
    ):
        apply_op("Imag", [np.complex128([1j])], {"Tout": tf.float32})
