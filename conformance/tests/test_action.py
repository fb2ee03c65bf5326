"""The GitHub Action that judges a device: the commands that its steps run are those that the command line takes."""

from __future__ import annotations

import os
import shlex
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from timberframe_conformance.cli import _parser

ACTION = Path(__file__).parents[2] / ".github" / "actions" / "judge" / "action.yml"
ECHO = '#!/bin/bash\nprintf "%q " "$@"\necho\n'


def call_of(step: str, folder: Path, **given: str) -> list[str]:
    """Returns the arguments with which a step calls `conformance`. given: inputs of the action that have no default."""
    action = yaml.safe_load(ACTION.read_text())
    found = next(s for s in action["runs"]["steps"] if s["name"] == step)
    inputs = {name: str(entry.get("default", "")) for name, entry in action["inputs"].items()} | given
    program = folder / "judge" / "bin" / "conformance"
    program.parent.mkdir(parents=True)
    program.write_text(ECHO)
    program.chmod(0o755)
    variables = {name: inputs[text.split("inputs.")[1].split()[0]] for name, text in found["env"].items()}
    done = subprocess.run(
        ["bash", "-e", "-o", "pipefail", "-c", found["run"]],
        env={**os.environ, **variables, "RUNNER_TEMP": str(folder)}, cwd=folder, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return shlex.split(done.stdout)


@pytest.mark.parametrize(
    ("device", "options", "profile"),
    [
        ("ort:acme", "library=build/libacme.so device=npu", "profile.toml"),
        ("torch:acme", "", ""),
        ("pjrt:acme", "library=build/libpjrt_acme.so", ""),
    ],
)
def test_the_action_judges_each_kind_of_device(device: str, options: str, profile: str, tmp_path: Path) -> None:
    called = call_of("Judge", tmp_path, device=device, options=options, profile=profile)
    given: Any = _parser().parse_args(called)
    assert (given.device, given.option, given.device_profile) == (device, options.split(), profile)
    assert (given.require, given.json, given.html) == (
        "core",
        Path("conformance/report.json"),
        Path("conformance/page.html"),
    )
    assert (tmp_path / "conformance").is_dir()


def test_the_action_compares_with_a_baseline(tmp_path: Path) -> None:
    given: Any = _parser().parse_args(call_of("Compare with the baseline", tmp_path, baseline="before.json"))
    assert (given.before, given.after) == (Path("before.json"), Path("conformance/report.json"))
