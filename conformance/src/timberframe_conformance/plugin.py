"""The pytest plugin: ``pytest --timberframe-device=acme`` collects the cases of a device as test items."""

from __future__ import annotations

import dataclasses
import gc
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from timberframe_conformance.case import FAILING, LEVELS, NOT_RUN, Case, Result
from timberframe_conformance.commands import UsageError, duration, open_device, split_names
from timberframe_conformance.isolation.asking import questions_over, watch_questions
from timberframe_conformance.isolation.child import run_in_child
from timberframe_conformance.isolation.journal import HANGS_BEFORE_GIVING_UP, Journal
from timberframe_conformance.isolation.loading import watch_loading
from timberframe_conformance.options import DEFAULT_TIMEOUT, Options
from timberframe_core import logging
from timberframe_core.fallback import STRICT_VARIABLE

CASES_FILE = Path(__file__).parent / "data" / "cases.conformance"
"""The file that represents all cases on pytest's command line."""

FREEZE_EVERY = 1000
"""Number of cases after which live objects are excluded from garbage collection."""

PROPERTY = "timberframe-conformance"
"""Name of the user property of a report that holds the Result as a dict."""


_SELECTING = ("level", "op", "suite", "timeout", "profile")
"""Options that say which cases of a device are run, and how."""


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("timberframe", "Timberframe device conformance")
    group.addoption("--timberframe-device", metavar="NAME", help="collect the conformance cases of this device")
    group.addoption("--timberframe-level", choices=[*LEVELS, "all", "soak"], help="it and those below (default: all)")
    group.addoption("--timberframe-op", default="", metavar="A,B", help="only cases of these ops")
    group.addoption("--timberframe-suite", default="", metavar="A,B", help="only these suites")
    group.addoption("--timberframe-timeout", type=duration, metavar="S", help="seconds for one case (default: 30)")
    group.addoption("--timberframe-profile", default="", metavar="FILE", help="the device's profile")
    group.addoption("--timberframe-options", default="", help="all of these as JSON, from the conformance command")


def options_of(config: pytest.Config) -> Options | None:
    """Returns the options of the run; None if no device is named, and then the plugin does nothing."""
    text = config.getoption("timberframe_options")
    if text:
        return Options.from_json(text)
    device = config.getoption("timberframe_device")
    if not device:
        return None
    return Options(
        device,
        config.getoption("timberframe_level") or "all",
        split_names(config.getoption("timberframe_op")),
        split_names(config.getoption("timberframe_suite")),
        config.getoption("timberframe_timeout") or DEFAULT_TIMEOUT,
        config.getoption("timberframe_profile"),
    )


def pytest_configure(config: pytest.Config) -> None:
    options = options_of(config)
    if options is None:
        without = [f"--timberframe-{name}" for name in _SELECTING if config.getoption(f"timberframe_{name}")]
        if without:
            raise pytest.UsageError(
                f"{', '.join(without)}: no effect without a device; --timberframe-device is required"
            )
        return
    if not config.getoption("timberframe_options"):
        from timberframe_conformance.collect import check_names

        try:
            check_names(options)
        except UsageError as e:
            raise pytest.UsageError(str(e)) from None
    os.environ.setdefault(STRICT_VARIABLE, "1")  # else a rewrite that fails would only be slow
    if str(CASES_FILE) not in config.args:
        config.args.append(str(CASES_FILE))


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    options = options_of(parent.config)
    if file_path == CASES_FILE and options is not None:
        collector: pytest.Collector = CasesFile.from_parent(parent, path=file_path, options=options)
        return collector
    return None


class CasesFile(pytest.File):
    """All cases of the device under test."""

    def __init__(self, *, options: Options, **rest: Any) -> None:
        super().__init__(**rest)
        self.options = options

    def collect(self) -> Iterator[pytest.Item]:
        from timberframe_conformance.collect import collect

        if self.options.journal:
            watch_loading(Path(self.options.journal), worker_name(), self.options.timeout)
        try:
            with quiet():  # the command has printed which plugins failed
                target = open_device(self.options)
        except UsageError as e:
            raise pytest.UsageError(str(e)) from None
        runner = Runner(target, self.options)
        if self.options.journal:
            watch_questions(Path(self.options.journal), worker_name(), self.options.timeout)
        for case in collect(target, self.options):
            yield CaseItem.from_parent(self, name=case.id, nodeid=case.id, case=case, runner=runner)
        questions_over()  # those that cases ask have the time limits of the cases


