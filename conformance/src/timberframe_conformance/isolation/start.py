"""Starts a command so that a plugin which crashes or hangs when it is loaded costs only itself.

The command runs in a forked process, whose parent has loaded no plugin and only waits. If that process ends while it
loads one, the parent names the plugin and starts the command again without it; if it ends while a device says whether
it supports an op, without that question. Otherwise this costs a fork.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from types import FrameType

from timberframe_conformance.isolation.asking import find_question, leave_unasked, unanswered, watch_questions
from timberframe_conformance.isolation.loading import exclude, excluded, find_culprit, how_it_ended, watch_loading

_PR_SET_PDEATHSIG = 1
_PROCESS = "command"
_FORWARDED = tuple(getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name))
_REQUESTS = (*_FORWARDED, signal.SIGINT, getattr(signal, "SIGPIPE", signal.SIGINT))  # Windows has fewer signals
"""Signals by which a command is asked to end."""


def start_isolated(timeout: float) -> None:
    """Returns in a process that may load plugins; the process that called it waits for that one, and ends as it does.

    timeout: seconds for one case, of which a plugin may take several to load. On systems other than Linux the caller
    itself goes on: their libraries may not survive a fork.
    """
    if sys.platform != "linux":
        return
    folder = Path(tempfile.mkdtemp(prefix="conformance-"))
    while True:
        sys.stdout.flush()
        sys.stderr.flush()
        waiting = os.getpid()
        child = os.fork()
        if child == 0:
            _end_with(waiting)
            watch_loading(folder, _PROCESS, timeout)
            watch_questions(folder, _PROCESS, timeout)
            return
        status = _wait(child)
        if -status in _REQUESTS or not _left_out(folder, status):
            break
    killed = -status == signal.SIGKILL
    cause = "as by the system where memory runs out" if killed else how_it_ended(folder, _PROCESS)
    shutil.rmtree(folder, ignore_errors=True)
    if status >= 0:
        raise SystemExit(status)
    if -status not in _REQUESTS:
        print(f"conformance: the command ended by {signal.Signals(-status).name}: {cause}", file=sys.stderr)
    if not killed:  # that signal has no other handler
        signal.signal(-status, signal.SIG_DFL)
    os.kill(os.getpid(), -status)


def _left_out(folder: Path, status: int) -> bool:
    """Returns whether the process ended in a plugin's code that the next one leaves out: it then says so."""
    question = find_question(folder, _PROCESS)
    if question is not None and question.key not in unanswered() and leave_unasked(question):
        print(f"conformance: {question.key} is taken for unsupported: supports {question.reason}", file=sys.stderr)
        return True
    culprit = find_culprit(folder, _PROCESS, status)
    if culprit is None or culprit.plugin in excluded():
        return False
    print(f"conformance: plugin '{culprit.plugin}' is left out: it {culprit.reason}", file=sys.stderr)
    exclude(culprit)
    return True


def _end_with(parent: int) -> None:
    """Makes the system end this process when its parent is killed."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)


def _wait(child: int) -> int:
    """Returns the exit status of a process, below 0 for a signal; signals that ask this one
    to end are sent on to it.
    """

    def forward(number: int, _: FrameType | None) -> None:
        os.kill(child, number)

    handlers: list[tuple[int, Callable[..., object] | int]] = [(signal.SIGINT, signal.SIG_IGN)]  # both get Ctrl-C
    handlers += [(number, forward) for number in _FORWARDED]
    old = [(number, signal.signal(number, handler)) for number, handler in handlers]
    try:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    finally:
        for number, handler in old:
            signal.signal(number, handler)
