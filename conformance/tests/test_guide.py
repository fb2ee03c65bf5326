"""The runs of a part of the suite in docs/conformance.md print what it says."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest

GUIDE = (Path(__file__).parents[2] / "docs/conformance.md").read_text()
RUNS = re.findall(r"```\n\$ conformance (run [^\n]*--mutant[^\n]*)\n(.*?)```", GUIDE, re.DOTALL)
PROFILE = re.search(r"```toml\n(.*?)```", GUIDE, re.DOTALL)


def _without_times(line: str) -> str:
    return re.sub(r" +\d+\.\d$", "", re.sub(r"in [\d.]+ s", "in T s", line)).rstrip()


@pytest.mark.slow
@pytest.mark.parametrize(("arguments", "output"), RUNS)
def test_a_run_prints_what_the_guide_says(arguments: str, output: str, tmp_path: Path) -> None:
    assert PROFILE
    (tmp_path / "profile.toml").write_text(PROFILE[1])
    command = [sys.executable, "-m", "timberframe_conformance.cli", *shlex.split(arguments), "--jobs", "1"]
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
        env={**os.environ, "TIMBERFRAME_PLUGINS": "cpu"},
    )
    printed = [_without_times(line) for line in done.stdout.splitlines()]
    said = [_without_times(line) for line in output.splitlines() if line != "..."]
    assert said
    assert [line for line in said if line not in printed] == [], done.stdout + done.stderr


PUBLISHED = re.search(
    r"```\n\$ conformance (run [^\n]*--submit sub)\n(\$ conformance verify sub\n.*?)```", GUIDE, re.DOTALL
)


def _run(arguments: str, folder: Path) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "timberframe_conformance.cli", *shlex.split(arguments)],
        capture_output=True,
        text=True,
        check=False,
        cwd=folder,
        env={**os.environ, "TIMBERFRAME_PLUGINS": "cpu"},
    )
    return done.stdout + done.stderr


@pytest.mark.slow
def test_a_submission_is_verified_and_refused_as_the_guide_says(tmp_path: Path) -> None:
    assert PUBLISHED
    _, whole, changed = re.split(r"\$ conformance verify sub.*\n", PUBLISHED[2])
    _run(PUBLISHED[1], tmp_path)
    report = tmp_path / "sub/report.json"
    text = report.read_text()
    summary = json.loads(text)["summary"]
    passed = summary["pass"]
    # How many cases there are, and how many pass, follows from the processor's instruction sets.
    cases = partial(re.sub, r"\d+ cases", f"{summary['cases']} cases")
    changed = re.sub(r"pass \d+; its cases give \d+", f"pass {passed + 1}; its cases give {passed}", changed)
    assert _run("verify sub", tmp_path) == cases(whole)
    report.write_text(text.replace(f'"pass": {passed}', f'"pass": {passed + 1}', 1))
    assert _run("verify sub", tmp_path) == cases(changed)
