"""Where errors of a run come from: each ends with the device and the line of the program that made its node."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import timberframe as tf
from timberframe_core.graph.apply import apply_op

LOCATION = r"  \[/device:\w+:0, [^\[\]]*test_error_locations\.py:\d+[^\[\]]*\]$"


def failing_assert(number: tf.Tensor) -> tf.Operation:
    return tf.Assert(number < 0, [number])


def write_past_the_end(number: tf.Tensor) -> tf.Tensor:
    return tf.TensorArray(tf.int32, size=2).write(number, 1).stack()


def read_past_the_end(number: tf.Tensor) -> tf.Tensor:
    filled = tf.TensorArray(tf.int32, size=2).unstack([1, 2])
    return apply_op("TensorListGetItem", [filled.flow, number, []], {"element_dtype": tf.int32})


def failing_turn(number: tf.Tensor) -> tf.Tensor:
    def body(i: tf.Tensor) -> tf.Tensor:
        with tf.control_dependencies([failing_assert(number)]):
            return i + 1

    return tf.while_loop(lambda i: i < 3, body, [0])


@pytest.mark.parametrize("build", [failing_assert, write_past_the_end, read_past_the_end, failing_turn])
def test_error_of_a_run_ends_with_its_location(build: Callable[[tf.Tensor], tf.Tensor]) -> None:
    with tf.Graph().as_default() as graph, tf.Session(graph=graph) as session:
        number = tf.placeholder(tf.int32, [])
        result = build(number)
        with pytest.raises(tf.errors.InvalidArgumentError, match=LOCATION):
            session.run(result, {number: 7})


def test_memory_limit_error_ends_with_its_location(device_type: str) -> None:
    with tf.Graph().as_default() as graph:
        x = tf.placeholder(tf.float32, [None])
        y = tf.cumsum(x)
        with (
            tf.Session(graph=graph, config=tf.SessionConfig(memory_limit={device_type: 100_000})) as session,
            pytest.raises(tf.errors.ResourceExhaustedError, match=r"the limit is 100000 bytes" + LOCATION),
        ):
            session.run(y, {x: np.zeros(1 << 20, np.float32)})
