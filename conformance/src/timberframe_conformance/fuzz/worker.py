"""The process that draws, judges and shrinks: ``python -m timberframe_conformance.fuzz.worker TASK``.

It prints a line of JSON for each program. Before each it writes the program into the file `current.json`, and a
watchdog ends the process when a program takes too long; so its parent knows which program it died of, and why.
"""

from __future__ import annotations

import dataclasses
import faulthandler
import json
import sys
import time
import warnings
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from timberframe_conformance.fuzz.draw import draw_program
from timberframe_conformance.fuzz.findings import Finding
from timberframe_conformance.fuzz.judge import ORACLES, Verdict, judge
from timberframe_conformance.fuzz.pool import Pool
from timberframe_conformance.fuzz.program import Program, from_json, to_json
from timberframe_conformance.fuzz.shrink import shrink
from timberframe_conformance.options import Options
from timberframe_conformance.target import NoSuchDeviceError, Target, open_target

MARK = "fuzz-result "
ALWAYS = ("truth", "slopes", "again", "tensorflow")
SAMPLED = 5
"""Oracles that judge every program, and how many of the others are sampled for each."""
SHRUNK_PER_CAUSE = 1
"""Number of findings of one cause that are shrunk and reported; further ones are counted."""


@dataclass(frozen=True)
class Task:
    """What a worker does: judge the findings in `replay`, then programs first, first + step, ... of a seed.

    It stops after `seconds`, or with program `end`. oracles: names, all if empty. folder: for its journal. program:
    the path of a single program to judge in place of all that. known: causes of findings that are reported already.
    mutant: a known bug to put into the framework. vs: another system that runs the same programs. ops: of the
    device's kernels only those of these ops are drawn, all if empty. profile: the path of the device's.
    settings: the device's options, by name.
    """

    device: str
    seed: int
    folder: str
    first: int = 0
    step: int = 1
    end: int = 1 << 62
    seconds: float = 60.0
    timeout: float = 60.0
    shrink_seconds: float = 30.0
    oracles: tuple[str, ...] = ()
    replay: tuple[str, ...] = ()
    program: str = ""
    known: tuple[str, ...] = ()
    mutant: str = ""
    vs: str = ""
    ops: tuple[str, ...] = ()
    profile: str = ""
    settings: tuple[tuple[str, str], ...] = ()

    def to_json(self) -> str:
        return json.dumps(dataclasses.asdict(self))

    @staticmethod
    def from_json(text: str) -> Task:
        data = json.loads(text)
        for name in ("oracles", "replay", "known", "ops"):
            data[name] = tuple(data[name])
        data["settings"] = tuple((name, value) for name, value in data["settings"])
        return Task(**data)


def finding_of(task: Task, program: Program, oracle: str, message: str, number: int) -> Finding:
    """Returns a failure of a program that was drawn for a task."""
    return Finding(
        program, oracle, message, task.device, task.seed, number, task.mutant, task.settings, task.profile
    )  # fmt: skip


