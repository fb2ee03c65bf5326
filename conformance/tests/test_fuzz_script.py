"""The script of a finding: does what the oracle did, with status 1 for as long as the failure is there."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import timberframe
from timberframe_conformance.fuzz.checks import CHECKS, REPLAYED
from timberframe_conformance.fuzz.findings import Finding, Store
from timberframe_conformance.fuzz.judge import ORACLES
from timberframe_conformance.fuzz.program import Program, Step
from timberframe_conformance.target import Target

tf: Any = timberframe

PROGRAM = Program(
    (
        Step("feed", value=np.float32([[1, 2, 3], [4, 5, 6]]), known=(None, 3)),
        Step("const", value=np.float32([1, 2, 3])),
        Step("op", "Mul", ((0, 0), (1, 0)), device="device"),
        Step("op", "Tanh", ((2, 0),)),
    ),
    ((2, 0), (3, 0)),
)


def status(target: Target, oracle: str, run: Any = None, monkeypatch: Any = None) -> int:
    """Returns the exit status of the script of a finding, with another `Session.run` where one is given."""
    text = Finding(PROGRAM, oracle, "wrong", "reference").script(target.spec)
    if run is not None:
        monkeypatch.setattr(tf.Session, "run", run)
    try:
        with tf.Graph().as_default():
            exec(compile(text, "script", "exec"), {})
    except SystemExit as e:
        return int(e.code or 0)
    return 0


@pytest.mark.parametrize("oracle", CHECKS)
def test_script_ends_with_0_when_the_failure_is_gone(target: Target, oracle: str) -> None:
    assert status(target, oracle) == 0


@pytest.mark.parametrize("oracle", [o for o in CHECKS if o not in ("run", "make_callable")])
def test_script_ends_with_1_when_results_are_wrong(
    target: Target, oracle: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    right, calls = tf.Session.run, []

    def wrong(self: Any, fetches: Any, feeds: Any = None, *rest: Any, **more: Any) -> Any:
        found = right(self, fetches, feeds, *rest, **more)
        calls.append(len(found) if isinstance(found, list | tuple) else 1)
        first = sum(n > 0 for n in calls) == 1
        if not calls[-1] or (first and oracle != "truth"):
            return found
        return type(found)(x + np.float32(1) for x in found) if isinstance(found, list | tuple) else found + 1

    assert status(target, oracle, wrong, monkeypatch) == 1
    assert "expected" in capsys.readouterr().out


def test_script_imports_only_what_it_uses(target: Target) -> None:
    text = Finding(PROGRAM, "truth", "wrong", "reference").script(target.spec)
    assert "ml_dtypes" not in text
    assert "base64" not in text


def test_script_of_another_oracle_names_the_command_that_replays_it(target: Target) -> None:
    finding = Finding(PROGRAM, "slopes", "wrong", "reference")
    assert f"conformance fuzz --device=reference --replay {finding.name}.json" in finding.script(target.spec)


def test_script_found_with_a_mutant_puts_it_in(target: Target) -> None:
    finding = Finding(PROGRAM, "slopes", "wrong", "reference", mutant="stale-sizes")
    text = finding.script(target.spec)
    assert "--mutant stale-sizes" in text
    assert "FRAMEWORK_MUTANTS['stale-sizes'].apply()" in text


@pytest.mark.parametrize("oracle", sorted(REPLAYED))
def test_script_of_an_oracle_with_parts_of_the_suite_has_the_finding_judged(
    target: Target, oracle: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: list[list[str]] = []
    monkeypatch.setattr("timberframe_conformance.cli.main", lambda arguments: given.append(arguments) or 1)
    path = Store(tmp_path, "reference").add(Finding(PROGRAM, oracle, "wrong", "reference"), target.spec)
    with tf.Graph().as_default(), pytest.raises(SystemExit, match="1"):
        exec(compile(path.read_text(), "script", "exec"), {"__file__": str(path)})
    assert given[0][:2] == ["fuzz", "--device=reference"]
    assert given[0][-2:] == ["--replay", str(path.with_suffix(".json"))]


def test_every_oracle_has_a_script_that_judges(target: Target) -> None:
    assert set(ORACLES) | {"tensorflow"} == (set(CHECKS) | REPLAYED) - {"run"}


@pytest.mark.slow
def test_replay_judges_a_stored_failure(command: Any, tmp_path: Path) -> None:
    store = Store(tmp_path, "reference")
    script = store.add(Finding(PROGRAM, "truth", "wrong", "reference"), "/device:REFERENCE:0")
    found, output, _ = command("fuzz", "--device=reference", "--replay", str(script.with_suffix(".json")))
    assert found == 0
    assert "truth: passes" in output


def test_replay_of_what_is_no_finding_is_a_wrong_call(command: Any, tmp_path: Path) -> None:
    found, _, errors = command("fuzz", "--device=reference", "--replay", str(tmp_path / "none.json"))
    assert found == 2
    assert "none.json" in errors


@pytest.mark.slow
def test_script_is_a_program_of_its_own(target: Target, tmp_path: Path) -> None:
    path = tmp_path / "script.py"
    path.write_text(Finding(PROGRAM, "truth", "wrong", "cpu").script(target.spec))
    done = subprocess.run([sys.executable, path], capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr


def test_timeout_is_due_to_the_mutant_that_hangs_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    from timberframe_conformance.fuzz import prove

    monkeypatch.setattr(prove, "judge_apart", lambda *_: "")
    assert prove.is_due(Finding(PROGRAM, "timeout", "", "cpu", mutant="hangs"))
    assert not prove.is_due(Finding(PROGRAM, "timeout", "", "cpu", mutant="stale-sizes"))
