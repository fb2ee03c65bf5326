"""Core and SDK where the front end is not installed: graphs are built, differentiated, run, exported and imported."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

PRELUDE = """
import sys

class NoFrontEnd:
    "Refuses `timberframe` and all that is in it."
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "timberframe":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, NoFrontEnd())

import numpy as np
from timberframe_core.dtypes import float32
from timberframe_core.gradients.reverse import gradients
from timberframe_core.graph.apply import apply_op
from timberframe_core.graph.graph import Graph
from timberframe_core.graphdef.importer import import_graph_def
from timberframe_core.plugin import loader
from timberframe_core.runtime.session import Session
from timberframe_sdk import reference_device

loader.registry.add("reference", reference_device)

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
    "evaluates in the default session": (
        """
with Session(graph=graph):
    print((x + x).eval({x: [1, 2, 3]}))
""",
        "[2. 4. 6.]",
    ),
}


@pytest.mark.parametrize("what", PROGRAMS)
def test_core_without_front_end(what: str) -> None:
    program, printed = PROGRAMS[what]
    ran = subprocess.run(
        [sys.executable, "-c", PRELUDE + program],
        env={**os.environ, "TIMBERFRAME_PLUGINS": "reference"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (ran.stdout.strip(), ran.stderr) == (printed, "")
