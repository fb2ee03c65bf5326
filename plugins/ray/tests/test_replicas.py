"""examples/replicas.py: a program of TensorFlow 1, a process for each task."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

pytest.importorskip("ray", reason="ray is not installed: it has no wheel for this Python or system")

from timberframe_ray import Cluster, engine

PROGRAM = Path(__file__).parents[3] / "examples" / "replicas.py"
SECONDS = 240
_PRINTED = re.compile(r"worker \d: (\d+) runs, loss ([\d.]+) at first, ([\d.]+) at last")

Start = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def start(cluster: Cluster, tmp_path: Path) -> Iterator[Start]:
    """Starts the process of a task, which ends with the test."""
    host = tmp_path.name  # addresses are names: each test has a cluster of its own
    hosts = [f"--ps_hosts={host}:1", f"--worker_hosts={host}:2,{host}:3"]
    command = [sys.executable, "-m", "timberframe.compat", "run", str(PROGRAM), *hosts, f"--folder={tmp_path}"]
    environment = {**os.environ, "RAY_ADDRESS": engine.gcs_address(), "PYTHONFAULTHANDLER": "1"}
    started: list[subprocess.Popen[str]] = []

    def begin(job: str, task: int, *flags: str) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [*command, *flags, f"--job_name={job}", f"--task_index={task}"],
            env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )  # fmt: skip
        started.append(process)
        return process

    yield begin
    for process in started:
        process.kill()
        process.communicate()


def trained(process: subprocess.Popen[str]) -> tuple[int, float]:
    """Returns the runs of a worker and its last loss; where it does not end in time, the test
    fails with all its threads.
    """
    try:
        printed = process.communicate(timeout=SECONDS)[0]
    except subprocess.TimeoutExpired:
        with suppress(ProcessLookupError):
            os.kill(process.pid, signal.SIGABRT)
        pytest.fail(f"a worker did not end within {SECONDS} s:\n{process.communicate()[0]}")
    found = _PRINTED.search(printed)
    assert found is not None, printed
    return int(found[1]), float(found[3])


@pytest.mark.slow
@pytest.mark.parametrize("flags", [[], ["--sync"]], ids=["asynchronous", "synchronous"])
def test_processes_train_one_model(start: Start, flags: list[str]) -> None:
    start("ps", 0, *flags)
    workers = [start("worker", task, *flags) for task in range(2)]
    runs, losses = zip(*[trained(worker) for worker in workers], strict=True)
    assert runs == (40, 40) if flags else sum(runs) >= 40
    assert max(losses) < 1


@pytest.mark.slow
def test_a_worker_that_begins_when_the_chief_has_ended_ends_as_well(start: Start) -> None:
    start("ps", 0)
    assert trained(start("worker", 0))[0] == 40
    runs, loss = trained(start("worker", 1))
    assert runs == 1
    assert loss < 1
