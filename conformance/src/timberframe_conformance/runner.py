"""A whole run: pytest with xdist workers, and a reporter that gathers the results."""

from __future__ import annotations

import os
import signal
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from timberframe_conformance.case import LEVELS, NOT_RUN, Case, Result
from timberframe_conformance.cases.types import required_ops
from timberframe_conformance.collect import collect, collectors
from timberframe_conformance.isolation.asking import find_question, leave_unasked, unanswered
from timberframe_conformance.isolation.journal import (
    CRASHES_BEFORE_QUARANTINE,
    HANGS_BEFORE_GIVING_UP,
    cause_of_death,
    give_up,
    quarantine,
)
from timberframe_conformance.isolation.loading import exclude, excluded, find_culprit, how_it_ended
from timberframe_conformance.judge import finish
from timberframe_conformance.options import Options
from timberframe_conformance.plugin import CASES_FILE, PROPERTY, result_of
from timberframe_conformance.reports.environment import environment, sources
from timberframe_conformance.reports.summary import Run, describe_device
from timberframe_conformance.target import Target
from timberframe_core.ops.definition import registry

ORDINARY = (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED, pytest.ExitCode.NO_TESTS_COLLECTED)
"""How pytest ends when it ran all cases that there are."""

_SECONDS_TO_END = 1
"""Seconds that worker processes have to end by themselves when a run is stopped."""

LOST_STARTS = 3
"""How often each worker may end before its first case."""

Progress = Callable[[int, int, Result | None], None]
"""Called with the number of cases done, the number of all, and the last result."""


class NoStartError(Exception):
    """The worker processes ran no case; the message says why."""


class Reporter:
    """Pytest plugin of the controlling process: gathers results and turns dead workers into verdicts."""

    def __init__(self, target: Target, options: Options, progress: Progress, jobs: int) -> None:
        self.jobs = jobs
        self.target = target
        self.options = options
        self.progress = progress
        self.ids: Sequence[str] = ()
        self.results: dict[str, Result] = {}
        self.errors: list[str] = []
        self._cases: dict[str, Case] | None = None
        self._crashes: Counter[str] = Counter()
        self._hangs: Counter[str] = Counter()
        self._session: pytest.Session | None = None
        self._collected: set[str] = set()
        self._lost = 0

    @pytest.hookimpl(trylast=True)
    def pytest_configure(self, config: pytest.Config) -> None:
        terminal = config.pluginmanager.getplugin("terminalreporter")
        if terminal is not None:
            config.pluginmanager.unregister(terminal)

    def pytest_sessionstart(self, session: pytest.Session) -> None:
        self._session = session

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any, error: object) -> None:
        """A worker that ends before its first case gives up a plugin or a question, or after some of them the run."""
        worker = node.gateway.id
        if not error or worker in self._collected:
            return
        question = find_question(Path(self.options.journal), worker)
        if question is not None:
            if not leave_unasked(question):
                self._stop(f"supports of the device {question.reason}, and had no answer to {len(unanswered())} more")
            return
        culprit = find_culprit(Path(self.options.journal), worker)
        if culprit is not None and culprit.plugin not in excluded():
            exclude(culprit)
            return
        self._lost += 1
        if self._lost > LOST_STARTS * self.jobs:
            cause = how_it_ended(Path(self.options.journal), worker)
            self._stop(f"{self._lost} worker processes ended before their first case: {cause}")

    def _stop(self, why: str) -> None:
        """Ends the run."""
        self.errors.append(why)
        if self._session is not None:
            self._session.shouldstop = why
            workers = self._session.config.pluginmanager.getplugin("dsession")
            workers._max_worker_restart = 0  # else xdist goes on for as long as workers end before they have collected

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, node: Any, ids: Sequence[str]) -> None:
        self._collected.add(node.gateway.id)
        if not self.ids:
            self.ids = list(ids)
            self.progress(0, len(self.ids), None)

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        if session.items:
            self.ids = [item.nodeid for item in session.items]

    @pytest.hookimpl(optionalhook=True)
    def pytest_handlecrashitem(self, crashitem: str, report: Any, sched: Any) -> None:
        worker = report.node.gateway.id if getattr(report, "node", None) is not None else _worker_in(report)
        verdict, message = cause_of_death(Path(self.options.journal), worker, crashitem)
        case = self._case(crashitem)
        result = Result.of(case, "crash")
        result.verdict, result.message = verdict, message
        result.seconds = case.time_limits * self.options.timeout if verdict == "timeout" else 0.0
        finish(result, self.target)
        report.user_properties = [(PROPERTY, {k: getattr(result, k) for k in Result.__slots__})]
        key = f"{result.op}/{','.join(result.dtypes.values()) or '-'}"
        self._crashes[key] += 1
        if self._crashes[key] == CRASHES_BEFORE_QUARANTINE:
            quarantine(Path(self.options.journal), key)

    def _note_hang(self, result: Result) -> None:
        """Gives an op up when too many of its cases did not end: each costs a time limit."""
        if not self.options.journal or result.verdict != "timeout" or result.message.startswith(NOT_RUN):
            return
        self._hangs[result.op] += 1
        if self._hangs[result.op] == HANGS_BEFORE_GIVING_UP:
            give_up(Path(self.options.journal), result.op)

    def _case(self, case_id: str) -> Case:
        if self._cases is None:
            self._cases = {c.id: c for c in collect(self.target, self.options)}
        return self._cases[case_id]

    @pytest.hookimpl
    def pytest_keyboard_interrupt(self) -> None:
        """Gives workers, which may be compiling, little time to end: the user who stops a run waits for its report."""
        workers = self._session.config.pluginmanager.getplugin("dsession") if self._session is not None else None
        nodes = getattr(workers, "nodemanager", None)
        if nodes is not None:
            nodes.EXIT_TIMEOUT = _SECONDS_TO_END

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        result = result_of(report)
        if result is not None:
            self.results[result.id] = result
            self._note_hang(result)
            self.progress(len(self.results), len(self.ids), result)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self.errors.append(str(report.longrepr))

    @pytest.hookimpl(optionalhook=True)
    def pytest_internalerror(self, excrepr: Any) -> None:
        self.errors.append(str(excrepr))

    def ordered(self, stopped: bool) -> list[Result]:
        """Returns all results in the order of collection; a case that no worker reached is a crash.

        stopped: the user has stopped the run, which is no fault of these cases: they have no results.
        """
        if stopped:
            return [self.results[case_id] for case_id in self.ids if case_id in self.results]
        result = []
        for case_id in self.ids:
            found = self.results.get(case_id)
            if found is None:
                found = Result.of(self._case(case_id), "crash")
                found.message = "the case was never reached: " + (
                    _last_line(self.errors[0]) if self.errors else "the run ended early"
                )
            result.append(found)
        return result


