"""The sources of a cluster are compiled at the same time, and what goes wrong names its node."""

from __future__ import annotations

import subprocess
import sys

import pytest

PROGRAM = """
import os, threading
os.cpu_count = lambda: 2
import numpy as np
import timberframe as tf
from cupy.cuda import nvrtc
from timberframe_core.errors import InternalError
from timberframe_sdk import Pointwise, apply_op, define_op, define_source
"""
TOGETHER = """
both, plain = threading.Barrier(2, timeout=60), nvrtc.compileProgram

def compile_with_another(program, options):
    both.wait()  # BrokenBarrierError where nothing else is compiled meanwhile
    plain(program, options)

nvrtc.compileProgram = compile_with_another
with tf.Graph().as_default(), tf.device("/device:CUDA:0"), tf.Session() as session:
    x = tf.placeholder(tf.float32, [4, 3])
    found = session.run([tf.nn.softmax(x), tf.cumsum(x, axis=1)], {x: np.ones((4, 3))})
np.testing.assert_allclose(found, [np.full((4, 3), 1 / 3), [[1, 2, 3]] * 4], rtol=1e-6)
"""
REFUSED = """
define_op(
    "Acme>Bad", inputs=["x: float"], outputs=["y: float"], doc="x.", shape=lambda c: [c.shapes[0]],
    reference=lambda attrs, x: x, elementwise=True, accuracy=Pointwise(float32=0, float64=0),
)
define_source("Acme>Bad", floats="absent({0})")
with tf.Graph().as_default(), tf.device("/device:CUDA:0"), tf.Session() as session:
    x = tf.placeholder(tf.float32, [3])
    good, bad = tf.cumsum(x), apply_op("Acme>Bad", [x], {}, name="wrong")
    for _ in range(2):
        try:
            session.run([good, bad], {x: [1, 2, 3]})
        except InternalError as e:
            assert "Acme>Bad 'wrong': /device:CUDA:0: NVRTC refuses a source with the message" in str(e), e
            assert "absent" in str(e)
        else:
            raise AssertionError("the source was accepted")
    assert session.run(good, {x: [1, 2, 3]}).tolist() == [1, 3, 6]
"""


@pytest.mark.slow
@pytest.mark.parametrize("program", [TOGETHER, REFUSED], ids=["at the same time", "refused"])
def test_sources_of_a_cluster(
    emulated_environment: dict[str, str], program: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    empty = {"TIMBERFRAME_PLUGINS": "cpu,cuda", "TIMBERFRAME_CACHE": str(tmp_path_factory.mktemp("cache"))}
    command = [sys.executable, "-c", PROGRAM + program]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=emulated_environment | empty)
    assert done.returncode == 0, done.stderr
