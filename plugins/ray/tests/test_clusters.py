"""Clusters: what is refused when one is made, as it would change nothing."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

pytest.importorskip("ray", reason="ray is not installed: it has no wheel for this Python or system")

import timberframe as tf
import timberframe_ray as tfr
from timberframe_ray.__main__ import main


@pytest.mark.parametrize(("ps", "workers"), [(-1, 1), (0, 0), (1, -2)])
def test_numbers_of_tasks_that_make_no_cluster_are_refused(ps: int, workers: int) -> None:
    with pytest.raises(tf.errors.InvalidArgumentError, match=f"local_cluster: ps is {ps}, workers is {workers}; "):
        tfr.local_cluster(ps, workers)


@pytest.mark.usefixtures("cluster")
def test_settings_of_the_start_are_refused_where_ray_was_joined(tmp_path: Path) -> None:
    with pytest.raises(tf.errors.InvalidArgumentError, match="this process has joined the Ray at "):
        tfr.local_cluster(folder=str(tmp_path))
    with pytest.raises(tf.errors.InvalidArgumentError, match="object_store_bytes is 100, and this process has joined"):
        tfr.local_cluster(object_store_bytes=100)


def test_a_cluster_that_runs_with_other_tasks_is_refused(cluster: tfr.Cluster) -> None:
    running = "it runs with 1 task of job 'ps' and 2 tasks of job 'worker', and 2 tasks of job 'worker' are asked for"
    with pytest.raises(tf.errors.AlreadyExistsError, match=running):
        tfr.Cluster(cluster.name, {"worker": range(2)})


def test_a_cluster_that_runs_with_these_tasks_is_found(cluster: tfr.Cluster) -> None:
    found = tfr.Cluster(cluster.name, cluster.jobs)
    assert found.process("worker", 1) == cluster.process("worker", 1)


@pytest.mark.parametrize("option", ["--ps", "--workers", "--cpus", "--object-store"])
def test_numbers_below_0_are_a_wrong_call(option: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["up", f"{option}=-1"])
    assert f"{option}: '-1' is given; a whole number of at least 0 is required" in capsys.readouterr().err


@pytest.mark.parametrize("mode", [0o777, 0o720])
def test_a_folder_that_others_may_write_to_is_refused(
    tmp_path: Path, mode: int, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "ray"
    folder.mkdir()
    (folder / "head.pid").write_text(str(os.getpid()))
    folder.chmod(mode)
    for command in ("status", "down", "up"):
        assert main([command, f"--folder={folder}"]) == 1
        assert "that nobody else can write to is required" in capsys.readouterr().err


def test_a_link_to_a_folder_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "real").mkdir(mode=0o700)
    (tmp_path / "ray").symlink_to(tmp_path / "real")
    assert main(["down", f"--folder={tmp_path / 'ray'}"]) == 1
    assert "that nobody else can write to is required" in capsys.readouterr().err
