"""Commands that take long show on a terminal how far they are, and nothing of it elsewhere."""

from __future__ import annotations

import contextlib
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

RESULTS = Path(__file__).parents[1] / "results"
COMMANDS = {
    "hostile": (["hostile", "--count=6", "--jobs=1", "--seed=1", "--store=store"], "6 files, 0 failures"),
    "todo": (["todo", "--device=cpu", "--level=core", "--jobs=1"], " cases of networks"),
    "report": (["report", str(RESULTS / "OPENCL.json.xz"), "--junit=junit.xml"], "reading "),
    "fuzz": (
        ["fuzz", "--device=cpu", "--programs=3", "--jobs=1", "--seed=1", "--store=store"],
        " known programs replayed, ",
    ),
}


def on_a_terminal(command: list[str], folder: Path) -> str:
    """Returns what a command writes to a terminal of 200 columns."""
    ours, its = pty.openpty()
    settings = {**os.environ, "TERM": "xterm", "COLUMNS": "200", "TIMBERFRAME_PLUGINS": "cpu"}
    with subprocess.Popen(command, stdout=its, stderr=its, cwd=folder, env=settings):
        os.close(its)
        written = b""
        with contextlib.suppress(OSError):  # a terminal that nobody has open any more
            while part := os.read(ours, 1 << 16):
                written += part
    os.close(ours)
    return written.decode()


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_shows_on_a_terminal_how_far_it_is(name: str, tmp_path: Path) -> None:
    arguments, text = COMMANDS[name]
    command = [sys.executable, "-m", "timberframe_conformance.cli", *arguments]
    assert text in on_a_terminal(command, tmp_path)


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_shows_no_progress_elsewhere(name: str, tmp_path: Path) -> None:
    arguments, text = COMMANDS[name]
    command = [sys.executable, "-m", "timberframe_conformance.cli", *arguments]
    settings = {**os.environ, "TIMBERFRAME_PLUGINS": "cpu"}
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env=settings, check=False)
    assert done.stdout.strip() or name == "report"
    assert text not in done.stdout + done.stderr
