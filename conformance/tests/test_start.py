"""The process that waits for a command: it ends as the command does, and takes it along when it is ended itself."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="elsewhere no process waits for the command"),
]

START = """
import os, sys, time
from pathlib import Path
from timberframe_conformance.isolation.start import start_isolated
start_isolated(30)
Path(sys.argv[1]).write_text(str(os.getpid()))
"""


def started(tmp_path: Path, body: str) -> tuple[subprocess.Popen[str], int]:
    """Returns a process that waits, and the process that it waits for, which runs this."""
    note = tmp_path / "pid"
    waiting = subprocess.Popen([sys.executable, "-c", START + body, str(note)], stderr=subprocess.PIPE, text=True)
    for _ in range(600):
        if note.exists() and note.read_text():
            return waiting, int(note.read_text())
        time.sleep(0.1)
    raise AssertionError("the process did not start")


def is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().split(")")[-1].split()[0] != "Z"
    except FileNotFoundError:
        return False


def ends(pid: int) -> bool:
    for _ in range(100):
        if not is_running(pid):
            return True
        time.sleep(0.1)
    return False


def test_the_exit_status_is_that_of_the_command(tmp_path: Path) -> None:
    waiting, pid = started(tmp_path, "sys.exit(5)")
    assert waiting.wait(60) == 5
    assert pid != waiting.pid


def test_a_crash_of_the_command_is_reported_with_its_place(tmp_path: Path) -> None:
    waiting, _ = started(tmp_path, "import ctypes\nctypes.string_at(0)")
    errors = waiting.communicate(timeout=60)[1]
    assert waiting.returncode == -signal.SIGSEGV
    assert "conformance: the command ended by SIGSEGV: Segmentation fault at File" in errors


def test_a_command_that_is_killed_is_reported_as_such(tmp_path: Path) -> None:
    waiting, pid = started(tmp_path, "time.sleep(60)")
    os.kill(pid, signal.SIGKILL)
    errors = waiting.communicate(timeout=60)[1]
    assert waiting.returncode == -signal.SIGKILL
    assert errors.splitlines() == ["conformance: the command ended by SIGKILL: as by the system where memory runs out"]


def test_a_request_to_end_reaches_the_command(tmp_path: Path) -> None:
    waiting, pid = started(tmp_path, "time.sleep(60)")
    waiting.terminate()
    assert waiting.wait(60) == -signal.SIGTERM
    assert ends(pid)


def test_a_command_that_is_asked_to_end_while_it_loads_a_plugin_is_not_started_again(tmp_path: Path) -> None:
    body = """
from types import SimpleNamespace
from timberframe_core.plugin import loader
loader.registry.watch(SimpleNamespace(name="acme"))
Path(sys.argv[1] + ".loading").touch()
time.sleep(60)
"""
    waiting, _ = started(tmp_path, body)
    while not (tmp_path / "pid.loading").exists():
        time.sleep(0.05)
    waiting.terminate()
    errors = waiting.communicate(timeout=60)[1]
    assert waiting.returncode == -signal.SIGTERM
    assert "left out" not in errors


def test_the_command_ends_when_the_waiting_process_is_killed(tmp_path: Path) -> None:
    waiting, pid = started(tmp_path, "time.sleep(60)")
    waiting.kill()
    assert ends(pid)


def test_ctrl_c_is_the_commands_to_handle(tmp_path: Path) -> None:
    body = "try:\n    time.sleep(60)\nexcept KeyboardInterrupt:\n    sys.exit(9)"
    waiting, pid = started(tmp_path, body)
    for process in (waiting.pid, pid):
        os.kill(process, signal.SIGINT)
    assert waiting.wait(60) == 9


def test_the_command_starts_where_there_are_no_forks_and_fewer_signals() -> None:
    """As on Windows, which nobody has tried."""
    program = """
import os, signal, sys
del signal.SIGHUP, signal.SIGPIPE, os.fork
from timberframe_conformance.isolation.start import start_isolated
sys.platform = "win32"
start_isolated(30)
print("started")
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.stdout == "started\n", done.stderr
