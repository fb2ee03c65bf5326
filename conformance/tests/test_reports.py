"""What reports say: failures by cause, and all that a run depends on."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from rich.console import Console

from timberframe_conformance.case import Case, CaseFailedError, Measured, Result
from timberframe_conformance.judge import judge_case
from timberframe_conformance.plugin import not_run
from timberframe_conformance.reports import terminal
from timberframe_conformance.reports.environment import environment
from timberframe_conformance.reports.summary import Run, failing, load_run, write_report
from timberframe_conformance.reports.terminal import summary, waiting
from timberframe_conformance.target import Target
from timberframe_core.errors import InternalError

DEVICE = {"spec": "/device:ACME:0", "unsupported_ops": {}, "dtypes": [], "vendor": "", "model": "", "driver": ""}


def only_nhwc(target: Target) -> Measured:
    raise InternalError("NHWC only", "case")


def off(by: int) -> Callable[[Target], Measured]:
    def run(target: Target) -> Measured:
        raise CaseFailedError(f"3 of 15 elements differ; at [0, {by}]: got {by}.5, expected {by}.0")

    return run


@pytest.fixture
def failures(target: Target) -> Run:
    cases = [
        *(Case("forward", op, (), f"x{i}", only_nhwc) for op in ("Conv2D", "MaxPool") for i in range(7)),
        Case("guards", "Relu", (), "y1", off(1)),
        Case("guards", "Relu", (), "y2", off(2)),
        Case("guards", "Tanh", (), "y3", off(3)),
    ]
    return Run(DEVICE, environment(), [judge_case(c, target) for c in cases], 1.0)


def printed(run: Run) -> str:
    stream = io.StringIO()
    summary(Console(file=stream, width=200), run)
    return stream.getvalue()


def test_failures_for_the_same_reason_are_shown_once_with_their_ops(failures: Run) -> None:
    text = printed(failures)
    assert text.count("InternalError: NHWC only") == 1
    assert "and 13 more for the same reason: forward/MaxPool 7, forward/Conv2D 6" in text


def test_wrong_values_of_different_ops_are_different_reasons(failures: Run) -> None:
    text = printed(failures)
    assert text.count("elements differ") == 2
    assert "and 1 more for the same reason: guards/Relu 1" in text


def test_a_report_says_what_it_depends_on() -> None:
    known = environment()
    assert {"plugins", "suite_hash", "git", "packages"} <= known.keys()
    assert "timberframe-core" in known["packages"]
    assert len(known["suite_hash"]) == 16


def test_a_report_has_the_packages_that_a_device_computes_with() -> None:
    assert environment(("rich.table", "no_such_module"))["packages"].keys() - environment()["packages"] == {"rich"}


def test_each_result_of_a_report_names_its_kernels(target: Target) -> None:
    run = Run({}, {}, [Result("a/b/c/d", "a", "b", {}, "pass", kernels=("acme: acme.add",))], 0.0)
    assert json.loads(run.to_json())["cases"][0]["kernels"] == ["acme: acme.add"]


def test_ids_of_missing_cases_can_be_copied_from_a_narrow_page(target: Target) -> None:
    case_id = "forward/AdjustContrastv2/float32/2x2x3_scalar-offset-dynamic#0"
    missing = Result(case_id, "forward", "AdjustContrastv2", {}, "unsupported", expected=True, level="breadth")
    stream = io.StringIO()
    summary(Console(file=stream, width=60, soft_wrap=True), Run(DEVICE, environment(), [missing], 1.0))
    assert f"level breadth lacks, for example, {case_id}\n" in stream.getvalue()


def test_suites_without_a_case_for_the_device_are_named() -> None:
    assert "no case for this device: variants, patterns" in printed(
        Run(DEVICE, {}, [], 0.0, idle=("variants", "patterns"))
    )


def test_a_bar_shows_on_a_terminal_what_is_in_work_and_is_gone_afterwards() -> None:
    stream = io.StringIO()
    with waiting(Console(file=stream, width=80, force_terminal=True), 3) as update:
        update(1, "[a] program")
        assert "[a] program" in stream.getvalue()
    assert stream.getvalue().endswith("\x1b[2K")  # which clears the line


def test_nothing_is_drawn_where_there_is_no_terminal() -> None:
    stream = io.StringIO()
    with waiting(Console(file=stream, width=80), 3) as update:
        update(1, "a program")
    assert not stream.getvalue().strip()


def test_without_a_terminal_a_long_run_says_on_stderr_that_it_goes_on(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    seconds = iter([0.0, 1.0, 61.0, 61.0, 62.0])
    monkeypatch.setattr(terminal.time, "monotonic", lambda: next(seconds))
    with terminal.progress(Console(file=io.StringIO()), "/device:ACME:0") as update:
        for done in (1, 2, 3):
            update(done, 10, None)
    found = capsys.readouterr()
    assert (found.out, found.err) == ("", "/device:ACME:0: 2 of 10 cases\n")


@pytest.mark.parametrize("name", ["run.json", "run.json.xz"])
def test_a_report_is_read_as_it_was_written(failures: Run, tmp_path: Path, name: str) -> None:
    write_report(tmp_path / name, failures)
    assert load_run(tmp_path / name).to_json() == failures.to_json()


def test_a_compressed_report_is_smaller(failures: Run, tmp_path: Path) -> None:
    for name in ("run.json", "run.json.xz"):
        write_report(tmp_path / name, failures)
    assert (tmp_path / "run.json.xz").stat().st_size < (tmp_path / "run.json").stat().st_size / 2


@pytest.mark.parametrize("content", [b"{", b"\xfd7zXZ\x00", b"not compressed"])
@pytest.mark.parametrize("name", ["run.json", "run.json.xz"])
def test_a_damaged_report_is_an_error_that_names_it(content: bytes, tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ValueError, match=name):
        load_run(tmp_path / name)


def test_failures_are_in_the_order_of_the_suites() -> None:
    results = [Result(f"{s}/AddV2/-/x", s, "AddV2", {}, "fail", cause=s) for s in ("aliasing", "forward", "device")]
    assert [group[0].suite for group in failing(results)] == ["device", "forward", "aliasing"]


def test_cases_that_were_not_run_are_apart_from_the_hang_and_after_it() -> None:
    left_out = [not_run(Case("forward", "AddV2", (), detail, only_nhwc)) for detail in ("a", "c")]
    hang = Result("forward/AddV2/-/b", "forward", "AddV2", {}, "timeout", cause="AddV2: timeout")
    assert failing([*left_out, hang]) == [[hang], left_out]
