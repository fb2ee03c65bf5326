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
