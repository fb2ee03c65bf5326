"""Benchmarks: what is measured, and how it is reported."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from timberframe_conformance.bench.sides import Measurement, installed
from timberframe_conformance.bench.soak import Memory, growth
from timberframe_conformance.bench.table import Figures, duration


def figures(**rest: object) -> Figures:
    made = Figures("/device:X:0", {}, 1, **rest)  # type: ignore[arg-type]  # fields of Figures by name
    made.copy_rate, made.multiply_add_rate = 1e9, 1e10
    return made


@pytest.mark.parametrize(
    ("seconds", "text"), [(2.0, "2 s"), (0.0123, "12.3 ms"), (3.3e-6, "3.3 us"), (1.65e-8, "16.5 ns")]
)
def test_duration_has_the_unit_that_reads_best(seconds: float, text: str) -> None:
    assert duration(seconds) == text


def test_roof_is_the_slower_of_arithmetic_and_memory() -> None:
    assert figures().roof(Measurement("a", "device", lambda: None, flops=1e10, nbytes=1.0)) == pytest.approx(1.0)
    assert figures().roof(Measurement("a", "device", lambda: None, flops=1.0, nbytes=2e9)) == pytest.approx(2.0)


def test_peers_that_cannot_be_measured_are_left_out_with_a_reason() -> None:
    present, absent = installed(["numpy", "fortran"])
    assert present == ["numpy"]
    assert "fortran" in absent[0]


@pytest.mark.slow
def test_bench_removes_variables_that_change_the_speed_of_libraries(plugin_path: Path, tmp_path: Path) -> None:
    report = tmp_path / "bench.json"
    command = [sys.executable, "-m", "timberframe_conformance.cli", "bench", "--device=reference", "-k", "matmul 64"]
    environment = {**os.environ, "OPENBLAS_CORETYPE": "Prescott"}
    done = subprocess.run([*command, f"--json={report}"], capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stderr
    data = json.loads(report.read_text())
    assert data["environment"]["cleared"]["OPENBLAS_CORETYPE"] == "Prescott"
    assert {m["side"] for m in data["measurements"]} == {"device", "numpy"}
    assert all(m["seconds"] > 0 for m in data["measurements"])
    assert "matmul 64" in done.stdout


def test_a_leak_over_training_steps_is_reported() -> None:
    first, leaked = Memory(100, 1 << 24, 2, 512), Memory(200, 1 << 24, 3, 576)
    assert growth([first, first]) is None
    assert growth([first, leaked]) == "live allocations rose from 2 (512 bytes) to 3 (576 bytes)"
    assert "resident memory rose" in str(growth([first, Memory(200, 1 << 25, 2, 512)]))
