"""The operations that gradients consist of, where programs walk through them as they do through TensorFlow's."""

from __future__ import annotations

import pytest

import timberframe as tf


@pytest.mark.parametrize("rows", [8, None])
@pytest.mark.parametrize("bias", [(3,), (1, 3)])
def test_gradient_of_what_is_broadcast_is_a_reshape_of_the_sum_of_the_outer_gradient(
    rows: int | None, bias: tuple[int, ...]
) -> None:
    with tf.Graph().as_default():
        x, b = tf.placeholder(tf.float32, [rows, 3]), tf.placeholder(tf.float32, bias)
        outer = tf.placeholder(tf.float32, [rows, 3])
        (gradient,) = tf.gradients(x + b, b, outer)
        total = gradient.op.inputs[0].op
        assert (gradient.op.type, total.type, total.inputs[0]) == ("Reshape", "Sum", outer)
        assert gradient.shape == bias
