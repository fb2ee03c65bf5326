"""Processes that are killed."""

from __future__ import annotations

import os
import signal
import sys
import traceback
from collections.abc import Callable

_FILE_EVENTS = {"open", "os.rename", "os.remove", "fcntl.flock", "os.mkdir"}


def in_child(work: Callable[[], None]) -> int:
    """Runs `work` in a process of its own and returns its id."""
    child = os.fork()
    if child:
        return child
    try:
        work()
        sys.stdout.flush()
        os._exit(0)
    except BaseException:
        traceback.print_exc()
        os._exit(1)


def kill_before_file_operation(number: int) -> None:
    """Has this process be killed before the nth operation on files from now on."""
    left = number

    def hook(event: str, _: object) -> None:
        nonlocal left
        if event in _FILE_EVENTS:  # os.kill is an event, too
            left -= 1
            if not left:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(hook)
