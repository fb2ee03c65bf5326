"""Traces: when a device did its work, by which kernel, and how much it was."""

from __future__ import annotations

import time
import types
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import timberframe as tf
from timberframe_sdk import KernelDef, hookimpl
from timberframe_sdk.numpy_device import NumpyDevice
from timberframe_sdk.testing.asynchronous_device import Queue, Task
from timberframe_sdk.testing.loaded import loaded_plugin

SECONDS = 0.01


class SlowDevice(NumpyDevice):
    """Takes a while for each launch, after the launch has returned."""

    type, priority, asynchronous, host_memory = "SLOW", 1, True, False

    def __init__(self) -> None:
        super().__init__()
        self.queue = Queue()

    def copy_in(self, x: np.ndarray) -> np.ndarray:
        return np.array(x, order="C")

    def copy_out(self, a: np.ndarray) -> np.ndarray:
        self.queue.wait()
        return a.copy()

    def start_copy_out(self, a: np.ndarray) -> Any:
        return Task(self.queue, a.copy)

    def marker(self) -> Any:
        return Task(self.queue, lambda: None)

    def synchronize(self) -> None:
        self.queue.wait()


class TimedDevice(SlowDevice):
    """Has a clock of its own."""

    type = "TIMED"

    def timed(self, launch: Any) -> tuple[Any, int, int]:
        return launch(), 1_000, 43_000


def multiply(node: Any) -> Any:
    def launch(a: np.ndarray, b: np.ndarray, out: np.ndarray) -> None:
        def work() -> None:
            time.sleep(SECONDS)
            np.matmul(a, b, out=out)

        node.device.queue.enqueue(work)

    return launch


@pytest.fixture(scope="module", autouse=True)
def devices() -> Iterator[None]:
    plugin = types.SimpleNamespace(
        timberframe_devices=hookimpl(lambda config: [SlowDevice(), TimedDevice()]),
        timberframe_kernels=hookimpl(lambda: [KernelDef("MatMul", d, multiply) for d in ("SLOW", "TIMED")]),
    )
    with loaded_plugin("slow", plugin):
        yield


def event_of_product(device: str, name: str = "product") -> dict[str, Any]:
    """Returns an event in the trace of a product of 2x3 and 3x4: that of the product itself, if no other is named."""
    with tf.Graph().as_default(), tf.device(device), tf.Session() as session:
        a, b = tf.placeholder(tf.float32, [2, 3], name="a"), tf.placeholder(tf.float32, [3, 4])
        metadata = tf.RunMetadata()
        feeds = {a: np.ones((2, 3)), b: np.ones((3, 4))}
        session.run(tf.matmul(a, b, name="product"), feeds, tf.RunOptions(trace=True), metadata)
    assert metadata.trace is not None
    return next(e for e in metadata.trace["traceEvents"] if e["name"] == name)


def test_the_work_of_an_asynchronous_device_counts_not_only_its_launch() -> None:
    assert event_of_product("/device:SLOW:0")["dur"] >= SECONDS * 1e6


def test_a_device_with_a_clock_gives_its_own_time() -> None:
    assert event_of_product("/device:TIMED:0")["dur"] == 42


@pytest.mark.parametrize("device", ["/device:SLOW:0", "/device:CPU:0"])
def test_an_event_has_the_kernel_and_the_work(device: str) -> None:
    details = event_of_product(device)["args"]
    assert details["op"] == "MatMul"
    assert details["bytes"] == 4 * (2 * 3 + 3 * 4 + 2 * 4)
    assert details["flops"] == 2 * 2 * 3 * 4


def test_copies_from_and_to_the_host_are_events_with_their_bytes() -> None:
    assert event_of_product("/device:SLOW:0", "feed a:0")["args"] == {"source": "host", "bytes": 24}
    fetch = event_of_product("/device:SLOW:0", "fetch product:0")
    assert fetch["args"] == {"target": "host", "bytes": 32}
    assert fetch["cat"] == "copy"


def test_the_host_borrows_feeds_without_a_copy() -> None:
    with pytest.raises(StopIteration):
        event_of_product("/device:CPU:0", "feed a:0")


def test_an_event_names_the_kernels_builder() -> None:
    assert event_of_product("/device:SLOW:0")["args"]["kernel"].endswith("test_traces.multiply")


def test_an_elementwise_op_counts_one_operation_for_each_element() -> None:
    with tf.Graph().as_default(), tf.device("/device:CPU:0"), tf.Session() as session:
        x = tf.placeholder(tf.float32, [5, 7])
        metadata = tf.RunMetadata()
        session.run(tf.tanh(x, name="t"), {x: np.ones((5, 7))}, tf.RunOptions(trace=True), metadata)
    assert metadata.trace is not None
    assert next(e for e in metadata.trace["traceEvents"] if e["name"] == "t")["args"]["flops"] == 35


def test_a_kernel_that_covers_several_nodes_counts_the_operations_of_all() -> None:
    with tf.Graph().as_default(), tf.device("/device:CPU:0"), tf.Session() as session:
        x = tf.placeholder(tf.float32, [1, 4, 4, 8])
        product = tf.nn.conv2d(x, np.ones((1, 1, 8, 16), np.float32), [1, 1, 1, 1], "SAME")
        y = tf.nn.relu(tf.nn.bias_add(product, np.ones(16, np.float32)), name="y")
        metadata = tf.RunMetadata()
        session.run(y, {x: np.ones((1, 4, 4, 8))}, tf.RunOptions(trace=True), metadata)
    assert metadata.trace is not None
    details = next(e for e in metadata.trace["traceEvents"] if e["name"] == "y")["args"]
    assert details["op"] == "CPU>Conv2DBiasAddRelu"
    assert details["flops"] == 16 * 16 * (2 * 8 + 1)  # products and sums of the convolution, and a Relu
