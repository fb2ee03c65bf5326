"""A few of the kills of `make full`: one of each kind."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("ray", reason="ray is not installed: it has no wheel for this Python or system")

SECONDS = 500


@pytest.mark.slow
def test_a_training_goes_on_with_equal_bits_after_kills_of_tasks_a_client_and_a_node() -> None:
    command = [sys.executable, str(Path(__file__).parent / "kills.py"), "--kills", "5"]
    found = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS)
    assert found.returncode == 0, found.stdout + found.stderr
    assert "2 -> 1 -> 2 processes" in found.stdout
    assert "5 kills: the same losses each time, and nothing is left" in found.stdout
