"""Copies between devices beside the work of both."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import timberframe as tf
from timberframe_core.graph.apply import apply_op
from timberframe_core.ops.definition.opdef import define_op
from timberframe_sdk.testing.loaded import temporary_ops

gate = threading.Event()


def _open(attrs: Any, x: np.ndarray) -> np.ndarray:
    gate.set()
    return x


@pytest.fixture(autouse=True, scope="module")
def ops() -> Iterator[None]:
    with temporary_ops():
        define_op(
            "Test>Open",
            inputs=["x: T"],
            outputs=["y: T"],
            attrs=["T: type"],
            doc="x; opens the gate that another device waits for.",
            shape=lambda c: [c.shapes[0]],
            reference=_open,
        )
        yield


def test_copy_is_started_before_work_that_does_not_need_it() -> None:
    with tf.Graph().as_default() as graph, tf.Session(graph=graph) as session:
        x = tf.placeholder(tf.float32, [3])
        with tf.device("/device:ASYNC:0"):
            crossing = tf.add(x, x, name="crossing")
            rest = tf.multiply(x, x, name="rest")
        with tf.device("/device:ASYNC:1"):
            end = tf.negative(crossing, name="end")
        device: Any = next(d for d in session.list_devices() if d.spec == "/device:ASYNC:0")
        device.journal.clear()
        found = session.run([end, rest], {x: [1, 2, 3]})
        assert [f.tolist() for f in found] == [[-2, -4, -6], [1, 4, 9]]
        assert device.journal == ["copy in", "run crossing", "copy out", "run rest", "copy out"]


def test_stage_that_waits_for_a_copy_holds_up_nobody_else() -> None:
    config = tf.SessionConfig(device_count={"ASYNC": 3})
    with tf.Graph().as_default() as graph, tf.Session(graph=graph, config=config) as session:
        x = tf.placeholder(tf.float32, [3])
        with tf.device("/device:ASYNC:0"):
            late = x + 1.0
        with tf.device("/device:ASYNC:1"):
            early, waits = x * 2.0, late * 3.0
        with tf.device("/device:ASYNC:2"):
            opens = apply_op("Test>Open", [early])
        device: Any = next(d for d in session.list_devices() if d.spec == "/device:ASYNC:0")
        gate.clear()
        device.queue.enqueue(lambda: gate.wait(60))
        found = session.run([waits, opens], {x: [1, 2, 3]}, tf.RunOptions(timeout_in_ms=30_000))
        assert [f.tolist() for f in found] == [[6, 9, 12], [2, 4, 6]]


def test_trace_shows_a_copy_from_its_start_to_its_arrival() -> None:
    with tf.Graph().as_default() as graph, tf.Session(graph=graph) as session:
        x = tf.placeholder(tf.float32, [3])
        with tf.device("/device:ASYNC:0"):
            made = tf.add(x, x, name="made")
        with tf.device("/device:ASYNC:1"):
            aside = tf.multiply(x, x, name="aside")
            used = tf.negative(made, name="used")
        metadata = tf.RunMetadata()
        session.run([used, aside], {x: [1, 2, 3]}, tf.RunOptions(trace=True), metadata)
        assert metadata.trace is not None
        events = {e["name"]: e for e in metadata.trace["traceEvents"] if e["ph"] == "X"}
        copy = events["_Recv made:0"]
        assert copy["args"] == {"source": "/device:ASYNC:0", "bytes": 12}
        clusters = [e for e in metadata.trace["traceEvents"] if e.get("cat") == "cluster"]
        uses = next(e for e in clusters if e["args"]["nodes"] == ["used"])
        assert copy["ts"] + copy["dur"] <= uses["ts"] + 1


def test_loop_on_the_only_thread_runs_the_stages_of_its_body() -> None:
    config = tf.SessionConfig(inter_op_parallelism_threads=1)
    with tf.Graph().as_default() as graph, tf.Session(graph=graph, config=config) as session:
        variable = tf.Variable([1.0, 2.0, 3.0])
        with tf.device("/device:ASYNC:0"):
            doubled = variable * 2.0  # waits for its copy, as the loop begins: the loop is given to the thread

        def body(i: Any, a: Any) -> list[Any]:
            after = i + 1  # would be given to a thread as well, since the stage below is ready, too
            with tf.device("/device:ASYNC:0"):
                return [after, a * 2.0]

        looped = tf.while_loop(lambda i, _: i < 3, body, [tf.constant(0), tf.constant(1.0)])
        session.run(variable.initializer)
        found = session.run([doubled, looped[1]], options=tf.RunOptions(timeout_in_ms=20_000))
    assert [f.tolist() for f in found] == [[2, 4, 6], 8]