class Worker:
    """Does a task and prints what becomes of each program."""

    def __init__(self, task: Task) -> None:
        self.task = task
        self.target = open_target(Options(task.device, profile=task.profile, settings=task.settings))
        self.host = _host(self.target)
        self.folder = Path(task.folder)
        self.oracles = self._oracles()
        self.causes = Counter(dict.fromkeys(task.known, SHRUNK_PER_CAUSE))
        self._trace = (self.folder / "trace").open("w")
        faulthandler.enable(file=self._trace, all_threads=False)

    def _oracles(self) -> list[str] | None:
        if self.task.vs:
            from timberframe_conformance.fuzz.oracles import tensorflow as tensorflow
        return list(self.task.oracles) or None

    def run(self) -> None:
        """Does everything that the task asks for."""
        if self.task.program:
            self._report(verdict=self._failure(Finding.from_json(Path(self.task.program).read_text())))
            return
        for path in self.task.replay:
            self._report(replayed=path, failure=self._failure(Finding.from_json(Path(path).read_text())))
        pool = Pool(self.target, self.host, self.task.ops)
        pool.ask()
        end = time.monotonic() + self.task.seconds
        number = self.task.first
        while number < self.task.end and time.monotonic() < end:
            self._watch()
            program = draw_program(pool, self.task.seed, number)
            verdict = self.judge(program, number, self._chosen(number))
            counts = {"compared": dict(verdict.compared), "on_device": verdict.on_device}
            self._report(number=number, invalid=verdict.invalid, **counts)
            if verdict.failure is not None:
                self._found(finding_of(self.task, program, *verdict.failure, number))
            number += self.task.step

    def _chosen(self, number: int) -> list[str]:
        """Returns the oracles of a program: ALWAYS and a sample of the others, since more programs find more than more
        oracles."""
        if self.oracles is not None:
            return self.oracles
        rng = np.random.default_rng((self.task.seed, number, len(ORACLES)))
        others = [name for name in ORACLES if name not in ALWAYS]
        sampled = {others[int(i)] for i in rng.permutation(len(others))[:SAMPLED]}
        return [name for name in ORACLES if name in ALWAYS or name in sampled]

    def judge(self, program: Program, number: int, oracles: list[str] | None = None) -> Verdict:
        """Judges under the watchdog, with the program on record."""
        (self.folder / "current.json").write_text(
            json.dumps({"number": number, "program": json.loads(to_json(program))})
        )
        self._watch()
        try:
            return judge(program, self.target, self.host, oracles or self.oracles, number)
        finally:
            faulthandler.cancel_dump_traceback_later()

    def _watch(self) -> None:
        faulthandler.dump_traceback_later(self.task.timeout, exit=True, file=self._trace)

    def _failure(self, finding: Finding) -> tuple[str, str] | None:
        """Returns what a stored finding's oracle says of its program now; all oracles judge
        one that ended its process.
        """
        oracles = [finding.oracle] if finding.oracle not in ("crash", "timeout") else None
        return self.judge(finding.program, finding.number, oracles).failure

    def _found(self, finding: Finding) -> None:
        self.causes[finding.cause] += 1
        if self.causes[finding.cause] > SHRUNK_PER_CAUSE:
            self._report(repeated=finding.cause)
            return
        message = finding.message

        def fails(program: Program) -> bool:
            nonlocal message
            failure = self.judge(program, finding.number, [finding.oracle]).failure
            same = failure is not None and dataclasses.replace(finding, oracle=failure[0], message=failure[1]).kind
            if failure is not None and same == finding.kind:
                message = failure[1]
                return True
            return False

        small = shrink(finding.program, fails, self.task.shrink_seconds)
        self._report(finding=json.loads(dataclasses.replace(finding, program=small, message=message).to_json()))

    def _report(self, **what: Any) -> None:
        print(MARK + json.dumps(what), flush=True)


def _host(target: Target) -> Target | None:
    """Returns the CPU, unless it is the device under test."""
    if target.device.type == "CPU":
        return None
    try:
        return open_target(Options("cpu"))
    except NoSuchDeviceError:
        return None


def main(text: str) -> None:
    """Does the task that the text describes."""
    warnings.simplefilter("ignore")
    task = Task.from_json(text)
    if task.mutant:
        from timberframe_conformance.fuzz.mutants import FRAMEWORK_MUTANTS

        FRAMEWORK_MUTANTS[task.mutant].apply()
    Worker(task).run()
    print(MARK + json.dumps({"done": True}), flush=True)


def read_current(folder: Path) -> tuple[int, Program] | None:
    """Returns the program that a worker was at."""
    try:
        data = json.loads((folder / "current.json").read_text())
    except (OSError, ValueError):
        return None
    return data["number"], from_json(json.dumps(data["program"]))


if __name__ == "__main__":
    main(*sys.argv[1:])
