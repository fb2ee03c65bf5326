"""A fuzzing session: workers, what they find, and how it is stored and reported."""

from __future__ import annotations

import dataclasses
import json
import queue
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from timberframe_conformance.commands import shortened
from timberframe_conformance.fuzz.findings import Finding, Store, regressions
from timberframe_conformance.fuzz.program import Program
from timberframe_conformance.fuzz.shrink import shrink
from timberframe_conformance.fuzz.worker import MARK, Task, finding_of, read_current
from timberframe_conformance.isolation.journal import read_trace

Report = Callable[[str], None]
Stop = Callable[[Finding], bool]
Progress = Callable[["Outcome"], None]
"""Called after each program."""
CRASH_SHRINKING = 90.0
"""Seconds for shrinking a program that ends its process; each candidate gets a process of its own."""


@dataclass
class Outcome:
    """What a session found. repeated: how often further findings of a kind that was reported occurred.

    known: failures of the past, shipped with the suite, that were replayed. replayed, fixed: findings of the store.

    on_device: nodes that ran on the device under test, by op. programs_on_device: programs that had any.
    """

    programs: int = 0
    invalid: int = 0
    on_device: Counter[str] = field(default_factory=Counter)
    programs_on_device: int = 0
    compared: Counter[str] = field(default_factory=Counter)
    findings: list[tuple[Finding, Path]] = field(default_factory=list)
    repeated: Counter[str] = field(default_factory=Counter)
    known: int = 0
    replayed: int = 0
    fixed: int = 0
    seconds: float = 0.0


class Session:
    """Runs workers in parallel until the time or the programs are used up, or `stop` accepts a finding."""

    def __init__(
        self,
        task: Task,
        store: Store,
        spec: str,
        jobs: int,
        report: Report,
        stop: Stop | None = None,
        progress: Progress = lambda _: None,
    ) -> None:
        self.task = task
        self.stop = stop
        self.progress = progress
        self._enough = False
        self.store = store
        self.spec = spec
        self.jobs = jobs
        self.report = report
        self.outcome = Outcome()
        self._events: queue.Queue[tuple[int, dict[str, Any] | None]] = queue.Queue()
        self._workers: dict[int, subprocess.Popen[str]] = {}
        self._tasks: dict[int, Task] = {}

    def run(self) -> Outcome:
        """Replays what is stored, then draws."""
        start = time.monotonic()
        with tempfile.TemporaryDirectory(prefix="fuzz-") as base:
            self.base = Path(base)
            try:
                for k in range(self.jobs):
                    self._start(k, self._first_task(k))
                self._gather(start + self.task.seconds)
            finally:
                for process in self._workers.values():
                    process.kill()
                    process.wait()
        self.outcome.seconds = time.monotonic() - start
        return self.outcome

    def _first_task(self, k: int) -> Task:
        stored = [self.store.folder / f"{f.name}.json" for f in self.store.all() if f.mutant in ("", self.task.mutant)]
        paths = [str(p) for p in (*stored, *(() if self.task.mutant else regressions()))]
        first = self.task.first + k * self.task.step
        replay = tuple(paths[k :: self.jobs])
        return dataclasses.replace(self.task, first=first, step=self.task.step * self.jobs, replay=replay)

    def _start(self, k: int, task: Task) -> None:
        folder = self.base / str(k)
        folder.mkdir(exist_ok=True)
        task = dataclasses.replace(task, folder=str(folder), known=tuple(f.cause for f, _ in self.outcome.findings))
        process = _spawn(task, folder)
        self._workers[k], self._tasks[k] = process, task
        threading.Thread(target=self._read, args=(k, process), daemon=True).start()

    def _read(self, k: int, process: subprocess.Popen[str]) -> None:
        assert process.stdout is not None
        for line in process.stdout:
            if line.startswith(MARK):
                self._events.put((k, json.loads(line.removeprefix(MARK))))
        process.wait()
        self._events.put((k, None))

    def _gather(self, end: float) -> None:
        done: set[int] = set()
        while self._workers and not self._enough:
            k, event = self._events.get()
            if event is not None:
                done |= {k} if "done" in event else set()
                self._take(k, event)
                continue
            process = self._workers.pop(k)
            if k not in done:
                self._died(k, process.returncode, end)

    def _take(self, k: int, event: dict[str, Any]) -> None:
        """Takes one line of a worker."""
        if "number" in event:
            self.outcome.programs += 1
            self.outcome.invalid += bool(event["invalid"])
            self.outcome.compared.update(event["compared"])
            self.outcome.on_device.update(event["on_device"])
            self.outcome.programs_on_device += bool(event["on_device"])
            self._tasks[k] = dataclasses.replace(self._tasks[k], first=event["number"] + self._tasks[k].step, replay=())
            self.progress(self.outcome)
        elif "finding" in event:
            self._add(Finding.from_json(json.dumps(event["finding"])))
        elif "repeated" in event:
            self.outcome.repeated[event["repeated"]] += 1
        elif "replayed" in event:
            self._replayed(k, Path(event["replayed"]), event["failure"])
            self.progress(self.outcome)

    def _replayed(self, k: int, path: Path, failure: Any) -> None:
        finding = Finding.from_json(path.read_text())
        rest = tuple(p for p in self._tasks[k].replay if p != str(path))
        self._tasks[k] = dataclasses.replace(self._tasks[k], replay=rest)
        kept = path.parent == self.store.folder
        self.outcome.replayed += kept
        self.outcome.known += not kept
        if failure is not None:
            script = path.with_suffix(".py") if kept else self._store(finding)
            self.outcome.findings.append((finding, script))
            self.report(f"still  {path.stem}: {shortened(failure[1], 300)}\n       {script}")
        elif kept:
            self.store.remove(finding)
            self.outcome.fixed += 1
            self.report(f"fixed  {path.stem}: {shortened(finding.message, 100)}")

    def _add(self, finding: Finding) -> None:
        if finding.cause in {f.cause for f, _ in self.outcome.findings}:
            self.outcome.repeated[finding.cause] += 1
            return
        path = self._store(finding)
        self.outcome.findings.append((finding, path))
        self._enough = self.stop is not None and self.stop(finding)
        self.report(
            f"FAILED {finding.oracle}, program {finding.number}: {shortened(finding.message, 600)}\n       {path}"
        )

    def _store(self, finding: Finding) -> Path:
        """Writes a finding; if that fails, prints it, so that it is not lost."""
        try:
            return self.store.add(finding, self.spec)
        except OSError as e:
            self.report(f"a failure cannot be stored ({e}); this is its .json:\n{finding.to_json()}")
            return self.store.folder / f"{finding.name}.py"

    def _died(self, k: int, status: int, end: float) -> None:
        """Makes the program that a dead worker judged a finding; a new worker continues after it."""
        task = self._tasks[k]
        folder = self.base / str(k)
        current = read_current(folder)
        if current is None:
            raise RuntimeError(f"a worker ended with status {status} before its first program: {_errors(folder)}")
        number, program = current
        oracle, message = _cause(status, folder)
        (folder / "current.json").unlink()
        found = finding_of(task, program, oracle, message, number)
        if task.replay:
            self._replayed(k, Path(task.replay[0]), (oracle, message))
        else:
            if found.cause in {f.cause for f, _ in self.outcome.findings}:
                self.outcome.repeated[found.cause] += 1
            else:
                self._add(self._shrunk_crash(found))
            self._tasks[k] = dataclasses.replace(task, first=max(task.first, number + task.step))
        task = self._tasks[k]
        left = end - time.monotonic()
        if left > 0 and task.first < task.end:
            self._start(k, dataclasses.replace(task, seconds=left))

    def _shrunk_crash(self, finding: Finding) -> Finding:
        limit = 10.0 if finding.oracle == "timeout" else self.task.timeout

        def fails(program: Program) -> bool:
            return judge_apart(dataclasses.replace(finding, program=program), self.task, limit) == finding.oracle

        if not self.task.shrink_seconds:
            return finding
        small = shrink(finding.program, fails, CRASH_SHRINKING, 200)
        return dataclasses.replace(finding, program=small)


