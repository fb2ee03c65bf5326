"""The journal: each worker writes the id of a case before it runs, so that the case it died in, and why, are known."""

from __future__ import annotations

import faulthandler
import os
import re
from pathlib import Path
from typing import IO, NamedTuple

CRASHES_BEFORE_QUARANTINE = 3
"""After this many crashes of one (op, dtypes) its other cases run in processes of their own."""

_QUARANTINE = "quarantine"


class Journal:
    """One worker's side: begin and end of cases, and a watchdog that ends the process when a case takes too long.

    The watchdog is faulthandler's: a thread in C that needs neither the GIL nor a signal handler, so it also ends a
    kernel that spins with the GIL held. timeout: seconds, or None for no watchdog.
    """

    def __init__(self, directory: Path, worker: str, timeout: float | None) -> None:
        self.timeout = timeout
        self._directory = directory
        self._file = os.open(directory / f"{worker}.journal", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        self._trace: IO[str] = (directory / f"{worker}.trace").open("a")
        self._quarantined: frozenset[str] = frozenset()
        self._quarantine_stamp = 0
        faulthandler.enable(file=self._trace, all_threads=False)

    def begin(self, case_id: str) -> None:
        """Notes that a case begins, and starts the watchdog."""
        os.write(self._file, f"begin {case_id}\n".encode())
        if self.timeout is not None:
            faulthandler.dump_traceback_later(self.timeout, exit=True, file=self._trace)

    def end(self) -> None:
        """Notes that the case is over, and stops the watchdog."""
        if self.timeout is not None:
            faulthandler.cancel_dump_traceback_later()
        os.write(self._file, b"end\n")

    def is_quarantined(self, key: str) -> bool:
        """Whether the cases of an (op, dtypes) are to run in processes of their own."""
        try:
            stamp = os.stat(self._directory / _QUARANTINE).st_mtime_ns
        except FileNotFoundError:
            return False
        if stamp != self._quarantine_stamp:
            self._quarantine_stamp = stamp
            self._quarantined = frozenset((self._directory / _QUARANTINE).read_text().splitlines())
        return key in self._quarantined


def quarantine(directory: Path, key: str) -> None:
    """Has the other cases of an (op, dtypes) run in processes of their own."""
    with (directory / _QUARANTINE).open("a") as file:
        file.write(key + "\n")


class Death(NamedTuple):
    """What faulthandler wrote about the end of a process.

    verdict: ``timeout`` or ``crash``. reason: the time limit or the fatal error, "" where it wrote nothing. location:
    the lines of the stack.
    """

    verdict: str
    reason: str
    location: str


def read_trace(path: Path) -> Death:
    """How the process ended that writes its traces into this file."""
    trace = path.read_text(errors="replace") if path.exists() else ""
    start = max(trace.rfind("Timeout ("), trace.rfind("Fatal Python error"))
    last = trace[start:] if start >= 0 else ""
    location = "; ".join(line.strip() for line in _busy_thread(last) if line.strip().startswith("File"))[:500]
    if last.startswith("Timeout ("):
        return Death("timeout", last[9 : last.find(")")], location)
    return Death("crash", last.splitlines()[0].removeprefix("Fatal Python error: ") if last else "", location)


def cause_of_death(directory: Path, worker: str, case_id: str) -> tuple[str, str]:
    """``("timeout" | "crash", message)`` for a worker that died in a case."""
    verdict, reason, location = read_trace(directory / f"{worker}.trace")
    if verdict == "timeout":
        return verdict, f"did not end within {reason}; the worker was ended at {location}"
    began = is_open(directory / f"{worker}.journal", case_id)
    reason = reason or "the worker process ended without a message"
    return verdict, f"{reason}{'' if began else ' (between cases)'}{' at ' + location if location else ''}"


def _busy_thread(trace: str) -> list[str]:
    """The lines of the thread that ran the case, out of a trace of all threads."""
    threads = re.split(r"\n(?=(?:Current )?[Tt]hread )", trace)
    return next((t for t in threads if "judge_case" in t), trace).splitlines()


def is_open(journal: Path, case_id: str) -> bool:
    """Whether the last line of a journal says that this case began."""
    lines = journal.read_text(errors="replace").splitlines() if journal.exists() else []
    return bool(lines) and lines[-1] == f"begin {case_id}"
