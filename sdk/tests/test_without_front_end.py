"""Core and SDK where the front end is not installed: graphs are built, differentiated, run, exported and imported."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

NO_FRONT_END = """
import sys

class NoFrontEnd:
    "Refuses `timberframe` and all that is in it."
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "timberframe":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, NoFrontEnd())
"""
NO_PLUGINS = """
from importlib import metadata

entries = [e for d in metadata.distributions() for e in d.entry_points if e.group != "timberframe"]
metadata.entry_points = lambda **given: metadata.EntryPoints(entries).select(**given)
"""
PRELUDE = """from timberframe_core.dtypes import float32
from timberframe_core.gradients.reverse import gradients
from timberframe_core.graph.apply import apply_op
from timberframe_core.graph.graph import Graph
from timberframe_core.graphdef.importer import import_graph_def
from timberframe_core.runtime.session import Session
from timberframe_sdk import register_plugin
from timberframe_sdk.testing import reference_device

register_plugin("reference", reference_device)

graph = Graph()
with graph.as_default():
    x = apply_op("Placeholder", [], {"dtype": float32, "shape": (3,)}, "x")
"""
PROGRAMS = {
    "runs what operators and slicing build": (
        """
with graph.as_default():
    y = 2 * x[1:] - x[0] * x[1:]
with Session(graph=graph) as session:
    print(session.run(y, {x: [3, 1, 2]}))
""",
        "[-1. -2.]",
    ),
    "differentiates to second order": (
        """
with graph.as_default():
    y = x * x * x
    (slope,) = gradients(y, x)
    (curvature,) = gradients(slope, x)
with Session(graph=graph) as session:
    print(*session.run([y, slope, curvature], {x: [1, 2, 3]}))
""",
        "[ 1.  8. 27.] [ 3. 12. 27.] [ 6. 12. 18.]",
    ),
    "runs again what it exported": (
        """
with graph.as_default():
    y = x / (x + 1)
    gradients(y, x)
message = graph.as_graph_def().SerializeToString()
with Graph().as_default() as copy:
    import_graph_def(message, name="")
with Session(graph=copy) as session:
    print(session.run("gradients/AddN:0", {"x:0": [1, 3, 0]}))
""",
        "[0.25   0.0625 1.    ]",
    ),
    "runs what TensorFlow 2 puts beside its variables": (
        """
with graph.as_default():
    handle = apply_op("VarHandleOp", attrs={"dtype": float32, "shape": (3,)})
    nothing = apply_op("DisableCopyOnRead", [handle])
    with graph.control_dependencies([nothing, apply_op("AssignVariableOp", [handle, x])]):
        read = apply_op("ReadVariableOp", [handle], {"dtype": float32})
with Session(graph=graph) as session:
    print(session.run(read, {x: [1, 2, 3]}), *session.read_variables([handle.op]))
""",
        "[1. 2. 3.] <DeviceArray float32 (3,) on /device:REFERENCE:0>",
    ),
    "evaluates in the default session": (
        """
with Session(graph=graph):
    print((x + x).eval({x: [1, 2, 3]}))
""",
        "[2. 4. 6.]",
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("what", PROGRAMS)
def test_core_without_front_end(what: str) -> None:
    program, printed = PROGRAMS[what]
    assert run(NO_FRONT_END + PRELUDE + program) == printed


@pytest.mark.slow
def test_the_example_of_the_readme_prints_what_it_says() -> None:
    text = (Path(__file__).parents[2] / "core/README.md").read_text()
    found = re.search(r"```python\n(.*?)```\n```\n(.*?)\n```", text, re.DOTALL)
    assert found is not None
    shown, printed = process(NO_FRONT_END + NO_PLUGINS + found[1])
    assert shown.endswith("install timberframe-cpu for a fast one\n")
    assert printed == found[2]


def run(program: str) -> str:
    """Returns what a program prints in a process of its own, where the reference device is the only one."""
    shown, printed = process(program, TIMBERFRAME_PLUGINS="reference")
    assert shown == ""
    return printed


def process(program: str, **settings: str) -> tuple[str, str]:
    """Returns the standard error and output of a program in a process of its own."""
    ran = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, **settings},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    return ran.stderr, ran.stdout.strip()