def _spawn(task: Task, folder: Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "timberframe_conformance.fuzz.worker", task.to_json()]
    with (folder / "errors").open("w") as errors:
        return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True)


def judge_apart(finding: Finding, task: Task, timeout: float) -> str:
    """Judges a program in a process of its own: the oracle that failed, `crash`, `timeout`, or nothing."""
    return replay(finding, task, timeout)[0]


def replay(finding: Finding, task: Task, timeout: float) -> tuple[str, str]:
    """As `judge_apart`, with the message."""
    with tempfile.TemporaryDirectory(prefix="fuzz-") as base:
        folder = Path(base)
        path = folder / "program.json"
        path.write_text(finding.to_json())
        alone = dataclasses.replace(task, program=str(path), folder=base, timeout=timeout)
        process = _spawn(alone, folder)
        output = process.communicate()[0]
        for line in output.splitlines():
            if line.startswith(MARK) and "verdict" in line:
                failure = json.loads(line.removeprefix(MARK))["verdict"]
                return (str(failure[0]), str(failure[1])) if failure else ("", "")
        return _cause(process.returncode, folder)


def _cause(status: int, folder: Path) -> tuple[str, str]:
    """``crash`` or ``timeout``, and a message."""
    death = read_trace(folder / "trace")
    if death.verdict == "timeout":
        return death.verdict, f"the program did not end in time; the process was at {death.location}"
    where = f" at {death.location}" if death.frames else ""
    return death.verdict, f"the process ended with status {status}: {death.reason or _errors(folder)}{where}"


def _errors(folder: Path) -> str:
    """Returns the last line that a worker wrote to stderr."""
    lines = (folder / "errors").read_text(errors="replace").strip().splitlines()
    return lines[-1] if lines else ""
