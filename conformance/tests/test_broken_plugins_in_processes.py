"""Plugins that end or stop the process: the command names them, and goes on with what is left.

What is wrong with the others shows without processes of their own: see test_broken_plugins.py.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from timberframe_sdk.testing.installed import installed_plugin

pytestmark = pytest.mark.slow
PLUGINS = Path(__file__).parent / "broken_plugins"
SHARED = {"broken_device", "late_device"}
ALL = sorted(path.stem for path in PLUGINS.glob("*.py") if path.stem not in SHARED)


class Ran(NamedTuple):
    """A run of the command: its exit status, what it wrote, and the cases of its report."""

    status: int
    output: str
    errors: str
    cases: list[dict[str, Any]]


Command = Callable[..., Ran]


@pytest.fixture
def conformance(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Command:
    """``conformance("acme", "--device=acme", "--op=Neg")`` runs the command where the broken plugin is installed."""
    monkeypatch.setenv("BROKEN_PLUGIN_FIRST_PROCESS", str(tmp_path / "first"))

    def run(plugin: str, *arguments: str) -> Ran:
        report = tmp_path / "run.json"
        monkeypatch.setenv("TIMBERFRAME_PLUGINS", f"cpu,{plugin}")
        command = [sys.executable, "-m", "timberframe_conformance.cli", "run", *arguments, f"--json={report}"]
        with ExitStack() as installed:
            for name in plugin.split(","):
                (tmp_path / name).mkdir()
                installed.enter_context(installed_plugin(tmp_path / name, name, name))
            path = os.pathsep.join([str(PLUGINS), os.environ["PYTHONPATH"]])
            done = subprocess.run(
                command,
                capture_output=True,
                text=True,
                check=False,
                timeout=120,
                env={**os.environ, "PYTHONPATH": path},
            )
        cases = json.loads(report.read_text())["cases"] if report.exists() else []
        return Ran(done.returncode, done.stdout, done.stderr, cases)

    return run


OTHER = ("--device=cpu", "--op=Neg", "--suite=forward", "-k", "float32 and /17")
BROKEN_AT_IMPORT = {
    "raises_at_import": "OSError: libacme.so: cannot open shared object file  [",
    "segfaults_at_import": "it ended the process while it was loaded: Segmentation fault, at File ",
    "leaves_at_import": "it ended the process while it was loaded, with status 7",
    "hangs_at_import": "it did not end within 0:00:02 while it was loaded, at File ",
}


@pytest.mark.parametrize("plugin", BROKEN_AT_IMPORT)
def test_a_plugin_that_does_not_load_is_named_and_disturbs_no_other_device(conformance: Command, plugin: str) -> None:
    ran = conformance(plugin, *OTHER, "--timeout=0.5", "--jobs=0")
    assert ran.status == 0, ran.output + ran.errors
    assert {c["verdict"] for c in ran.cases} == {"pass"}
    assert f"plugin '{plugin}' is left out: {BROKEN_AT_IMPORT[plugin]}" in ran.errors
    assert f"plugin '{plugin}' is left out: {BROKEN_AT_IMPORT[plugin]}" in ran.output
    assert ran.errors.count("is left out") == 1


@pytest.mark.parametrize("plugin", ["raises_at_import", "segfaults_at_import"])
def test_the_device_of_a_plugin_that_does_not_load_is_refused_with_reason(conformance: Command, plugin: str) -> None:
    ran = conformance(plugin, f"--device={plugin}", "--op=Neg")
    assert ran.status == 2
    assert f"conformance: device '{plugin}' does not exist" in ran.errors
    assert BROKEN_AT_IMPORT[plugin] in ran.errors.splitlines()[-1].replace("InternalError: ", "it ")


def test_a_plugin_for_another_version_of_the_sdk_is_named(conformance: Command, tmp_path: Path) -> None:
    ran = conformance("wrong_contract", "--device=wrong_contract", "--op=Neg", "--jobs=0")
    assert "plugin 'wrong_contract' failed: InternalError: it is written for version 99.0 of the contract" in ran.errors


def test_all_of_them_at_once_disturb_no_other_device(conformance: Command) -> None:
    ran = conformance(",".join(ALL), *OTHER, "--timeout=0.5", "--jobs=1")
    assert ran.status == 0, ran.output + ran.errors
    assert {c["verdict"] for c in ran.cases} == {"pass"}
    left_out = {"wrong_contract", "half_registered", "duplicated_kernel", "segfaults_in_workers", *BROKEN_AT_IMPORT}
    assert {line.split("'")[1] for line in ran.output.splitlines() if "is left out" in line} == left_out


def test_a_kernel_that_crashes_is_a_crash_with_its_place(conformance: Command) -> None:
    ran = conformance("segfaults", "--device=segfaults", "--op=Square,Neg", "--suite=guards", "-k", "/1031", "--jobs=1")
    assert {(c["op"], c["verdict"]) for c in ran.cases} == {("Square", "crash"), ("Neg", "pass")}
    crashed = next(c for c in ran.cases if c["op"] == "Square")
    assert "Segmentation fault at File " in crashed["message"]
    assert f"{PLUGINS / 'segfaults.py'}" in crashed["message"]


@pytest.mark.parametrize("jobs", [0, 1])
def test_a_kernel_that_loses_the_device_is_a_crash_of_its_own_cases_alone(conformance: Command, jobs: int) -> None:
    selection = "--op=Square,Neg", "--suite=guards", "-k", "/1031 or /7", f"--jobs={jobs}"
    ran = conformance("loses_device", "--device=loses_device", *selection)
    assert {(c["op"], c["verdict"]) for c in ran.cases} == {("Square", "crash"), ("Neg", "pass")}
    lost = [c["message"] for c in ran.cases if c["op"] == "Square"]
    assert all("the board is lost to a loose contact" in message for message in lost), lost
    assert any("Square '" in message for message in lost)


def test_a_kernel_that_hangs_is_given_up(conformance: Command) -> None:
    ran = conformance("hangs", "--device=hangs", "--op=Square,Neg", "--suite=guards", "--timeout=0.5", "--jobs=1")
    assert {(c["op"], c["verdict"]) for c in ran.cases} == {("Square", "timeout"), ("Neg", "pass")}
    hung = [c["message"] for c in ran.cases if c["op"] == "Square"]
    assert sum("did not end within" in message and str(PLUGINS / "hangs.py") in message for message in hung) == 3
    assert hung.count("not run: Square hung in 3 cases") == len(hung) - 3


IN_SUPPORTS = {
    "hangs_in_supports": "did not answer within 0:00:02, at File ",
    "crashes_in_supports": "ended the process: Segmentation fault, at File ",
}


@pytest.mark.parametrize("jobs", [0, 2])
@pytest.mark.parametrize("plugin", IN_SUPPORTS)
def test_a_device_that_does_not_say_whether_it_supports_an_op_loses_that_kernel_alone(
    conformance: Command, plugin: str, jobs: int
) -> None:
    selection = "--op=Square,Neg", "--suite=forward", "-k", "int32 or float32", "--timeout=2", f"--jobs={jobs}"
    ran = conformance(plugin, f"--device={plugin}", *selection)
    (failed,) = [c for c in ran.cases if c["verdict"] == "fail"]
    assert failed["id"] == "forward/Square/int32/supports"
    assert f"supports of the device {IN_SUPPORTS[plugin]}" in failed["message"]
    assert f"{PLUGINS / plugin}.py" in failed["message"]
    assert {(c["op"], *c["dtypes"].values()) for c in ran.cases if c["verdict"] == "pass"} == {
        ("Neg", "int32"),
        ("Neg", "float32"),
        ("Square", "float32"),
    }
    assert f"Square int32 is taken for unsupported: supports {IN_SUPPORTS[plugin]}" in ran.output


def test_a_kernel_that_hangs_when_it_is_asked_about_shapes_is_lost_alone(conformance: Command) -> None:
    selection = "--op=Square,Neg", "--suite=forward,guards", "-k", "int32 or float32", "--timeout=2", "--jobs=1"
    ran = conformance("hangs_in_suits", "--device=hangs_in_suits", *selection)
    assert [c["id"] for c in ran.cases if c["verdict"] in ("fail", "timeout")] == ["forward/Square/int32/supports"]
    assert re.search(r"did not answer within 0:00:02, at File .*hangs_in_suits.py", ran.output)


def test_a_device_that_hangs_at_every_question_is_refused(conformance: Command) -> None:
    ran = conformance("hangs_always", "--device=hangs_always", "--suite=forward", "--timeout=0.3", "--jobs=1")
    assert ran.status == 2
    assert re.search(r"did not answer within .*hangs_always.py.* no answer to 9 more", ran.errors.splitlines()[-1])


def test_a_plugin_that_ends_worker_processes_is_named(conformance: Command) -> None:
    ran = conformance("segfaults_in_workers", *OTHER, "--jobs=1")
    assert ran.status == 0, ran.output + ran.errors
    assert {c["verdict"] for c in ran.cases} == {"pass"}
    assert "'segfaults_in_workers' is left out: it ended the process while it was loaded: Segmentation" in ran.output


def test_a_device_whose_workers_do_not_start_is_a_wrong_call(conformance: Command) -> None:
    ran = conformance("segfaults_in_workers", "--device=segfaults_in_workers", "--op=Neg", "--jobs=1")
    assert ran.status == 2, ran.output + ran.errors
    assert "ended the process while it was loaded: Segmentation fault" in ran.errors.splitlines()[-1]