def idle_suites(results: Sequence[Result], options: Options) -> list[str]:
    """Returns the suites that were asked for and have no case on this device; none where a
    part of the suite was chosen.
    """
    if options.ops or options.keyword or options.share[1] > 1 or options.level != "all":
        return []
    used = {r.suite for r in results}
    return [name for name in collectors() if name not in used and name != "soak" and options.wants_suite(name)]


def _last_line(text: str) -> str:
    return next((line.strip() for line in reversed(text.splitlines()) if line.strip()), "")


def _worker_in(report: Any) -> str:
    """Returns the worker's name from xdist's message: ``worker 'gw1' crashed while running ...``."""
    text = str(report.longrepr)
    return text.split("'")[1] if text.count("'") >= 2 else ""


@contextmanager
def _stopped_by_sigterm() -> Iterator[None]:
    """Makes SIGTERM, by which a CI system stops a job, end what runs within the block as Ctrl-C does."""
    if threading.current_thread() is not threading.main_thread():  # no other gets signals
        yield
        return

    def stop(number: int, _: FrameType | None) -> None:
        signal.signal(
            number, signal.SIG_IGN
        )  # one that comes twice, as to a group of processes, interrupts no clean-up
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


@contextmanager
def _without_pytest_options() -> Iterator[None]:
    """PYTEST_ADDOPTS is for the user's own tests."""
    kept = os.environ.pop("PYTEST_ADDOPTS", None)
    try:
        yield
    finally:
        if kept is not None:
            os.environ["PYTEST_ADDOPTS"] = kept


def run(target: Target, options: Options, *, jobs: int, progress: Progress = lambda *_: None) -> Run:
    """Runs the cases that the options ask for; where the user stops it, the results are those of the cases so far.

    jobs: worker processes; 0 runs in this process, without isolation.
    """
    start, began_with = time.perf_counter(), sources()
    with tempfile.TemporaryDirectory(prefix="conformance-") as directory, _without_pytest_options():
        options = replace(options, journal=directory if jobs else "")
        reporter = Reporter(target, options, progress, jobs)
        arguments = [
            str(CASES_FILE), f"--timberframe-options={options.to_json()}", f"--rootdir={CASES_FILE.parent}",
            f"-c{CASES_FILE.parent / 'pytest.ini'}", "-pno:cacheprovider", "-pno:randomly", "-pno:faulthandler",
            "--assert=plain", "--benchmark-disable", f"--basetemp={directory}/tmp",
        ]  # fmt: skip
        if jobs:
            arguments += [f"-n{jobs}", "--dist=load", "--max-worker-restart=1000000"]
        with _stopped_by_sigterm():
            status = pytest.main(arguments, plugins=[reporter])
    stopped = status == pytest.ExitCode.INTERRUPTED and not reporter.errors
    if stopped and not reporter.ids:
        raise NoStartError("the run was stopped before its first case")
    if status not in ORDINARY and not stopped and not reporter.errors:
        reporter.errors.append(f"pytest ended with status {int(status)}")
    if reporter.errors and not reporter.ids:
        raise NoStartError(reporter.errors[0])
    results = reporter.ordered(stopped)
    left = len(reporter.ids) - len(results)
    absent = [] if options.partial else sorted(set(required_ops()) - {op.name for op in registry.all_ops()})
    known = {**environment(target.device.attributes.modules), **began_with}
    return Run(
        describe_device(target.device), known, results, time.perf_counter() - start,
        {LEVELS[-1]: absent} if absent else {}, options.partial or left > 0, level=options.highest_level,
        profile=target.profile.as_dict(), idle=[] if left else idle_suites(results, options), not_run=left,
    )  # fmt: skip
