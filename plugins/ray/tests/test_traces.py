"""A run over workers in one timeline: the nodes of each under its own device, on the client's clock."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("ray", reason="ray is not installed: it has no wheel for this Python or system")

import timberframe as tf
from timberframe.python.client import timeline
from timberframe_ray import Cluster

FIRST, SECOND = (f"/job:worker/replica:0/task:{task}/device:CPU:0" for task in range(2))
SERVER = "/job:ps/replica:0/task:0/device:CPU:0"
HOUR = 3600 * 10**9
FULL = tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE)


def traced(cluster: Cluster) -> tuple[tf.RunMetadata, dict[str, dict[str, Any]]]:
    """Returns the metadata of a step over both workers and the server, and its events by track and name."""
    x = tf.placeholder(tf.float32, [2], name="x")
    with tf.device("/job:ps/task:0"):
        total = tf.get_variable("total", initializer=tf.constant(0.0))
    with tf.device("/job:worker/task:0"):
        y = tf.exp(x, name="y")
    with tf.device("/job:worker/task:1"):
        z = tf.reduce_sum(y, name="z")
    with tf.device("/job:ps/task:0"):
        add = total.assign_add(z, name="add")
    metadata = tf.RunMetadata()
    with tf.Session(cluster.target, config=tf.SessionConfig(plugins=["cpu"])) as session:
        session.run(total.initializer)
        np.testing.assert_allclose(session.run(add, {x: [0.0, 1.0]}), 1 + np.e, rtol=1e-6)
        session.run(add, {x: [0.0, 1.0]}, FULL, metadata)
    tf.Session.reset(cluster.target)
    events = json.loads(timeline.Timeline(metadata.step_stats).generate_chrome_trace_format())["traceEvents"]
    names = {e["tid"]: e["args"]["name"] for e in events if e["ph"] == "M"}
    tracks: dict[str, dict[str, Any]] = {}
    for event in events:
        if event["ph"] == "X":
            tracks.setdefault(names[event["tid"]], {})[event["name"]] = event
    return metadata, tracks


def test_each_worker_has_its_nodes_under_its_device(cluster: Cluster, tmp_path: Path) -> None:
    metadata, tracks = traced(cluster)
    y, z = tracks[FIRST]["y"], tracks[SECOND]["z"]
    assert (y["cat"], z["cat"]) == ("Exp", "Sum")
    assert any(e["cat"] not in ("cluster", "host") for e in tracks[SERVER].values())
    assert 0 <= y["ts"] < y["ts"] + y["dur"] <= z["ts"]  # one machine has one clock
    assert all(z["ts"] + z["dur"] <= e["ts"] + e["dur"] for e in tracks[SERVER].values())
    around = tracks[FIRST]["cluster of 1 node"]
    assert around["ts"] <= y["ts"] < y["ts"] + y["dur"] <= around["ts"] + around["dur"]
    metadata.save_trace(tmp_path / "trace.html")
    page = (tmp_path / "trace.html").read_text()
    assert all(track in page for track in (FIRST, SECOND, SERVER))


def test_events_of_workers_are_on_the_clock_of_the_client(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    now = time.perf_counter_ns
    monkeypatch.setattr(time, "perf_counter_ns", lambda: now() - HOUR)
    start = time.monotonic()
    _, tracks = traced(cluster)
    took = 1e6 * (time.monotonic() - start)
    for track in (FIRST, SECOND, SERVER):
        assert all(-took < e["ts"] < took for e in tracks[track].values())
