"""What a run asks of CUDA's driver is what docs/performance.md says."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = Path(__file__).with_name("emulator") / "driver_calls.py"
PAGE = Path(__file__).parents[3] / "docs" / "performance.md"


@pytest.fixture
def streams() -> str:
    """When the work is done makes no difference to what is asked for."""
    return "at once"


@pytest.mark.slow
def test_the_documented_counts_are_those_of_a_run(emulated_environment: dict[str, str]) -> None:
    """Among them: a network with products, and its training step, are one graph each."""
    command = [sys.executable, str(PROGRAM)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=emulated_environment)
    assert done.returncode == 0, done.stderr
    assert done.stdout in PAGE.read_text()
