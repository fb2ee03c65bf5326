"""The arrows between packages, and what the core must not know."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

WORKSPACE = Path(__file__).parents[2]
ALLOWED = {
    "core/src": {"timberframe"},
    "sdk/src": {"timberframe", "timberframe_sdk"},
    "plugins/cpu/src": {"timberframe", "timberframe_sdk", "timberframe_cpu"},
    "plugins/opencl/src": {"timberframe", "timberframe_sdk", "timberframe_opencl"},
    "plugins/cuda/src": {"timberframe", "timberframe_sdk", "timberframe_cuda"},
    "conformance/src": {"timberframe", "timberframe_sdk", "timberframe_conformance"},
}
ON_TOP = {"api", "gradients", "train", "saving"}
LOWER_LAYERS = {
    "ops": {"graph", "compiler", "runtime", *ON_TOP},
    "graph": {"compiler", *ON_TOP},
    "compiler": {"runtime", *ON_TOP},
    "runtime": ON_TOP,
}


def imports(path: Path, at_load: bool = False) -> Iterator[str]:
    """Modules that a file imports; at_load leaves out imports inside functions and for type checkers."""
    tree = ast.parse(path.read_text())
    for node in ast.iter_child_nodes(tree) if at_load else ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module


@pytest.mark.parametrize("package", ALLOWED)
def test_packages_import_only_those_below_them(package: str) -> None:
    for path in (WORKSPACE / package).rglob("*.py"):
        foreign = {m.split(".")[0] for m in imports(path) if m.startswith("timberframe")} - ALLOWED[package]
        assert not foreign, f"{path} imports {foreign}"


@pytest.mark.parametrize("layer", LOWER_LAYERS)
def test_lower_layers_of_the_core_load_without_the_upper_ones(layer: str) -> None:
    for path in (WORKSPACE / "core/src/timberframe" / layer).rglob("*.py"):
        parts = [m.split(".") for m in imports(path, at_load=True) if m.startswith("timberframe.")]
        wrong = {p[1] for p in parts} & LOWER_LAYERS[layer]
        assert not wrong, f"{path} imports timberframe.{wrong}"


def test_the_core_names_no_device_type() -> None:
    for path in (WORKSPACE / "core/src").rglob("*.py"):
        found = re.search(r"""["'](CPU|GPU|CUDA|OPENCL)["']""", path.read_text())
        assert found is None, f"{path} has {found}"


def test_files_stay_readable_in_one_sitting() -> None:
    long = {
        str(path.relative_to(WORKSPACE)): lines
        for package in ALLOWED
        for path in (WORKSPACE / package).rglob("*.py")
        if (lines := path.read_text().count("\n")) > 450
    }
    assert not long
