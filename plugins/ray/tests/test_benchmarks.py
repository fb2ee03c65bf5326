"""The benchmarks without Ray run, and what they print is possible: quick sizes, of which no speed is asked."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"


def printed(command: str) -> list[dict[str, Any]]:
    """Returns the lines of a benchmark, run as its users run it."""
    name, *options = command.split()
    done = subprocess.run([sys.executable, BENCHMARKS / name, *options], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_pipelines_take_no_less_than_their_bound() -> None:
    lines = printed("pipelines.py --stages 2 --microbatches 2")
    assert [line["schedule"] for line in lines] == ["gpipe", "1f1b"]
    for line in lines:
        assert line["bound"] <= line["seconds"] < 10 * line["whole"]


@pytest.mark.parametrize("step", ["--forward 0.002", "--rows 10"])
def test_data_parallel_steps(step: str) -> None:
    alone, both = printed(f"scaling.py --workers 1 2 --steps 2 --layers 2 --bytes 80000 {step}")
    assert (alone["workers"], both["workers"]) == (1, 2)
    assert alone["efficiency"] == [1, 1]
    quickest, median = both["steps"]
    assert 0 < quickest <= median
    if "forward" in step:
        assert quickest >= 2 * 3 * 0.002


@pytest.mark.parametrize("way", ["memory", "sockets"])
def test_all_reduce(way: str) -> None:
    (line,) = printed(f"all_reduce.py --workers 2 --bytes 1000 {'--sockets' if way == 'sockets' else ''}")
    assert 0 < line[way]["min"] <= line[way]["median"]
