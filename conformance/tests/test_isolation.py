"""Crashes and hangs in worker processes become verdicts; the other cases go on."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from timberframe_conformance.collect import collect
from timberframe_conformance.isolation import recording
from timberframe_conformance.isolation.journal import cause_of_death
from timberframe_conformance.options import Options
from timberframe_conformance.suites import networks
from timberframe_conformance.target import Target, open_target

pytestmark = pytest.mark.slow


def verdicts(tmp_path: Path, mutant: str, op: str, keyword: str, timeout: float = 20) -> list[dict[str, Any]]:
    """Returns the cases of a run in worker processes, with a known bug in the device."""
    report = tmp_path / "run.json"
    command = [sys.executable, "-m", "timberframe_conformance.cli", "run", "--device=reference", f"--op={op}"]
    command += [
        "--suite=forward",
        "--jobs=1",
        f"--mutant={mutant}",
        "-k",
        keyword,
        f"--timeout={timeout}",
        f"--json={report}",
    ]
    subprocess.run(command, capture_output=True, check=False)
    cases: list[dict[str, Any]] = json.loads(report.read_text())["cases"]
    return cases


def test_crash_is_a_verdict_and_the_rest_runs_in_children(plugin_path: Path, tmp_path: Path) -> None:
    """More than three crashes of one op and dtype: the later ones happen in processes of their own."""
    done = verdicts(
        tmp_path, "crash", "Atanh", "(float32 and (/17 or /7- or /1031 or /3x5 or /7x13)) or (float64 and /17)"
    )
    counts = Counter((r["dtypes"]["T"], r["verdict"]) for r in done)
    assert counts["float32", "crash"] >= 4
    assert counts["float64", "pass"] >= 1
    assert not counts["float32", "pass"]
    assert any("process of this case ended" in r["message"] for r in done)


@pytest.mark.parametrize("name", [("hang", "Acos"), ("hang-with-gil", "Atan")])
def test_hang_is_a_timeout(plugin_path: Path, tmp_path: Path, name: tuple[str, str]) -> None:
    mutant, op = name
    done = verdicts(tmp_path, mutant, op, "float32 and /17", timeout=1)
    assert {r["verdict"] for r in done} == {"timeout"}
    assert "did not end within" in done[0]["message"]


def test_an_op_that_hangs_is_given_up_after_three_cases(plugin_path: Path, tmp_path: Path) -> None:
    done = verdicts(tmp_path, "hang", "Acos", "float32", timeout=1)
    assert {r["verdict"] for r in done} == {"timeout"}
    words = Counter(r["message"] for r in done)
    left_out = "not run: Acos hung in 3 cases"
    assert words.pop(left_out) == len(done) - 3 > 3
    assert all("did not end within" in message for message in words)
    of_left_out, of_hangs = ({r["cause"] for r in done if (r["message"] == left_out) is b} for b in (True, False))
    assert of_left_out.isdisjoint(of_hangs)


@pytest.mark.parametrize(("time_limits", "ends"), [(1, True), (30, False)])
def test_a_case_may_take_as_many_time_limits_as_it_asks_for(tmp_path: Path, time_limits: int, ends: bool) -> None:
    program = (
        "import pathlib, sys, time; from timberframe_conformance.isolation.journal import Journal;"
        f"journal = Journal(pathlib.Path({str(tmp_path)!r}), 'gw0', 0.5); journal.begin('a', {time_limits});"
        "time.sleep(1.5); journal.end()"
    )
    done = subprocess.run([sys.executable, "-c", program], check=False)
    assert bool(done.returncode) is ends


def test_a_network_as_a_whole_may_take_longer_than_other_cases(target: Target) -> None:
    """An accelerator compiles hundreds of programs for the first run of one."""
    limits = {case.op == "Model": case.time_limits for case in networks.collect(target, ())}
    assert limits == {True: networks.TIME_LIMITS}
    assert networks.TIME_LIMITS > 1


def test_a_script_of_a_case_that_hangs_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    options = Options("reference", ops=("Acos",), suites=("forward",), mutant="hang", timeout=1)
    case = next(
        c for c in collect(open_target(Options("reference")), options) if c.id.startswith("forward/Acos/float32/17")
    )
    recorder = SimpleNamespace(record=lambda folder: True, script=lambda folder, title, judged: f"{title}\n{judged}")
    monkeypatch.setattr(recording, "_START_SECONDS", 10)
    found = recording.vendor_script(cast(Target, SimpleNamespace(device=recorder)), case, options)
    assert found == f"{case.id}\n\ndid not end within 1 s\n[]"


def test_worker_that_leaves_is_a_crash(plugin_path: Path, tmp_path: Path) -> None:
    done = verdicts(tmp_path, "exit", "Asin", "float32 and /17")
    assert {r["verdict"] for r in done} == {"crash"}


def test_every_case_has_a_verdict(plugin_path: Path, tmp_path: Path) -> None:
    done = verdicts(tmp_path, "", "Neg", "float32")
    assert done
    assert {r["verdict"] for r in done} == {"pass"}


def test_cause_of_death_is_read_from_trace_and_journal(tmp_path: Path) -> None:
    (tmp_path / "gw0.journal").write_text("begin a\nend\nbegin b\n")
    (tmp_path / "gw0.trace").write_text(
        "Fatal Python error: Segmentation fault\n\nCurrent thread:\n  File x, line 1 in f\n"
    )
    verdict, message = cause_of_death(tmp_path, "gw0", "b")
    assert verdict == "crash"
    assert message.startswith("Segmentation fault at File x, line 1 in f")
    (tmp_path / "gw0.trace").write_text("Timeout (0:00:01)!\nThread:\n  File y, line 2 in g\n")
    assert cause_of_death(tmp_path, "gw0", "b")[0] == "timeout"
