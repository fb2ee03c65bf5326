"""The arrows between packages, and what the core must not know."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

WORKSPACE = Path(__file__).parents[2]
ALLOWED = {
    "core/src": {"timberframe_core"},
    "frontend/src": {"timberframe_core", "timberframe"},
    "sdk/src": {"timberframe_core", "timberframe_sdk"},
    "plugins/cpu/src": {"timberframe_core", "timberframe_sdk", "timberframe_cpu"},
    "plugins/accelerator/src": {"timberframe_core", "timberframe_sdk", "timberframe_accelerator"},
    "plugins/opencl/src": {"timberframe_core", "timberframe_sdk", "timberframe_accelerator", "timberframe_opencl"},
    "plugins/cuda/src": {"timberframe_core", "timberframe_sdk", "timberframe_accelerator", "timberframe_cuda"},
    "conformance/src": {"timberframe_core", "timberframe", "timberframe_sdk", "timberframe_conformance"},
}
LOWER_LAYERS = {
    "ops": {"graph", "compiler", "runtime", "gradients"},
    "graph": {"compiler", "gradients"},
    "compiler": {"runtime", "gradients"},
    "runtime": {"gradients"},
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
    for path in (WORKSPACE / "core/src/timberframe_core" / layer).rglob("*.py"):
        parts = [m.split(".") for m in imports(path, at_load=True) if m.startswith("timberframe_core.")]
        wrong = {p[1] for p in parts} & LOWER_LAYERS[layer]
        assert not wrong, f"{path} imports timberframe_core.{wrong}"


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
