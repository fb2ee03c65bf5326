"""Plugins that are broken in one way each: the report names what is wrong, and the runs of other devices go on."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from timberframe_sdk.testing.installed import installed_plugin

PLUGINS = Path(__file__).parent / "broken_plugins"
pytestmark = pytest.mark.slow


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
        with installed_plugin(tmp_path, plugin, plugin):
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


def test_a_plugin_that_ends_worker_processes_is_named(conformance: Command) -> None:
    ran = conformance("segfaults_in_workers", *OTHER, "--jobs=1")
    assert ran.status == 0, ran.output + ran.errors
    assert {c["verdict"] for c in ran.cases} == {"pass"}
    assert "'segfaults_in_workers' is left out: it ended the process while it was loaded: Segmentation" in ran.output


def test_a_device_whose_workers_do_not_start_is_a_wrong_call(conformance: Command) -> None:
    ran = conformance("segfaults_in_workers", "--device=segfaults_in_workers", "--op=Neg", "--jobs=1")
    assert ran.status == 2, ran.output + ran.errors
    assert "ended the process while it was loaded: Segmentation fault" in ran.errors.splitlines()[-1]
