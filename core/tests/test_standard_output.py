"""Commands whose reader leaves before they have printed all, as `| head` does."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from timberframe_core.standard_output import READER_LEFT, run_command

COMMANDS = [pytest.param(("kernels",), marks=pytest.mark.cpu), ("ops",), ("ops", "Add"), ("devices", "--json")]


def without_reader(*command: str, buffered: bool) -> subprocess.CompletedProcess[bytes]:
    """Runs a Python module whose standard output is a pipe that nobody reads."""
    reading, writing = os.pipe()
    os.close(reading)
    environment = {**os.environ, "PYTHONUNBUFFERED": "" if buffered else "1"}
    try:
        return subprocess.run(
            [sys.executable, "-m", *command], stdout=writing, stderr=subprocess.PIPE, env=environment, check=False,
            timeout=60,
        )  # fmt: skip
    finally:
        os.close(writing)


@pytest.mark.slow
@pytest.mark.parametrize("buffered", [True, False], ids=["buffered", "unbuffered"])
@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_a_command_ends_quietly_when_its_reader_left(command: tuple[str, ...], buffered: bool) -> None:
    done = without_reader("timberframe", *command, buffered=buffered)
    assert (done.returncode, done.stderr) == (READER_LEFT, b"")


def test_another_broken_pipe_is_an_error() -> None:
    def command() -> int:
        reading, writing = os.pipe()
        os.close(reading)
        with open(writing, "wb", buffering=0) as pipe:
            pipe.write(b"to nobody")
        return 0

    with pytest.raises(BrokenPipeError):
        run_command(command)


@pytest.mark.parametrize("status", [0, 1, 2])
def test_a_command_keeps_its_status(status: int) -> None:
    assert run_command(lambda: status) == status
