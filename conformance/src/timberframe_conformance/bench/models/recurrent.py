"""LSTM (Hochreiter and Schmidhuber 1997) and GRU (Cho et al. 2014) with the equations of Keras, as while loops."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import timberframe as tf
from timberframe_conformance.bench.models.layers import Layers

Step = Callable[..., Sequence[Any]]
"""From an input [batch, inputs] and the states to the new states, the first of which is the output."""


def lstm(layers: Layers, x: Any, units: int = 64) -> Any:
    """Returns the outputs of all steps [batch, steps, units] for inputs [batch, steps, inputs]."""
    width = layers.channels(units)
    kernel, recurrent = (_weights(layers, rows, 4 * width) for rows in (int(x.shape[2]), width))
    bias = layers.bias(4 * width)

    def step(now: Any, hidden: Any, cell: Any) -> Sequence[Any]:
        gates = tf.nn.bias_add(tf.add(tf.matmul(now, kernel), tf.matmul(hidden, recurrent)), bias)
        entered, forgotten, candidate, output = tf.split(gates, 4, 1)
        cell = tf.sigmoid(forgotten) * cell + tf.sigmoid(entered) * tf.tanh(candidate)
        return tf.sigmoid(output) * tf.tanh(cell), cell

    return _scan(step, x, [width, width])


def gru(layers: Layers, x: Any, units: int = 64) -> Any:
    """Returns the outputs of all steps [batch, steps, units]; the reset gate acts after the product, as in cuDNN."""
    width = layers.channels(units)
    kernel, recurrent = (_weights(layers, rows, 3 * width) for rows in (int(x.shape[2]), width))
    biases = layers.bias(3 * width), layers.bias(3 * width)

    def step(now: Any, hidden: Any) -> Sequence[Any]:
        update_x, reset_x, new_x = tf.split(tf.nn.bias_add(tf.matmul(now, kernel), biases[0]), 3, 1)
        update_h, reset_h, new_h = tf.split(tf.nn.bias_add(tf.matmul(hidden, recurrent), biases[1]), 3, 1)
        update, reset = (tf.sigmoid(tf.add(a, b)) for a, b in ((update_x, update_h), (reset_x, reset_h)))
        candidate = tf.tanh(new_x + reset * new_h)
        return [update * hidden + (1.0 - update) * candidate]

    return _scan(step, x, [width])


def _weights(layers: Layers, rows: int, columns: int) -> Any:
    return layers.weight(layers.normal([rows, columns], math.sqrt(1 / rows)))


def _scan(step: Step, x: Any, widths: Sequence[int]) -> Any:
    """Returns the first state after each step, from states of zeros of these widths."""
    batch, steps, _ = (int(d) for d in x.shape)
    rows = tf.TensorArray(tf.float32, steps).unstack(tf.transpose(x, [1, 0, 2]))
    outputs = tf.TensorArray(tf.float32, steps, element_shape=[batch, widths[0]])

    def body(time: Any, found: Any, *states: Any) -> Sequence[Any]:
        now = rows.read(time)
        now.set_shape([batch, int(x.shape[2])])
        after = step(now, *states)
        return [time + 1, found.write(time, after[0]), *after]

    start = [tf.constant(0), outputs, *(tf.zeros([batch, width]) for width in widths)]
    end = tf.while_loop(lambda time, *_: time < steps, body, start)
    return tf.transpose(end[1].stack(), [1, 0, 2])
