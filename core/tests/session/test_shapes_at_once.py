"""Runs of one graph whose feeds have other shapes, and need other stages, than those of runs that are under way."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np

import timberframe as tf
from timberframe_core.plugin.contracts import RunContext
from timberframe_sdk.testing import asynchronous_device
from timberframe_sdk.testing.loaded import loaded_plugin


def changing_loop(x: Any) -> Any:
    """Returns a loop that a kernel runs for three elements and the executor for others; it
    gives the first three, plus 3.
    """
    shapes = [tf.TensorShape([]), tf.TensorShape([None])]
    return tf.while_loop(lambda i, _: i < 3, lambda i, y: (i + 1, y[:3] + 1.0), [tf.constant(0), x], shapes)[1]


def test_run_under_way_keeps_its_stages() -> None:
    begun, go_on = threading.Event(), threading.Event()

    def wait(x: np.ndarray) -> np.ndarray:
        if len(x) == 3:
            begun.set()
            assert go_on.wait(60)
        return x[:3]

    with tf.Graph().as_default() as graph, tf.Session(graph=graph) as session:
        x = tf.placeholder(tf.float32, [None])
        waited = tf.py_func(wait, [x], tf.float32)
        waited.set_shape([3])
        y = tf.py_func(np.copy, [waited * 2.0], tf.float32) * changing_loop(x)
        found: list[Any] = []
        thread = threading.Thread(target=lambda: found.append(session.run(y, {x: np.ones(3)})))
        thread.start()
        assert begun.wait(60)
        np.testing.assert_array_equal(session.run(y, {x: np.ones(5)}), [8, 8, 8])
        go_on.set()
        thread.join()
    np.testing.assert_array_equal(found, [[8, 8, 8]])


def test_first_run_that_needs_the_executor_beside_an_asynchronous_device() -> None:
    """The device is there only; the run finds out while it binds that what a loop runs may use it."""
    with (
        loaded_plugin("asynchronous", asynchronous_device),
        tf.Graph().as_default() as graph,
        tf.Session(graph=graph, config=tf.SessionConfig(plugins=["cpu", "asynchronous"])) as session,
    ):
        x = tf.placeholder(tf.float32, [None])
        with tf.device("/CPU:0"):
            y = changing_loop(x)
        runner = session._runner(y, {x: None})
        for size in (5, 3, 5):
            ((array, _),) = runner.run_located(runner.located([np.ones(size, np.float32)]), RunContext())
            np.testing.assert_array_equal(array, [4, 4, 4])
