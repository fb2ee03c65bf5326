"""Packages that `timberframe-sdk new` writes: their own tests pass, the conformance suite among them."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from timberframe_sdk.testing.installed import VARIABLE, installed_plugin
from timberframe_sdk.tools.command import KINDS
from timberframe_sdk.tools.new_package import create

NEEDS = {"c": "setuptools", "opencl": "pyopencl"}


@pytest.mark.slow
@pytest.mark.parametrize("kind", list(KINDS))
def test_the_tests_of_a_new_package_pass(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    needed = NEEDS.get(kind, "timberframe_sdk")
    if importlib.util.find_spec(needed) is None:
        pytest.skip(f"{needed} is not installed")
    package = create("tin", kind, tmp_path)
    if kind == "c":
        run(package, "setup.py", "--quiet", "build_ext", "--inplace")
    metadata = tmp_path / "metadata"
    metadata.mkdir()
    monkeypatch.setenv(VARIABLE, os.pathsep.join([str(package / "src"), os.environ.get(VARIABLE, "")]))
    with installed_plugin(metadata, "tin", "timberframe_tin.device"):
        printed = run(package, "-m", "pytest", "-q", "-p", "no:cacheprovider")
    assert re.fullmatch(r"\d+ passed in .*", printed.splitlines()[-1])


def run(folder: Path, *arguments: str) -> str:
    """Returns what Python prints in a folder; a failure shows it."""
    done = subprocess.run([sys.executable, *arguments], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
