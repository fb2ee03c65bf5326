"""Errors of eager execution."""

from __future__ import annotations

import sys
import threading
from typing import Any

import numpy as np
import pytest

import timberframe as tf
from timberframe.eager.context import eager_mode


def test_an_error_names_the_op_the_values_and_the_users_line() -> None:
    line = sys._getframe().f_lineno + 2
    with pytest.raises(tf.errors.InvalidArgumentError) as e:
        tf.constant([1.0, 2.0]) + tf.constant([1.0, 2.0, 3.0])
    assert str(e.value).startswith("AddV2 'add': shapes (2,) and (3,) do not broadcast; ")
    assert f"test_wrong_uses.py:{line}]" in str(e.value)


def test_an_error_of_a_kernel_names_each_callers_line() -> None:
    lines = []
    for _ in range(2):
        with pytest.raises(tf.errors.InvalidArgumentError) as e:
            tf.gather(tf.constant([1.0, 2.0]), tf.constant([5]), name="rows")
        lines.append(str(e.value))
    line = sys._getframe().f_lineno - 2
    assert all(f"test_wrong_uses.py:{line}]" in text and "'rows'" in text for text in lines)


def test_a_tensor_of_a_graph_is_refused() -> None:
    with tf.Graph().as_default():
        other = tf.constant(1.0)
    with pytest.raises(TypeError, match=r"Mul 'Mul': input 'Const:0' is a tensor of a graph and has no value"):
        tf.multiply(tf.constant(1.0), other)


def test_an_eager_tensor_is_refused_in_a_graph() -> None:
    value = tf.constant(1.0)
    with tf.Graph().as_default(), pytest.raises(RuntimeError, match=r"tf\.function"):
        tf.add(tf.placeholder(tf.float32), value)


def test_numpy_of_a_tensor_of_a_graph_is_an_error() -> None:
    with tf.Graph().as_default(), pytest.raises(AttributeError, match="numpy"):
        tf.constant(1.0).numpy()


def test_placeholders_are_refused() -> None:
    with pytest.raises(RuntimeError, match="not compatible with eager execution"):
        tf.placeholder(tf.float32)


def test_sessions_need_a_graph() -> None:
    with pytest.raises(RuntimeError, match=r"tf\.Session"):
        tf.Session()


def test_tf_gradients_point_to_tapes() -> None:
    with pytest.raises(RuntimeError, match=r"tf\.GradientTape"):
        tf.gradients(tf.constant(1.0), tf.constant(1.0))


def test_metrics_of_graphs_point_to_those_that_add_up() -> None:
    with pytest.raises(RuntimeError, match=r"tf\.contrib\.eager\.metrics"):
        tf.metrics.mean(tf.constant(1.0))


@pytest.mark.slow
def test_threads_compute_at_the_same_time() -> None:
    found: list[Any] = []

    def work(size: int) -> None:
        with eager_mode():
            for i in range(20):
                v = tf.Variable(np.ones([size, i + 1], np.float32))
                with tf.GradientTape() as tape:
                    y = tf.reduce_sum(v * v * 2.0)
                found.append(float(tf.reduce_max(tape.gradient(y, v))))

    threads = [threading.Thread(target=work, args=(size,)) for size in range(1, 5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [4] * 80


def test_eval_points_to_numpy() -> None:
    with pytest.raises(RuntimeError, match="numpy"):
        tf.constant(1).eval()


def test_a_device_that_is_not_there_is_the_users_error() -> None:
    with pytest.raises(tf.errors.InvalidArgumentError, match="accelerator 77"):
        tf.constant(1.0).gpu(77)
