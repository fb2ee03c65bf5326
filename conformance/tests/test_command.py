"""The command `conformance`, on a device that computes every op by its reference."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from timberframe_conformance import runner
from timberframe_conformance.replay import judge_outputs
from timberframe_conformance.reports import environment, terminal
from timberframe_core.dtypes import as_dtype
from timberframe_core.ops.definition import registry
from timberframe_core.standard_output import READER_LEFT

pytestmark = pytest.mark.slow


def test_a_report_names_the_commit_that_its_run_began_with(
    command: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runner, "sources", lambda: {"git": "before"})
    monkeypatch.setattr(environment, "git_revision", lambda: "after")
    command("run", "--device=reference", "--op=Neg", "--suite=errors", "--jobs=0", f"--json={tmp_path / 'run.json'}")
    assert json.loads((tmp_path / "run.json").read_text())["environment"]["git"] == "before"


def test_run_of_a_correct_device_passes(command: Any, tmp_path: Path) -> None:
    report = tmp_path / "run.json"
    status, output, _ = command("run", "--device=reference", "--op=Tanh,Sum", "--jobs=0", f"--json={report}")
    assert status == 0, output
    data = json.loads(report.read_text())
    assert set(data) >= {"device", "environment", "suite_version", "summary", "levels", "cases"}
    wanted = {"id", "suite", "op", "dtypes", "verdict", "max_ulp", "limit", "seconds", "message", "repro"}
    assert set(data["cases"][0]) >= wanted
    skipped = data["summary"]["unsupported"] + data["summary"]["not applicable"]
    assert data["summary"]["pass"] + skipped == data["summary"]["cases"]


def test_todo_of_a_device_that_lacks_nothing_has_status_0(command: Any) -> None:
    status, output, _ = command("todo", "--device=cpu", "--level=core", "--jobs=0")
    assert status == 0
    assert "core: nothing to do" in output
    assert "inference" not in output


def test_todo_lists_what_references_compute(command: Any) -> None:
    status, output, _ = command("todo", "--device=reference", "--level=core", "--jobs=0")
    assert status == 1
    assert "core: 6 things to do" in output
    assert "  MatMul float32: computed by the op's reference (fallback); MLP, LeNet" in output


def test_todo_of_breadth_lists_dtypes_that_references_compute(command: Any) -> None:
    status, output, _ = command("todo", "--device=reference", "--level=breadth", "--jobs=0")
    assert status == 1
    lines = [line for line in output.splitlines() if line.startswith("  GatherV2 bool, int8, ")]
    assert [line.endswith(" complex128, string: computed by the op's reference (fallback)") for line in lines] == [True]


def test_the_cpu_lacks_nothing_for_breadth(command: Any) -> None:
    status, output, _ = command("todo", "--device=cpu", "--level=breadth", "--jobs=0")
    assert (status, "breadth: nothing to do" in output) == (0, True)


def test_the_status_is_0_if_the_required_level_is_reached(command: Any, tmp_path: Path) -> None:
    report = tmp_path / "run.json"
    status, output, _ = command("run", "--device=cpu", "--require=core", "--jobs=0", f"--json={report}")
    assert status == 0, output
    assert list(json.loads(report.read_text())["levels"]) == ["core"]


def test_the_status_is_1_if_the_required_level_is_not_reached(command: Any) -> None:
    status, output, _ = command("run", "--device=reference", "--require=core", "--jobs=0")
    assert status == 1
    assert "computed by references, which counts for no level: BiasAdd" in output


def test_a_required_level_is_run_as_a_whole(command: Any) -> None:
    status, _, errors = command("run", "--device=reference", "--require=core", "--op=MatMul", "--jobs=0")
    assert status == 2
    assert "with a part of the level" in errors


def test_absent_device_is_a_wrong_call(command: Any) -> None:
    status, _, errors = command("run", "--device=acme")
    assert status == 2
    assert "device 'acme' does not exist" in errors
    assert "/device:REFERENCE:0" in errors


@pytest.mark.parametrize("name", ["bench", "mutants"])
def test_absent_device_is_a_wrong_call_of_every_command(name: str) -> None:
    command = [sys.executable, "-m", "timberframe_conformance.cli", name, "--device=acme"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr.startswith("conformance: device 'acme' does not exist")


def test_list_ends_quietly_when_its_output_is_closed() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    command = [sys.executable, "-m", "timberframe_conformance.cli", "list", "--device=cpu", "--op=Neg"]
    done = subprocess.run(command, stdout=writing, stderr=subprocess.PIPE, check=False)
    os.close(writing)
    assert (done.returncode, done.stderr) == (READER_LEFT, b"")


def test_op_without_samples_is_named_as_the_reason_for_no_cases(command: Any) -> None:
    status, _, errors = command("run", "--device=reference", "--op=QueueSizeV2", "--jobs=0")
    assert status == 2
    assert "no samples, of which cases are made, are defined for QueueSizeV2; no device runs" in errors


def test_unknown_op_is_a_wrong_call(command: Any) -> None:
    status, _, errors = command("run", "--device=reference", "--op=Tahn")
    assert status == 2
    assert "Tanh" in errors


def test_an_op_of_a_plugin_is_found_without_an_entry_point_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "late_ops.py").write_text("""
from timberframe_sdk import Arg, Sample, define_op, hookimpl, reference_kernels

