"""Users' and vendors' type checkers see the types of the installed packages."""

from __future__ import annotations

import ast
import inspect
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from timberframe_core.graph import operator_types, operators

WORKSPACE = Path(__file__).parents[2]
PACKAGES = sorted(p.parent for where in ("*", "plugins/*") for p in WORKSPACE.glob(f"{where}/CHANGELOG.md"))
TEMPLATES = WORKSPACE / "sdk/src/timberframe_sdk/templates"


@pytest.mark.parametrize("folder", PACKAGES, ids=lambda p: p.name)
def test_a_package_says_that_it_has_types(folder: Path) -> None:
    for package in folder.glob("src/timberframe*/"):
        assert (package / "py.typed").is_file(), package.name


def test_each_operator_of_tensors_has_a_type() -> None:
    (declared,) = (n for n in ast.walk(ast.parse(inspect.getsource(operator_types))) if isinstance(n, ast.ClassDef))
    names = {n.name for n in ast.walk(declared) if isinstance(n, ast.FunctionDef)}
    assert names == set(operators.METHODS) - {"__div__", "__rdiv__"}, "Python 3 has no operator for these two"


@pytest.mark.slow
def test_a_program_and_a_plugin_check_strictly_against_the_installed_packages(tmp_path: Path) -> None:
    shutil.copy(Path(__file__).parent / "typed/program.py", tmp_path)
    for kind in ("python", "compiler"):
        shutil.copytree(
            TEMPLATES / kind / "src", tmp_path / kind, ignore=shutil.ignore_patterns("*.egg-info", "__pycache__")
        )
    arguments = ["--strict", "--config-file=", f"--cache-dir={WORKSPACE / '.mypy_cache/users'}"]
    done = subprocess.run(
        [sys.executable, "-m", "mypy", *arguments, "program.py", "python", "compiler"],
        cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
