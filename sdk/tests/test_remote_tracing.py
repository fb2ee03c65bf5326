"""Traces of runs in other processes: which tracks and nodes they have, on whose clock."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest

import timberframe as tf
from timberframe.python.client import timeline
from timberframe_sdk.remote.tracing import RecordedEvents, clock_offset, report

HOUR = 3600 * 10**9
TASK = "/job:worker/replica:0/task:{}/device:CPU:0"


def traced(url: str) -> tuple[Any, dict[str, list[Any]]]:
    """Returns the metadata of a run over two workers, and the events by their tracks."""
    with tf.Graph().as_default() as graph:
        x = tf.placeholder(tf.float32, [3], name="x")
        with tf.device("/job:worker/task:0"):
            y = tf.exp(x, name="y")
        with tf.device("/job:worker/task:1"):
            z = tf.square(y, name="z")
    metadata = tf.RunMetadata()
    with tf.Session(url, graph=graph, config=tf.SessionConfig(plugins=["cpu"])) as session:
        session.run(z, {x: [0, 1, 2]}, tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE), metadata)
    chrome = json.loads(timeline.Timeline(metadata.step_stats).generate_chrome_trace_format())["traceEvents"]
    names = {e["tid"]: e["args"]["name"] for e in chrome if e["ph"] == "M"}
    found: dict[str, list[Any]] = {}
    for event in chrome:
        if event["ph"] == "X":
            found.setdefault(names[event["tid"]], []).append(event)
    return metadata, found


def test_each_worker_has_its_nodes_and_clusters_on_the_track_of_its_device() -> None:
    metadata, tracks = traced("process:2")
    assert {e["name"] for e in tracks[TASK.format(0)]} == {"y", "cluster of 1 node"}
    assert {e["name"] for e in tracks[TASK.format(1)]} == {"z", "cluster of 1 node"}
    y, z = (next(e for e in tracks[TASK.format(i)] if e["name"] == name) for i, name in enumerate("yz"))
    assert y["cat"] == "Exp"
    assert y["args"]["bytes"] == 24
    assert 0 <= y["ts"] < y["ts"] + y["dur"] <= z["ts"]  # one machine has one clock
    cluster = next(e for e in tracks[TASK.format(0)] if e["cat"] == "cluster")
    assert cluster["args"]["nodes"] == ["y"]
    assert cluster["ts"] <= y["ts"] < y["ts"] + y["dur"] <= cluster["ts"] + cluster["dur"]
    assert "feed x:0" in {e["name"] for e in tracks[TASK.format(0) + "/memcpy"]}
    assert metadata.trace is metadata.step_stats


def test_events_of_workers_are_on_the_clock_of_the_client(monkeypatch: pytest.MonkeyPatch) -> None:
    now = time.perf_counter_ns
    monkeypatch.setattr(time, "perf_counter_ns", lambda: now() + HOUR)
    start = time.monotonic()
    _, tracks = traced("process:2")
    took = 1e6 * (time.monotonic() - start)
    for task in range(2):
        assert all(-took < e["ts"] < took for e in tracks[TASK.format(task)])


@pytest.mark.parametrize("shift", [HOUR, -HOUR])
def test_offset_of_another_clock_is_that_of_the_quickest_ping(shift: int) -> None:
    waits = iter([0.05, 0.02, 0, 0.03, 0.05, 0.05, 0.05, 0.05])

    def ask() -> int:
        found = time.perf_counter_ns() + shift
        time.sleep(next(waits))
        return found

    start = time.perf_counter_ns()
    assert abs(clock_offset(ask) - shift) <= time.perf_counter_ns() - start


def test_a_clock_that_cannot_be_told_from_this_one_has_no_offset() -> None:
    assert clock_offset(time.perf_counter_ns) == 0


def test_what_a_worker_has_recorded_is_reported_with_its_details() -> None:
    kept, shown = RecordedEvents(), RecordedEvents()
    kept.event("y", "Exp", HOUR + 5, HOUR + 7, "/device:CPU:0", bytes=8)
    plain = json.loads(json.dumps(kept.as_plain()))
    report(shown, plain, "/device:CPU:0", ["y"], HOUR)
    cluster, node = shown.as_plain()["events"]
    assert node == ["y", "Exp", 5, 7, "/device:CPU:0", {"bytes": 8}]
    assert cluster[:2] == ["cluster of 1 node", "cluster"]
    assert cluster[5] == {"nodes": ["y"]}