def worker_name() -> str:
    """Returns the name of this worker process, as xdist gives it."""
    return os.environ.get("PYTEST_XDIST_WORKER", "main")


@contextmanager
def quiet() -> Iterator[None]:
    """In the block no warnings are logged."""
    old = logging.get_verbosity()
    logging.set_verbosity(logging.ERROR)
    try:
        yield
    finally:
        logging.set_verbosity(old)


class Runner:
    """Runs cases in this process, keeping the journal when there is one."""

    def __init__(self, target: Any, options: Options) -> None:
        self.target = target
        self.options = options
        self._journal: Journal | None = None
        self._count = 0

    def run(self, case: Case) -> Result:
        """Returns the verdict on a case."""
        from timberframe_conformance.judge import finish, judge_case

        if self._count % FREEZE_EVERY == 0:
            # Tens of thousands of cases stay alive; without this each garbage collection would walk over all of them.
            gc.collect()
            gc.freeze()
        self._count += 1
        if not self.options.journal:
            lost = self.target.device.lost  # to an earlier case
            return finish(run_in_child(case, self.options), self.target) if lost else judge_case(case, self.target)
        if self._journal is None:
            self._journal = Journal(Path(self.options.journal), worker_name(), self.options.timeout)
        if self._journal.is_given_up(case.op):
            return finish(not_run(case), self.target)
        if case.isolate or self._journal.is_quarantined(f"{case.op}/{case.dtype_label}"):
            return finish(run_in_child(case, self.options), self.target)
        self._journal.begin(case.id, case.time_limits)
        try:
            result = judge_case(case, self.target)
            if self.target.device.lost:
                self._journal.end_process(result.message)
            return result
        finally:
            self._journal.end()


def not_run(case: Case) -> Result:
    """Returns the verdict on a case of an op that hung too often."""
    result = Result.of(case, "timeout")
    result.message = f"{NOT_RUN}: {case.op} hung in {HANGS_BEFORE_GIVING_UP} cases"
    result.cause = f"{case.op}: {NOT_RUN}"  # apart from the hangs themselves, whose messages say where
    return result


class CaseItem(pytest.Item):
    """One case. It has no fixtures, and one report instead of three: there may be tens of thousands."""

    def __init__(self, *, case: Case, runner: Runner, **rest: Any) -> None:
        super().__init__(**rest)
        self.case = case
        self.runner = runner

    def runtest(self) -> None:
        """Not used: pytest_runtest_protocol below runs cases."""

    def reportinfo(self) -> tuple[Path, None, str]:
        return self.path, None, self.case.id


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
    if not isinstance(item, CaseItem):
        return None
    result = item.runner.run(item.case)
    item.ihook.pytest_runtest_logreport(report=report_of(result, item.location))
    return True


def report_of(result: Result, location: tuple[str, int | None, str]) -> pytest.TestReport:
    """Returns a pytest report that carries the result."""
    outcome: Any = "passed" if result.verdict == "pass" else "failed" if result.verdict in FAILING else "skipped"
    detail: Any = None
    if outcome == "failed":
        detail = f"{result.verdict}: {result.message}\n{result.repro}"
    elif outcome == "skipped":
        detail = (location[0], location[1] or 0, f"{result.verdict}: {result.message}")
    return pytest.TestReport(
        result.id, location, {}, outcome, detail, "call", duration=result.seconds,
        user_properties=[(PROPERTY, dataclasses.asdict(result))],
    )  # fmt: skip


def result_of(report: pytest.TestReport) -> Result | None:
    """Returns the result that a report carries; None for reports of other tests."""
    properties: list[tuple[str, Any]] = report.user_properties
    for name, value in properties:
        if name == PROPERTY:
            return Result(**value)
    return None
