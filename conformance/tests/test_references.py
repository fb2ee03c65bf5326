"""The reference device, judged like any other: what references compute and what they refuse."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest


@pytest.mark.slow
def test_references_refuse_what_ops_refuse(command: Any) -> None:
    status, output, _ = command("run", "--device=reference", "--suite=errors", "--share=commit/4", "--jobs=0")
    assert status == 0, output


@pytest.mark.slow
def test_reference_device_needs_no_plugin() -> None:
    """In a process of its own, with a worker: none of them has the metadata of a package that names the device."""
    command = [sys.executable, "-m", "timberframe_conformance.cli", "run", "--device=reference", "--op=Tanh"]
    done = subprocess.run([*command, "-k", "/17", "--jobs=1"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert " pass" in done.stdout


@pytest.mark.slow
def test_reference_device_passes_the_share_of_the_commit(command: Any) -> None:
    status, output, _ = command("run", "--device=reference", "--share=commit/24", "--jobs=0")
    assert status == 0, output
