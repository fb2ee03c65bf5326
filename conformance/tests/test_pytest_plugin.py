"""The cases of a device as tests of pytest: `pytest --timberframe-device=acme`."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest


def run(folder: Path, *options: str) -> tuple[int, str]:
    """Status and output of pytest in an empty folder."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *options]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


@pytest.mark.slow
def test_cases_of_a_device_are_tests(tmp_path: Path) -> None:
    status, output = run(
        tmp_path, "--timberframe-device=cpu", "--timberframe-suite=gradient", "--timberframe-op=Tanh",
        "--timberframe-level=training",
    )  # fmt: skip
    assert status == 0, output
    assert " passed" in output


@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "words"),
    [
        ("--timberframe-op=Tanh --timberframe-timeout=3", "--timberframe-op, --timberframe-timeout: no effect without"),
        ("--timberframe-device=cpu --timberframe-suite=forwrd", "suite forwrd is not known; suites are "),
        ("--timberframe-device=cpu --timberframe-op=Tahn", "Tahn"),
        ("--timberframe-device=cpu --timberframe-level=first", "invalid choice: 'first'"),
        ("--timberframe-device=cpu --timberframe-timeout=0", "'0' is given; a finite number above 0 is required"),
    ],
)
def test_option_that_would_change_nothing_is_a_wrong_call(tmp_path: Path, options: str, words: str) -> None:
    status, output = run(tmp_path, *options.split())
    assert status == pytest.ExitCode.USAGE_ERROR, output
    assert words in output
    assert "Traceback" not in output


@pytest.mark.slow
def test_profile_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    status, output = run(tmp_path, "--timberframe-device=cpu", "--timberframe-profile=absent.toml")
    assert status == pytest.ExitCode.INTERRUPTED
    assert "profile absent.toml: [Errno 2] No such file or directory" in output
