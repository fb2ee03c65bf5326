"""Commands whose output may go to a reader that takes only a part of it, such as `head`."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable

READER_LEFT = 128 + 13  # what a shell reports of a program that SIGPIPE ended


def run_command(command: Callable[[], int]) -> int:
    """Runs a command and gives its exit status; READER_LEFT, quietly, where nobody reads its output any more."""
    try:
        status = command()
        sys.stdout.flush()
    except BrokenPipeError:
        if not _reader_left():
            raise  # another pipe broke
        return READER_LEFT
    return status


def _reader_left() -> bool:
    try:
        sys.stdout.write("\n")
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # for the flush at exit
        return True
    return False
