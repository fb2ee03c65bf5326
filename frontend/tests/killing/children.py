"""Processes that are killed."""

from __future__ import annotations

import argparse
import os
import random
import signal
import sys
import traceback
from collections.abc import Callable

from timberframe_core.plugin import loader

_FILE_EVENTS = {"open", "os.rename", "os.remove", "fcntl.flock", "os.mkdir"}


def begin(description: str | None, kills: int) -> tuple[argparse.Namespace, random.Random]:
    """Returns what the command line says, and the moments of its seed at which processes are to
    be killed; loads plugins.
    """
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--kills", type=int, default=kills)
    parser.add_argument("--everywhere", action="store_true")
    parser.add_argument("--seed", type=int, default=0, help="of the moments at which processes are killed")
    options = parser.parse_args()
    loader.registry.load()  # once, and not in every process; no session is made, so there are no threads to lose
    print(f"seed {options.seed}", flush=True)
    return options, random.Random(options.seed)


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
    """Kills this process before the nth operation on files from now on."""
    left = number

    def hook(event: str, _: object) -> None:
        nonlocal left
        if event in _FILE_EVENTS:  # os.kill is an event, too
            left -= 1
            if not left:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(hook)
