"""Host ops between the clusters of three unlike devices: C programs, NumPy kernels, and one that only enqueues."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import timberframe as tf
from timberframe_core.graph.apply import apply_op
from timberframe_core.ops.definition.opdef import define_op
from timberframe_sdk import HostCall, host_op
from timberframe_sdk.testing.loaded import temporary_ops

DEVICES = ("/device:CPU:0", "/device:NUMPY:0", "/device:ASYNC:0")
WITH_GATHER = ("/device:CPU:0", "/device:ASYNC:0")
Record = Callable[..., list[Any]]


@pytest.fixture(params=DEVICES)
def session(request: pytest.FixtureRequest) -> Iterator[tf.Session]:
    """A session whose graph is on one device."""
    with tf.Graph().as_default() as graph, tf.device(request.param), tf.Session(graph=graph) as session:
        yield session


@pytest.fixture
def record() -> Iterator[Record]:
    """Defines Acme>Record, which gives its input and keeps what it was handed."""
    with temporary_ops():
        define_op(
            "Acme>Record", inputs=["x: float"], outputs=["y: float"], doc="x.", shape=lambda c: [c.shapes[0]],
            on_host=True, stateful=True,
        )  # fmt: skip

        def register(**settings: Any) -> list[Any]:
            found: list[Any] = []

            def run(call: HostCall) -> Any:
                found.append(call.inputs[0])
                return call.inputs

            host_op("Acme>Record", **settings)(run)
            return found

        yield register


def fed() -> Any:
    return tf.placeholder(tf.float32, [2], name="x")


X = {"x:0": np.array([1.0, 2.0], np.float32)}


def test_inputs_reach_the_host_and_outputs_the_device(session: tf.Session, record: Record) -> None:
    found = record()
    y = apply_op("Acme>Record", [fed() * 2.0]) + 1.0
    assert session.run(y, X).tolist() == [3.0, 5.0]
    assert [type(x) for x in found] == [np.ndarray]


def test_located_input_stays_on_its_device(session: tf.Session, record: Record) -> None:
    found = record(located=["x"])
    doubled = fed() * 2.0
    y = apply_op("Acme>Record", [doubled]) + 1.0
    assert session.run(y, X).tolist() == [3.0, 5.0]
    assert [device.spec for _, device in found] == [doubled.device]


def test_host_op_runs_in_each_iteration_of_a_loop(session: tf.Session, record: Record) -> None:
    found = record()
    y = tf.while_loop(
        lambda i, _: i < 3, lambda i, x: (i + 1, apply_op("Acme>Record", [x * 2.0])), [0, fed()]
    )[1]  # fmt: skip
    assert session.run(y, X).tolist() == [8.0, 16.0]
    assert len(found) == 3


@pytest.mark.parametrize("session", WITH_GATHER, indirect=True)
def test_nothing_is_handed_to_a_host_op_that_an_error_has_spoilt(session: tf.Session, record: Record) -> None:
    found = record(located=["x"])
    index = tf.placeholder(tf.int32, [2], name="index")
    y = apply_op("Acme>Record", [tf.gather(fed(), index)])
    with pytest.raises(tf.errors.InvalidArgumentError):
        session.run(y, {**X, "index:0": [0, 7]})
    assert found == []


@pytest.mark.parametrize("session", WITH_GATHER, indirect=True)
def test_failed_run_adds_nothing_to_a_queue(session: tf.Session) -> None:
    queue = tf.FIFOQueue(4, [tf.float32], shapes=[[2]])
    index = tf.placeholder(tf.int32, [2], name="index")
    put, size = queue.enqueue(tf.gather(fed(), index)), queue.size()
    session.run(put, {**X, "index:0": [0, 1]})
    with pytest.raises(tf.errors.InvalidArgumentError):
        session.run(put, {**X, "index:0": [0, 7]})
    assert session.run(size) == 1


def test_queue_carries_what_a_device_made(session: tf.Session) -> None:
    queue = tf.FIFOQueue(4, [tf.float32], shapes=[[2]])
    put, total = queue.enqueue(fed() * 3.0), tf.reduce_sum(queue.dequeue_many(2), axis=1)
    session.run(put, X)
    session.run(put, X)
    assert session.run(total).tolist() == [9.0, 9.0]


def test_variable_is_updated_by_what_a_queue_gives(session: tf.Session) -> None:
    queue = tf.FIFOQueue(4, [tf.float32], shapes=[[2]])
    v = tf.Variable(np.zeros(2, np.float32))
    put, add = queue.enqueue(fed()), v.assign_add(queue.dequeue())
    session.run([v.initializer, put], X)
    session.run(add)
    assert session.run(v).tolist() == [1.0, 2.0]
