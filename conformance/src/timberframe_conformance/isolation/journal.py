"""The journal: each worker writes the id of a case before it runs, so that the case it died in, and why, are known."""

from __future__ import annotations

import faulthandler
import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import IO, NamedTuple, NoReturn

CRASHES_BEFORE_QUARANTINE = 3
"""After this many crashes of one (op, dtypes) its other cases run in processes of their own."""

HANGS_BEFORE_GIVING_UP = 3
"""After this many cases of one op that did not end its other cases are not run."""

_FATAL = "Fatal Python error: "
"""The first words that faulthandler writes when a process ends by a signal."""
_QUARANTINE, _HUNG = "quarantine", "hung"
_CALLERS = ("judge_case", "plugin/loader.py", "in declines", "in takes")
_STANDARD_LIBRARY = f'File "{os.path.dirname(os.__file__)}'


class Journal:
    """One worker's side: begin and end of cases, and a watchdog that ends the process when a case takes too long.

    The watchdog is faulthandler's: a thread in C that needs neither the GIL nor a signal handler, so it also ends a
    kernel that spins with the GIL held. timeout: seconds, or None for no watchdog.
    """

    def __init__(self, directory: Path, worker: str, timeout: float | None) -> None:
        self.timeout = timeout
        self._file = os.open(directory / f"{worker}.journal", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        self._trace: IO[str] = (directory / f"{worker}.trace").open("a")
        self._quarantined = _Names(directory / _QUARANTINE)
        self._hung = _Names(directory / _HUNG)
        faulthandler.enable(file=self._trace, all_threads=False)

    def begin(self, case_id: str, time_limits: int = 1) -> None:
        """Notes that a case begins, and starts the watchdog, which ends it after `time_limits` times the limit."""
        os.write(self._file, f"begin {case_id}\n".encode())
        if self.timeout is not None:
            faulthandler.dump_traceback_later(time_limits * self.timeout, exit=True, file=self._trace)

    def end(self) -> None:
        """Notes that the case is over, and stops the watchdog."""
        if self.timeout is not None:
            faulthandler.cancel_dump_traceback_later()
        os.write(self._file, b"end\n")

    def end_process(self, reason: str) -> NoReturn:
        """Ends the process within a case, whose verdict is then a crash for this reason."""
        self._trace.write(f"{_FATAL}{' '.join(reason.split())}\n")
        self._trace.flush()
        os._exit(1)

    def is_quarantined(self, key: str) -> bool:
        """Returns whether the cases of an (op, dtypes) are to run in processes of their own."""
        return key in self._quarantined.read()

    def is_given_up(self, op: str) -> bool:
        """Returns whether the cases of an op are not to be run."""
        return op in self._hung.read()


class _Names:
    """Names that another process appends to a file, one a line."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._names: frozenset[str] = frozenset()
        self._stamp = 0

    def read(self) -> frozenset[str]:
        try:
            stamp = os.stat(self._path).st_mtime_ns
        except FileNotFoundError:
            return self._names
        if stamp != self._stamp:
            self._stamp = stamp
            self._names = frozenset(self._path.read_text().splitlines())
        return self._names


def quarantine(directory: Path, key: str) -> None:
    """Makes the other cases of an (op, dtypes) run in processes of their own."""
    with (directory / _QUARANTINE).open("a") as file:
        file.write(key + "\n")


def give_up(directory: Path, op: str) -> None:
    """Leaves out the other cases of an op."""
    with (directory / _HUNG).open("a") as file:
        file.write(op + "\n")


class Death(NamedTuple):
    """What faulthandler wrote about the end of a process.

    verdict: ``timeout`` or ``crash``. reason: the time limit or the fatal error, "" where it wrote nothing. frames: the
    lines of the stack, the innermost first.
    """

    verdict: str
    reason: str
    frames: Sequence[str]

    @property
    def location(self) -> str:
        """The stack in one line."""
        return "; ".join(self.frames)[:500]

    @property
    def innermost(self) -> str:
        """The innermost line of the stack that is no part of Python itself."""
        own = [f for f in self.frames if "<frozen " not in f]
        return next((f for f in own if not f.startswith(_STANDARD_LIBRARY) or "site-packages" in f), (own or [""])[0])


def read_trace(path: Path) -> Death:
    """Returns how the process ended that writes its traces into this file."""
    trace = path.read_text(errors="replace") if path.exists() else ""
    start = max(trace.rfind("Timeout ("), trace.rfind(_FATAL))
    last = trace[start:] if start >= 0 else ""
    frames = [line.strip() for line in _busy_thread(last) if line.strip().startswith("File")]
    if last.startswith("Timeout ("):
        return Death("timeout", last[9 : last.find(")")], frames)
    return Death("crash", last.splitlines()[0].removeprefix(_FATAL) if last else "", frames)


def cause_of_death(directory: Path, worker: str, case_id: str) -> tuple[str, str]:
    """``("timeout" | "crash", message)`` for a worker that died in a case."""
    death = read_trace(directory / f"{worker}.trace")
    if death.verdict == "timeout":
        return death.verdict, f"did not end within {death.reason}; the worker was ended at {death.location}"
    began = is_open(directory / f"{worker}.journal", case_id)
    reason = death.reason or "the worker process ended without a message"
    where = f" at {death.location}" if death.frames else ""
    return death.verdict, f"{reason}{'' if began else ' (between cases)'}{where}"


def _busy_thread(trace: str) -> list[str]:
    """Returns the lines of the thread that ran the case, or loaded the plugin, out of a trace of all threads."""
    threads = re.split(r"\n(?=(?:Current )?[Tt]hread )", trace)
    return next((t for t in threads if any(caller in t for caller in _CALLERS)), trace).splitlines()


def is_open(journal: Path, case_id: str) -> bool:
    """Returns whether the last line of a journal says that this case began."""
    return open_entry(journal) == case_id


def open_entry(journal: Path) -> str | None:
    """Returns what began last, by the last line of a journal; None where that has ended."""
    lines = journal.read_text(errors="replace").splitlines() if journal.exists() else []
    return lines[-1].removeprefix("begin ") if lines and lines[-1].startswith("begin ") else None
