"""Everything that the plugin calls of CuPy is there in the CuPy that is installed."""

from __future__ import annotations

import ast
import importlib
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

SOURCES = Path(__file__).parents[1] / "src" / "timberframe_cuda"
ROOTS = {"cupy": "cupy", "runtime": "cupy.cuda.runtime", "nvrtc": "cupy.cuda.nvrtc", "nccl": "cupy.cuda.nccl"}


def calls() -> Iterator[tuple[str, ...]]:
    """The attribute paths of `cupy`, and of its modules that the sources import, that the sources use."""
    for path in SOURCES.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            parts: list[str] = []
            while isinstance(node, ast.Attribute):
                parts.insert(0, node.attr)
                node = node.value
            if parts and isinstance(node, ast.Name) and node.id in ROOTS:
                yield (*ROOTS[node.id].split("."), *parts)


def test_cupy_has_what_the_plugin_calls() -> None:
    if find_spec("cupy") is None:
        pytest.skip("CuPy is not installed")
    missing = set()
    for names in calls():
        found = importlib.import_module("cupy")
        for name in names[1:]:
            try:
                found = getattr(found, name)
            except AttributeError:
                missing.add(".".join(names))
            except ImportError as e:  # of a library that is loaded at first use
                pytest.skip(f"a library of CUDA is missing: {e}")
    assert not missing
