"""Positions of replicas beside the chief's checkpoints: who is waited for, and what is removed with a checkpoint.

Trainings that go on with them are in plugins/ray/tests.
"""

from __future__ import annotations

import threading
import time
from pathlib import Path

import pytest

import timberframe as tf
from timberframe.train import replica_positions
from timberframe.train.replica_positions import wait_for_replicas


def test_a_checkpoint_waits_for_the_replicas_that_the_one_before_it_has(tmp_path: Path) -> None:
    (tmp_path / "m-0.positions-worker-1").touch()
    timer = threading.Timer(0.3, (tmp_path / "m-2.positions-worker-1").touch)
    timer.start()
    wait_for_replicas(str(tmp_path / "m-0"), str(tmp_path / "m-2"))
    assert (tmp_path / "m-2.positions-worker-1").exists()


def test_nobody_is_waited_for_where_no_replica_has_positions(tmp_path: Path) -> None:
    (tmp_path / "m-0.positions").touch()
    (tmp_path / "m-01.positions-worker-1").touch()
    start = time.monotonic()
    wait_for_replicas(str(tmp_path / "m-0"), str(tmp_path / "m-2"))
    assert time.monotonic() - start < 1


def test_a_replica_that_has_ended_is_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replica_positions, "WAIT_SECONDS", 0.2)
    (tmp_path / "m-0.positions-worker-1").touch()
    start = time.monotonic()
    wait_for_replicas(str(tmp_path / "m-0"), str(tmp_path / "m-2"))
    assert 0.2 <= time.monotonic() - start < 5


def test_a_checkpoint_is_removed_with_the_positions_of_all(tmp_path: Path) -> None:
    for name in ("m-2.positions", "m-2.positions-worker-1", "m-4.positions-worker-1"):
        (tmp_path / name).touch()
    tf.train.remove_checkpoint(str(tmp_path / "m-2"))
    assert [p.name for p in tmp_path.iterdir()] == ["m-4.positions-worker-1"]
