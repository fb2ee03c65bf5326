"""Suites of installed packages: an entry point names each, which runs where it is asked for, on subjects of its own."""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from timberframe_conformance.suites.installed import installed_suites

SUITE = """
import numpy as np
import timberframe as tf
from timberframe_conformance.case import Case, Measured, WrongValuesError


def collect(target, ops):
    yield Case("acme", "acme:Twice", (("T", "float32"),), "right", lambda target: _twice(target, 2.0))
    yield Case("acme", "acme:Twice", (("T", "float32"),), "wrong", lambda target: _twice(target, 3.0))
    yield Case("acme", "acme:Moved", (), "moved", lambda target: Measured(fallback="/device:CPU:0 ran Mul"))


def _twice(target, factor):
    with tf.Graph().as_default() as graph, tf.device(target.spec):
        x = tf.placeholder(tf.float32, (2,))
        y = x * factor
    with target.session(graph) as session:
        got = session.run(y, {x: np.ones(2, np.float32)})
    if got.tolist() != [2.0, 2.0]:
        raise WrongValuesError(f"the result is {got.tolist()}; it must be [2.0, 2.0]")
"""


def install(folder: Path, source: str) -> None:
    """Writes a package that names the suite "acme" into a folder on the path."""
    (folder / "acme_suite.py").write_text(source)
    information = folder / "acme_suite-1.2.dist-info"
    information.mkdir()
    (information / "METADATA").write_text("Metadata-Version: 2.1\nName: acme-suite\nVersion: 1.2\n")
    (information / "entry_points.txt").write_text("[timberframe.suites]\nacme = acme_suite:collect\n")


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Gives a folder on the path, in which packages are found."""
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "acme_suite", raising=False)
    installed_suites.cache_clear()
    importlib.invalidate_caches()
    yield tmp_path
    installed_suites.cache_clear()


def run(command: Any, *arguments: str) -> tuple[int, str, str]:
    status, output, errors = command("run", "--device=reference", "--jobs=0", *arguments)
    return int(status), str(output), str(errors)


def refusal(command: Any, *arguments: str) -> str:
    """Returns what is said of a call that is wrong."""
    status, _, errors = run(command, *arguments)
    assert status == 2
    return errors


def test_an_installed_suite_runs_where_it_is_named(command: Any, installed: Path) -> None:
    install(installed, SUITE)
    status, output, _ = run(command, "--suite=acme")
    assert status == 1
    assert "3 cases" in output
    assert "it must be [2.0, 2.0]" in output


def test_cases_of_an_installed_suite_are_chosen_by_subject(command: Any, installed: Path) -> None:
    install(installed, SUITE)
    status, output, _ = run(command, "--suite=acme", "--op=acme:Moved")
    assert status == 0
    assert "1 case" in output


def test_a_case_of_an_installed_suite_may_pass_by_fallback(command: Any, installed: Path) -> None:
    install(installed, SUITE)
    report = installed / "run.json"
    run(command, "--suite=acme", "--op=acme:Moved", f"--json={report}")
    (case,) = json.loads(report.read_text())["cases"]
    assert (case["verdict"], case["fallback"], case["kernels"]) == ("pass", True, ["/device:CPU:0 ran Mul (fallback)"])


def test_a_run_without_names_has_no_installed_suite(command: Any, installed: Path) -> None:
    install(installed, SUITE)
    status, output, _ = command("list", "--device=reference", "--op=Neg")
    assert status == 0
    assert "acme" not in output


def test_repro_finds_a_case_of_an_installed_suite(command: Any, installed: Path) -> None:
    install(installed, SUITE)
    status, output, _ = command("repro", "--device=reference", "acme/acme:Twice/float32/wrong")
    assert status == 0
    assert "replay('acme/acme:Twice/float32/wrong', device='reference')" in output


def test_a_subject_without_its_suite_is_refused(command: Any, installed: Path) -> None:
    install(installed, SUITE)
    assert "op acme:Twice is of no suite that is named; --suite acme is required" in refusal(command, "--op=acme:Twice")


def test_a_suite_that_cannot_be_imported_says_why(command: Any, installed: Path) -> None:
    install(installed, "import acme_driver\n")
    reason = "ModuleNotFoundError: No module named 'acme_driver'"
    assert f"suite acme of acme_suite:collect: {reason}" in refusal(command, "--suite=acme")


def test_an_unknown_suite_is_refused_with_those_that_are_installed(command: Any, installed: Path) -> None:
    install(installed, SUITE)
    errors = refusal(command, "--suite=acmee")
    assert "suite acmee is not known" in errors
    assert ", acme" in errors
