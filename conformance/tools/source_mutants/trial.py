"""Runs what a fault could change, until something notices."""

from __future__ import annotations

import dataclasses
import faulthandler
import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from timberframe_conformance.case import FAILING, Case
from timberframe_conformance.collect import collect
from timberframe_conformance.judge import judge_case
from timberframe_conformance.options import Options
from timberframe_conformance.target import open_target

CASE_SECONDS = 60.0
DEVICE_SUITES = {"graphs": 40, "device": 40, "faults": 20, "leaks": 20, "models": 4}
OP_SUITES = {
    "forward": 500, "guards": 200, "errors": 200, "determinism": 80, "aliasing": 80, "random": 40, "gradient": 20,
}  # fmt: skip
"""Most cases of each suite in a first trial; a thorough one has them all."""
NO_CASE = "no case"


@dataclasses.dataclass(frozen=True)
class Trial:
    """What to run, with what is in the folder `changed`, see `take`.

    users: ops with dtypes, ``Op/float32``; empty for all ops. tests: pytest's ids. last: the id of the case after which
    it ends, NO_CASE to try tests alone. skip: ids of cases and tests.
    """

    device: str
    changed: Path
    users: frozenset[str]
    tests: tuple[str, ...]
    thorough: bool = False
    last: str = ""
    skip: frozenset[str] = frozenset()

    def __call__(self) -> dict[str, Any]:
        """``by``: the case or test that failed, "" where none did; ``cases``, ``tests``: how many were tried."""
        take(self.device, self.changed)
        faulthandler.enable()
        tried = 0
        target = open_target(Options(self.device))
        for case in self.cases(target):
            _write_line(f"case {case.id}")
            faulthandler.dump_traceback_later(CASE_SECONDS, exit=True)
            result = judge_case(case, target)
            faulthandler.cancel_dump_traceback_later()
            tried += 1
            if result.verdict in FAILING:
                return {"by": case.id, "cases": tried, "message": result.message[:300]}
            if case.id == self.last:
                return {"by": "", "cases": tried}
        return {"cases": tried} | (_run_tests(self.tests, self.skip) if self.tests else {"by": ""})

    def cases(self, target: Any) -> Iterator[Case]:
        """Yields what is judged, in this order."""
        if self.last == NO_CASE:
            return
        ops = tuple({user.split("/")[0] for user in self.users})
        suites = OP_SUITES if self.users else DEVICE_SUITES
        cases: dict[str, list[Case]] = {suite: [] for suite in suites}
        for case in collect(target, Options(self.device, ops=ops, suites=tuple(suites))):
            if case.id not in self.skip and (not self.users or f"{case.op}/{case.dtype_label}" in self.users):
                cases[case.suite].append(case)
        for suite in suites:
            yield from _spread(cases[suite], len(cases[suite]) if self.thorough else suites[suite])


def refused(found: dict[str, Any]) -> bool:
    """Returns whether a trial failed because a driver could not compile a source."""
    return "the driver refuses a source" in found.get("message", "")


def take(device: str, changed: Path) -> None:
    """Makes this process use the CPU's package that lies in a folder, or, for OpenCL, the headers in it."""
    if device == "cpu":
        sys.path.insert(0, str(changed))
        return
    import timberframe_accelerator.device as accelerator

    vars(accelerator)["HEADERS"] = changed


def _spread(cases: Sequence[Case], most: int) -> list[Case]:
    """At most `count` items, evenly spaced, in an order in which the first ones are spread out, too."""
    step = max(1, -(-len(cases) // max(1, most)))
    chosen = cases[::step]
    stride = max(1, int(len(chosen) * 0.618))
    while chosen and _common(stride, len(chosen)) != 1:
        stride += 1
    return [chosen[i * stride % len(chosen)] for i in range(len(chosen))]


def _common(a: int, b: int) -> int:
    return a if not b else _common(b, a % b)


def _write_line(text: str, file: int = 1) -> None:
    os.write(file, f"{text}\n".encode())


def _run_tests(tests: Sequence[str], skip: frozenset[str]) -> dict[str, Any]:
    import pytest

    log = os.dup(1)  # pytest replaces it while a test runs

    class Plugin:
        failed = ""
        count = 0

        def pytest_runtest_logstart(self, nodeid: str) -> None:
            _write_line(f"test {nodeid}", log)
            faulthandler.dump_traceback_later(2 * CASE_SECONDS, exit=True)

        def pytest_runtest_logreport(self, report: Any) -> None:
            self.count += report.when == "call"
            if report.failed and not self.failed:
                self.failed = report.nodeid

        def pytest_collectreport(self, report: Any) -> None:
            if report.failed:
                self.failed = report.nodeid or "collection"

    plugin = Plugin()
    options = ["-q", "-x", "-pno:xdist", "-pno:cacheprovider", "-pno:randomly", "-pno:faulthandler"]
    options += [f"--deselect={test}" for test in skip]
    pytest.main([*tests, *options], plugins=[plugin])
    faulthandler.cancel_dump_traceback_later()
    return {"by": plugin.failed, "tests": plugin.count}


def last_step(log: Path) -> str:
    """Returns the case or test that a log names last."""
    lines = log.read_text(errors="replace").splitlines()
    return next((line[5:] for line in reversed(lines) if line.startswith(("case ", "test "))), "the start")
