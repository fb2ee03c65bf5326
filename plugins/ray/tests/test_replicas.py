"""examples/replicas.py: a program of TensorFlow 1, a process for each task."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("ray", reason="ray is not installed: it has no wheel for this Python or system")

from timberframe_ray import Cluster, engine

PROGRAM = Path(__file__).parents[3] / "examples" / "replicas.py"


@pytest.mark.slow
@pytest.mark.skipif("CI" in os.environ, reason="in one of several runs of all tests a worker did not end within 240 s")
@pytest.mark.parametrize("mode", [[], ["--sync"]], ids=["asynchronous", "synchronous"])
def test_processes_train_one_model(cluster: Cluster, mode: list[str], tmp_path: Path) -> None:
    hosts = [f"--ps_hosts=replicas{len(mode)}:1", f"--worker_hosts=replicas{len(mode)}:2,replicas{len(mode)}:3"]
    command = [sys.executable, "-m", "timberframe.compat", "run", str(PROGRAM), *hosts, *mode, f"--folder={tmp_path}"]
    environment = {**os.environ, "RAY_ADDRESS": engine.gcs_address()}

    def started(job: str, task: int) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [*command, f"--job_name={job}", f"--task_index={task}"],
            env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )  # fmt: skip

    server, *workers = started("ps", 0), started("worker", 0), started("worker", 1)
    try:
        printed = [worker.communicate(timeout=240)[0] for worker in workers]
    finally:
        for process in (server, *workers):
            process.kill()
            process.communicate()
    found = [re.search(r"worker \d: (\d+) runs, loss ([\d.]+) at first, ([\d.]+) at last", text) for text in printed]
    assert all(found), printed
    runs = [int(match[1]) for match in found if match]
    assert runs == [40, 40] if mode else sum(runs) >= 40
    assert all(float(match[3]) < 1 for match in found if match)
