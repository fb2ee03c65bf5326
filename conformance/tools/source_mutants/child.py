"""A function in a process of its own, with limits; the modules that are loaded here need not be loaded again there."""

from __future__ import annotations

import json
import os
import resource
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any


def in_child(function: Callable[[], Any], log: Path, seconds: float, gigabytes: float = 8) -> tuple[Any, str]:
    """Returns what the function returned, as JSON carries it, or None and how its process ended: "" where it returned.

    log: file for all that the process writes. seconds: time, after which it and its own children are killed.
    """
    reader, writer = os.pipe()
    process = os.fork()
    if process == 0:
        _run(function, log, writer, gigabytes)
    os.close(writer)
    end = time.monotonic() + seconds
    text = b""
    os.set_blocking(reader, False)
    while True:
        text += _available(reader)
        finished, status = os.waitpid(process, os.WNOHANG)
        if finished:
            break
        if time.monotonic() > end:
            os.killpg(process, signal.SIGKILL)
            os.waitpid(process, 0)
            os.close(reader)
            return None, f"timeout after {seconds:.0f} s"
        time.sleep(0.05)
    text += _available(reader)
    os.close(reader)
    if os.WIFSIGNALED(status):
        return None, f"signal {signal.Signals(os.WTERMSIG(status)).name}"
    if os.WEXITSTATUS(status) or not text:
        return None, f"exit status {os.WEXITSTATUS(status)}"
    return json.loads(text), ""


def _available(reader: int) -> bytes:
    text = b""
    try:
        while part := os.read(reader, 1 << 16):
            text += part
    except BlockingIOError:
        pass
    return text


def _run(function: Callable[[], Any], log: Path, writer: int, gigabytes: float) -> None:
    """Runs the child's side, and never returns."""
    status = 1
    try:
        os.setpgrp()
        file = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
        os.dup2(file, 1)
        os.dup2(file, 2)
        resource.setrlimit(resource.RLIMIT_AS, (int(gigabytes * 2**30),) * 2)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        result = json.dumps(function()).encode()
        os.set_blocking(writer, True)
        while result:
            result = result[os.write(writer, result) :]
        status = 0
    except BaseException:
        import traceback

        traceback.print_exc()
    finally:
        os._exit(status)
