"""`conformance bench --growth`: exponents from medians, and the programs that they are measured with."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import timberframe as tf
from timberframe_conformance.bench import growth_programs
from timberframe_conformance.bench.growth import Curve

SIZES = {"nodes of a chain": 20, "nodes side by side": 120, "variables of Adam": 3, "branches in branches": 2,
         "loops in loops": 2, "shapes in turn": 4}  # fmt: skip


@pytest.mark.parametrize("name", growth_programs.PROGRAMS)
def test_each_program_measures_its_parts_at_five_sizes_or_more(name: str) -> None:
    found = growth_programs.measure(tf, name, SIZES[name], 2)
    assert len(growth_programs.PROGRAMS[name][1]) >= 5
    assert len(found) >= 2
    for seconds in found.values():
        assert [s > 0 for s in seconds] == [True, True]


@pytest.mark.parametrize("power", [1.0, 2.0])
def test_the_exponent_is_that_of_the_times(power: float) -> None:
    curve = Curve("p", "q", "device", {size: 3e-4 * size**power for size in (4, 8, 16, 32, 64)})
    assert curve.exponent == pytest.approx(power)


def test_the_command_measures_what_is_asked_for_and_refuses_what_it_does_not_read(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "timberframe_conformance.cli", "bench", "--growth", "-k", "shapes"]
    done = subprocess.run([*command, f"--json={tmp_path / 'g.json'}"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "second turn" in done.stdout
    assert '"exponent"' in (tmp_path / "g.json").read_text()
    refused = subprocess.run([*command, "--models"], capture_output=True, text=True, check=False)
    assert (refused.returncode, "--growth" in refused.stderr + refused.stdout) == (2, True)
