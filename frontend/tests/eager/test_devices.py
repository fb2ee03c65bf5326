"""Eager execution on devices with a memory of their own, which work asynchronously."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

import timberframe as tf
from timberframe.eager.execution.graph import EagerGraph
from timberframe_sdk.testing import asynchronous_device
from timberframe_sdk.testing.loaded import loaded_plugin

FIRST, SECOND = "/device:ASYNC:0", "/device:ASYNC:1"


@pytest.fixture(autouse=True)
def accelerators() -> Iterator[None]:
    with loaded_plugin("async", asynchronous_device):
        graph = EagerGraph()
        with graph.as_default():
            host = graph.host
            if host is None:
                pytest.skip("no device works in the host's memory")
            tf.constant(1.0)
            yield
        graph.session.close()


def test_operations_run_on_the_requested_device() -> None:
    x = tf.constant([1.0, 2.0]).cpu()
    with tf.device(FIRST):
        y = x * 2.0 + x
    assert y.device.endswith(FIRST)
    assert y.numpy().tolist() == [3, 6]


def test_inputs_of_other_devices_are_copied() -> None:
    with tf.device(FIRST):
        a = tf.constant([1.0, 2.0])
    with tf.device(SECOND):
        b = tf.constant([10.0, 20.0])
        c = a + b
    assert [t.device[-len(FIRST) :] for t in (a, b, c)] == [FIRST, SECOND, SECOND]
    assert c.numpy().tolist() == [11, 22]


def test_gpu_and_cpu_copy() -> None:
    x = tf.constant([1.0, 2.0]).cpu()
    there = x.gpu()
    assert there.device in tf.contrib.eager.list_devices()
    assert there.device != x.device
    assert there.cpu().device == x.device
    assert there.cpu().numpy().tolist() == [1, 2]


def test_gradients_cross_devices() -> None:
    x = tf.constant([1.0, 2.0])
    with tf.GradientTape() as tape:
        tape.watch(x)
        with tf.device(FIRST):
            y = x * x
        with tf.device(SECOND):
            z = tf.reduce_sum(y * x)
        w = z.cpu() * 2.0
    assert tape.gradient(w, x).numpy().tolist() == [6, 24]


def test_a_variable_lives_on_its_device() -> None:
    with tf.device(SECOND):
        v = tf.Variable([1.0, 2.0])
    v.assign_add([1.0, 1.0])
    before = v.read_value()
    v.assign_add([1.0, 1.0])
    assert v.device.endswith(SECOND)
    assert (before.numpy().tolist(), v.numpy().tolist()) == ([2, 3], [3, 4])


def test_functions_run_on_devices() -> None:
    with tf.device(FIRST):
        v = tf.Variable([1.0, 2.0])

    @tf.function
    def f(x: tf.Tensor) -> tf.Tensor:
        with tf.device(FIRST):
            y = x * v
        with tf.device(SECOND):
            return tf.exp(y)

    x = tf.constant([0.5, 1.0])
    with tf.GradientTape() as tape:
        y = f(x)
    np.testing.assert_allclose(y.numpy(), np.exp([0.5, 2.0]), rtol=1e-5)
    np.testing.assert_allclose(tape.gradient(y, v).numpy(), np.exp([0.5, 2.0]) * [0.5, 1.0], rtol=1e-5)


def test_a_function_runs_where_it_is_called() -> None:
    f = tf.function(lambda x: x * 2.0)
    x = tf.constant([1.0]).cpu()
    with tf.device(FIRST):
        there = f(x)
    assert there.device.endswith(FIRST)
    with tf.device(x.device):
        assert f(x).device == x.device


def test_an_error_of_a_device_is_raised_by_its_call() -> None:
    with tf.device(FIRST), pytest.raises(tf.errors.InvalidArgumentError, match=r"ASYNC:0, .*test_devices.py:\d+\]"):
        tf.gather(tf.constant([1.0, 2.0]), tf.constant([7]))


def test_a_device_that_is_missing_is_an_error_without_soft_placement() -> None:
    with (
        tf.device("/device:ACME:0"),
        pytest.raises(tf.errors.InvalidArgumentError, match="allow_soft_placement is off"),
    ):
        tf.constant([1.0])


def test_a_device_that_is_missing_gives_another_with_soft_placement() -> None:
    graph = EagerGraph(tf.ConfigProto(allow_soft_placement=True))
    with graph.as_default(), tf.device("/device:ACME:0"):
        assert (tf.constant([1.0]) + 1.0).numpy() == 2
    graph.session.close()
