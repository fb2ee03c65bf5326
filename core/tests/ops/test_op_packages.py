"""An installed package of ops that cannot be imported costs only its own ops; messages say what is wrong with it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

OPS = "Acme>Twice = acme_ops\nAcme>Thrice = acme_ops\n"
WHY = r"package acme 1\.2, entry point 'Acme>Twice = acme_ops': ModuleNotFoundError: No module named 'acme_driver'  \["
PLACE = r"acme_ops\.py:2\]"


@pytest.fixture
def acme(tmp_path: Path) -> Path:
    """A folder with the package `acme`, whose module of ops raises in line 2."""
    (tmp_path / "acme_ops.py").write_text("\nimport acme_driver\n")
    information = tmp_path / "acme-1.2.dist-info"
    information.mkdir()
    (information / "METADATA").write_text("Metadata-Version: 2.1\nName: acme\nVersion: 1.2\n")
    (information / "entry_points.txt").write_text(f"[timberframe.ops]\n{OPS}")
    return tmp_path


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Python with these arguments, where the packages of a folder are installed."""
    paths = [str(folder), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
    return subprocess.run([sys.executable, *arguments], capture_output=True, text=True, env=environment, check=False)


def raised(folder: Path, statement: str) -> str:
    """Class and message of what a statement about `tf` raises."""
    code = f"import timberframe as tf\ntry:\n    {statement}\nexcept Exception as e:\n    print(type(e).__name__, e)"
    return run(folder, "-c", code).stdout


ALL_OPS = {
    "__init__.py": "",
    "plugin.py": """
from timberframe_sdk import Pass, hookimpl

def run(rewriter):
    pass

@hookimpl
def timberframe_passes():
    return [Pass("acme", "program", run, "does nothing")]
""",
    "twice.py": """
from timberframe_sdk import define_op

define_op(
    "Acme>Twice", inputs=["x: float"], outputs=["y: float"], doc="x + x.", shape=lambda c: c.shapes,
    reference=lambda x: 2 * x,
)
""",
    "broken.py": "import acme_driver",
    "index.json": '{"twice": {"Acme>Twice": [[], 1]}, "broken": {"Acme>Thrice": [[], 1]}}',
}


@pytest.fixture
def whole(acme: Path) -> Path:
    """The folder, where an entry point stands for all ops of the package; the module of one of them raises."""
    (acme / "acme").mkdir()
    for name, text in ALL_OPS.items():
        (acme / "acme" / name).write_text(text)
    (acme / "acme-1.2.dist-info/entry_points.txt").write_text("[timberframe.ops]\n* = acme.plugin\n")
    return acme


def test_an_entry_point_stands_for_all_ops_of_a_package(whole: Path) -> None:
    code = """
import sys
from timberframe_core.ops.definition import registry

registry.get("Acme>Twice")
print(*(name for name in sys.modules if name.startswith("acme")))
"""
    assert run(whole, "-c", code).stdout.split() == ["acme", "acme.twice"]


def test_a_module_that_fails_costs_its_own_ops_alone(whole: Path) -> None:
    said = raised(whole, "tf.raw_ops.Acme_Twice; tf.raw_ops.Acme_Thrice")
    assert "entry point '* = acme.plugin': ModuleNotFoundError: No module named 'acme_driver'" in said


def test_the_passes_of_such_a_package_run_in_every_session(whole: Path) -> None:
    code = """
import timberframe as tf

with tf.Session(config=tf.SessionConfig(plugins=["cpu"])) as session:
    print([p.name for p in session.explain(tf.constant(1)).passes if p.name == "acme"])
"""
    assert run(whole, "-c", code).stdout == "['acme']\n"


@pytest.mark.parametrize("statement", ["tf.raw_ops.Acme_Twice", "getattr(tf.raw_ops, 'Acme>Twice')"])
def test_raw_ops_says_why_the_op_is_not_there(acme: Path, statement: str) -> None:
    said = raised(acme, statement)
    assert said.startswith("AttributeError tf.raw_ops has no op 'Acme")
    assert re.search(WHY + ".*" + PLACE, said), said


def test_raw_ops_has_the_other_ops(acme: Path) -> None:
    assert run(acme, "-c", "import timberframe as tf; print('MatMul' in dir(tf.raw_ops))").stdout == "True\n"


def test_an_op_that_nobody_has_is_an_attribute_error(acme: Path) -> None:
    assert raised(acme, "tf.raw_ops.no_such").startswith("AttributeError tf.raw_ops has no op 'no_such'; names are")


def test_the_command_lists_the_other_ops(acme: Path) -> None:
    done = run(acme, "-m", "timberframe", "ops")
    assert done.returncode == 0
    assert "\nMatMul " in done.stdout


def test_the_package_is_reported_once(acme: Path) -> None:
    done = run(acme, "-c", "import timberframe as tf; dir(tf.raw_ops); dir(tf.raw_ops)")
    assert done.stderr.count("ops of package acme 1.2") == 1, done.stderr


def test_an_imported_graph_with_the_op_says_why_it_is_not_there(acme: Path) -> None:
    statement = "d = tf.GraphDef(); n = d.node.add(); n.name, n.op = 'x', 'Acme>Twice'; tf.import_graph_def(d)"
    said = raised(acme, statement)
    assert said.startswith("NotFoundError GraphDef: no op is registered as Acme>Twice; every op")
    assert re.search(WHY + ".*" + PLACE, said), said


def test_a_module_that_lacks_its_op_is_named(acme: Path) -> None:
    (acme / "acme_ops.py").write_text("")
    assert "'Acme>Twice = acme_ops': the module does not define the op" in raised(acme, "tf.raw_ops.Acme_Twice")
