"""An op of a vendor that has a source has kernels in CUDA C++, and a place in chains."""

from __future__ import annotations

import subprocess
import sys

import pytest

PROGRAM = """
import numpy as np
import timberframe as tf
from timberframe_sdk import Pointwise, apply_op, define_op, define_source

with tf.Session() as session:  # the plugins are loaded before the op is defined
    session.list_devices()
define_op(
    "Acme>Bend", inputs=["x: T"], outputs=["y: T"], attrs=["strength: float = 1.0", "T: {float, double}"],
    doc="x + strength * x * x.", shape=lambda c: [c.shapes[0]],
    reference=lambda attrs, x: x + np.asarray(attrs["strength"], x.dtype) * x * x,
    elementwise=True, accuracy=Pointwise(float32=2, float64=2),
)
define_source("Acme>Bend", floats="{0} + ({T}){strength} * {0} * {0}")
with tf.Graph().as_default() as graph, tf.device("/device:CUDA:0"), tf.Session(graph=graph) as session:
    x = tf.placeholder(tf.float32, [3])
    bent = apply_op("Acme>Bend", [x], {"strength": 2.0})
    chain = (apply_op("Acme>Bend", [x + 1.0]) - 1.0) * 0.5
    print(session.run(bent, {x: [1, 2, 3]}).tolist(), session.run(chain, {x: [1, 2, 3]}).tolist())
    print("arena 0 bytes" in str(session.explain(chain)))
"""


@pytest.mark.slow
def test_an_op_with_a_source_runs_by_itself_and_in_chains(emulated_environment: dict[str, str]) -> None:
    run = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env=emulated_environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert run.stdout.splitlines() == ["[3.0, 10.0, 21.0] [2.5, 5.5, 9.5]", "True"], run.stderr
