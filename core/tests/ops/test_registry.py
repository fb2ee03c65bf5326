"""The registry of ops knows which module defines each, and imports it when it is needed."""

from __future__ import annotations

import runpy
import subprocess
import sys
from pathlib import Path

import pytest

from timberframe_core.errors import AlreadyExistsError
from timberframe_core.ops.definition import registry
from timberframe_core.ops.definition.opdef import define_op
from timberframe_core.ops.definition.shape_functions import unchanged


@pytest.mark.parametrize(
    ("op", "module"),
    [
        ("Tanh", "timberframe_ops.math.unary_math"),  # by a function of another module
        ("Relu", "timberframe_ops.nn.activations"),
        ("Identity", "timberframe_core.ops.base.array.identity"),
    ],
)
def test_an_op_is_of_the_module_that_defines_it(op: str, module: str) -> None:
    assert registry.module_of(op) == module


def test_a_second_definition_is_an_error_that_names_the_first() -> None:
    with pytest.raises(AlreadyExistsError, match=r"op Tanh: defined by timberframe_ops\.math\.unary_math and"):
        define_op("Tanh", inputs=["x: float"], outputs=["y: float"], doc="x.", shape=unchanged)


def test_an_op_is_imported_without_the_others() -> None:
    code = """
import sys
from timberframe_core.ops.definition import registry
registry.get("MatMul")
print(*(m for m in sys.modules if m.startswith("timberframe_ops.image.")))
"""
    assert _printed(code) == ""


def test_an_op_that_is_not_in_the_index_is_found(tmp_path: Path) -> None:
    empty = tmp_path / "index.json"
    empty.write_text("{}")
    code = f"""
from pathlib import Path
from timberframe_core.ops.definition import index
index.FILE = Path({str(empty)!r})
from timberframe_core.ops.definition import registry
print(registry.get("MatMul").name)
"""
    assert _printed(code) == "MatMul"


def test_an_op_of_the_core_is_the_first_although_it_was_not_imported() -> None:
    code = """
from timberframe_core.ops.definition.opdef import define_op
define_op("Tanh", inputs=["x: float"], outputs=["y: float"], doc="x.", shape=lambda c: c.shapes)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "AlreadyExistsError: op Tanh: defined by timberframe_ops.math.unary_math" in done.stderr


@pytest.mark.parametrize("package", ["timberframe_core.ops", "timberframe_ops"])
def test_the_index_has_what_the_modules_define(package: str) -> None:
    tool = runpy.run_path(str(Path(__file__).parents[2] / "tools" / "index_ops.py"))
    current = tool["index_as_text"](package)
    assert tool["INDEXES"][package].read_text() == current, "run `python core/tools/index_ops.py`"


def _printed(code: str) -> str:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip()
