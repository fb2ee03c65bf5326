"""All that a plugin imports of Timberframe is the SDK. Our own keep to that, so it has what a vendor needs."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

CORE = ("timberframe_core", "timberframe_ops")
PLUGINS = Path(__file__).parents[2] / "plugins"


def core_imports(plugin: str) -> Iterator[str]:
    """Yields what the plugin's files import of the core, in functions, too."""
    for path in (PLUGINS / plugin / "src").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and node.module:
                yield from (f"{node.module}.{a.name}" for a in node.names if node.module.startswith(CORE))
            elif isinstance(node, ast.Import):
                yield from (a.name for a in node.names if a.name.startswith(CORE))


@pytest.mark.parametrize("plugin", ["opencl", "cuda", "ray"])
def test_devices_import_nothing_of_the_core(plugin: str) -> None:
    assert sorted(core_imports(plugin)) == []


@pytest.mark.parametrize("plugin", ["cpu", "accelerator"])
def test_kernels_import_of_the_core_only_what_ops_define(plugin: str) -> None:
    ops = ("timberframe_core.ops.", "timberframe_ops.")
    assert [name for name in core_imports(plugin) if not name.startswith(ops)] == []