define_op(
    "Late>Same",
    inputs=["x: float"],
    outputs=["y: float"],
    doc="x.",
    shape=lambda c: [c.shapes[0]],
    reference=lambda attrs, x: x,
    samples=lambda: [Sample([Arg((3,))])],
)


@hookimpl
def timberframe_kernels():
    return reference_kernels("CPU", ["Late>Same"])
""")
    (tmp_path / "late_ops-0.1.dist-info").mkdir()
    (tmp_path / "late_ops-0.1.dist-info/METADATA").write_text("Metadata-Version: 2.1\nName: late-ops\nVersion: 0.1\n")
    (tmp_path / "late_ops-0.1.dist-info/entry_points.txt").write_text("[timberframe]\nlate = late_ops\n")
    command = [sys.executable, "-m", "timberframe_conformance.cli", "list", "--device=cpu", "--op=Late>Same"]
    done = subprocess.run(
        command, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": str(tmp_path)}, check=False
    )
    assert "forward/Late>Same/" in done.stdout, done.stderr


def test_unknown_option_is_a_wrong_call(command: Any) -> None:
    assert command("run", "--device=reference", "--frobnicate")[0] == 2


def test_list_prints_ids(command: Any) -> None:
    status, output, _ = command("list", "--device=reference", "--op=Tanh", "--suite=forward")
    assert status == 0
    assert all(line.startswith("forward/Tanh/") for line in output.splitlines())


def test_keyword_selects_cases(command: Any, tmp_path: Path) -> None:
    report = tmp_path / "run.json"
    command("run", "--device=reference", "--op=Tanh", "-k", "forward and float16", "--jobs=0", f"--json={report}")
    ids = [c["id"] for c in json.loads(report.read_text())["cases"]]
    assert ids
    assert all(i.startswith("forward/Tanh/") and "float16" in i for i in ids)


def test_ops_of_which_no_case_is_selected_are_named(command: Any) -> None:
    status, output, _ = command("run", "--device=reference", "--op=AddV2,Tanh", "-k", "forward and Tanh", "--jobs=0")
    assert status == 0
    assert "no case was selected of AddV2\n" in output


def test_repro_script_runs_alone(command: Any, tmp_path: Path) -> None:
    _, output, _ = command("list", "--device=reference", "--op=Sum", "--suite=forward")
    for case in output.splitlines()[:: len(output.splitlines()) // 3]:
        status, script, _ = command("repro", "--device=reference", case)
        assert status == 0
        path = tmp_path / "repro.py"
        path.write_text(script)
        done = subprocess.run([sys.executable, str(path)], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        assert "expected" in done.stdout
        assert done.stdout.endswith("right, within the limit of the op\n")


def test_repro_script_ends_with_status_1_where_the_outputs_are_wrong(capsys: pytest.CaptureFixture[str]) -> None:
    x = np.float32([1.0, 2.0])
    with pytest.raises(SystemExit) as ended:
        judge_outputs(registry.get("Neg"), {"T": as_dtype("float32")}, [x], np.float32([-1.0, 2.0]))
    assert ended.value.code == 1
    assert "1 of 2 elements differ; at [1]: got np.float32(2.0)" in capsys.readouterr().out


def test_repro_of_an_unknown_case_is_a_wrong_call(command: Any) -> None:
    status, _, errors = command("repro", "--device=reference", "forward/Tanh/float32/nothing#99")
    assert status == 2
    assert "conformance list" in errors


@pytest.fixture
def reports(command: Any, tmp_path: Path) -> tuple[Path, Path]:
    """Two reports: of a correct device, and the same with one case changed to a failure."""
    before, after = tmp_path / "a.json", tmp_path / "b.json"
    command("run", "--device=reference", "--op=Tanh", "--suite=forward", "--jobs=0", f"--json={before}")
    data = json.loads(before.read_text())
    case = next(c for c in data["cases"] if c["verdict"] == "pass")
    case.update(verdict="fail", message="made up <for> this test", repro="conformance repro ...")
    after.write_text(json.dumps(data))
    return before, after


def test_compare_labels_regression_and_fix(command: Any, reports: tuple[Path, Path]) -> None:
    before, after = reports
    status, output, _ = command("compare", str(before), str(after))
    assert status == 1
    assert output.startswith("REGRESSION forward/Tanh")
    status, output, _ = command("compare", str(after), str(before))
    assert status == 0
    assert output.startswith("FIX forward/Tanh")


def test_report_makes_a_page_of_several_runs(command: Any, reports: tuple[Path, Path], tmp_path: Path) -> None:
    page = tmp_path / "run.html"
    status, _, _ = command("report", *map(str, reports), f"--html={page}")
    assert status == 0
    text = page.read_text()
    assert "made up \\u003cfor> this test" in text
    assert "REGRESSION" in text


def test_report_makes_junit_of_one_run(command: Any, reports: tuple[Path, Path], tmp_path: Path) -> None:
    junit = tmp_path / "run.xml"
    assert command("report", str(reports[1]), f"--junit={junit}")[0] == 0
    assert len(ET.parse(junit).getroot().findall(".//failure")) == 1
    status, _, errors = command("report", *map(str, reports), f"--junit={junit}")
    assert (status, "one is required" in errors) == (2, True)


def test_report_of_something_else_is_a_wrong_call(command: Any, tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.write_text("{}")
    assert command("report", str(path))[0] == 2


def test_waived_failure_does_not_fail_the_run(command: Any, tmp_path: Path) -> None:
    profile, report = tmp_path / "profile.toml", tmp_path / "run.json"
    profile.write_text('[[waiver]]\ncases = "forward/Tanh/float32/*"\nreason = "known"\nexpires = 2999-01-01\n')
    arguments = ["--op=Tanh", "--suite=forward", "--jobs=0", f"--profile={profile}", f"--json={report}"]
    status, output, _ = command("run", "--device=reference", *arguments)
    assert status == 0
    assert "unexpected pass" in output


@pytest.mark.parametrize("jobs", [0, 1])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_run_that_is_stopped_leaves_the_results_so_far(
    command: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, jobs: int, number: signal.Signals
) -> None:
    @contextmanager
    def stopping(*_: Any) -> Iterator[Any]:
        yield lambda done, total, result: os.kill(os.getpid(), number) if done == 3 else None

    monkeypatch.setattr(terminal, "progress", stopping)
    report = tmp_path / "run.json"
    arguments = ["--suite=forward", f"--jobs={jobs}", f"--json={report}"]
    status, output, _ = command("run", "--device=reference", "--op=Tanh,Sum", *arguments)
    data = json.loads(report.read_text())
    left = data["summary"]["not_run"]
    assert (status, len(data["cases"]), data["summary"]["pass"], data["summary"]["partial"]) == (130, 3, 3, True)
    assert f"stopped: {left} cases not run; the report is partial" in output


def test_expired_waiver_counts_for_nothing(tmp_path: Path) -> None:
    from timberframe_conformance.profile import load_profile

    path = tmp_path / "profile.toml"
    path.write_text('[[waiver]]\ncases = "*"\nreason = "old"\nexpires = 2001-01-01\n')
    assert load_profile(path).waiver("forward/Tanh/float32/x#0") is None


def test_waiver_without_reason_is_a_wrong_call(command: Any, tmp_path: Path) -> None:
    profile = tmp_path / "profile.toml"
    profile.write_text('[[waiver]]\ncases = "*"\nexpires = 2999-01-01\n')
    status, _, errors = command("run", "--device=reference", "--op=Tanh", f"--profile={profile}")
    assert status == 2
    assert "lacks reason" in errors


def test_shares_are_all_ops_and_no_op_twice(command: Any) -> None:
    listed = [
        set(command("list", "--device=reference", "--suite=forward", f"--share={k}/3")[1].split()) for k in range(3)
    ]
    whole = set(command("list", "--device=reference", "--suite=forward")[1].split())
    assert set.union(*listed) == whole
    assert sum(map(len, listed)) == len(whole)
    assert set(command("list", "--device=reference", "--suite=forward", "--share=commit/3")[1].split()) in listed


@pytest.mark.parametrize("share", ["3/3", "a/3", "1", "1/0"])
def test_an_invalid_share_is_a_wrong_call(command: Any, share: str) -> None:
    status, _, errors = command("list", "--device=reference", f"--share={share}")
    assert status == 2
    assert "K/N with 0 <= K < N" in errors


def test_a_device_whose_plugin_is_not_selected_is_refused_with_the_variable(
    command: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TIMBERFRAME_PLUGINS", "-reference")
    status, _, errors = command("run", "--device=reference")
    assert status == 2
    assert "TIMBERFRAME_PLUGINS leaves out plugin 'reference'" in errors


def test_a_selection_of_plugins_that_are_not_installed_is_a_wrong_call(
    command: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TIMBERFRAME_PLUGINS", "absent")
    status, _, errors = command("run", "--device=reference")
    assert status == 2
    assert "plugins absent are not installed; installed are " in errors
