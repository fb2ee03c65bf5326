"""Launches captured into CUDA graphs give what launches one by one give."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

TRAINING = """
import numpy as np
import timberframe as tf
from cupy.cuda import runtime

rng = np.random.default_rng(0)
start = rng.standard_normal((8, 8)).astype(np.float32)
batches = [rng.standard_normal((6, 8)).astype(np.float32) for _ in range(8)]

def train(spec, **options):
    found = []
    with tf.Graph().as_default(), tf.device(spec):
        x, v = tf.placeholder(tf.float32, [6, 8]), tf.Variable(tf.constant(start))
        y = tf.transpose(tf.nn.softmax(tf.matmul(x, v)))
        y = tf.nn.log_softmax(tf.transpose(tf.reduce_sum(y, axis=1, keepdims=True) + y))
        loss = tf.reduce_sum(tf.gather(tf.reduce_max(y, axis=0), tf.constant([1, 3, 5])))
        step = tf.train.GradientDescentOptimizer(0.1).minimize(loss)
        with tf.Session(config=tf.SessionConfig(device_options=options)) as session:
            session.run(tf.global_variables_initializer())
            for batch in batches:
                found.append(session.run([loss, step], {x: batch})[0])
            return np.append(np.array(found), session.run(v))
"""
CAPTURED = """
captured, launched = train("/device:CUDA:0"), runtime.graphs_launched
plain = train("/device:CUDA:0", CUDA={"graphs": False})
assert launched > 4 and runtime.graphs_launched == launched, (launched, runtime.graphs_launched)
np.testing.assert_array_equal(captured, plain)
np.testing.assert_allclose(captured, train("/device:CPU:0"), rtol=1e-4, atol=1e-5)
"""
RANDOM = """
with tf.Graph().as_default(), tf.device("/device:CUDA:0"):
    x = tf.constant(np.ones((4, 3), np.float32))
    y = tf.random_uniform([4, 3], seed=7)
    for _ in range(4):
        x, y = tf.transpose(tf.nn.softmax(x)), tf.transpose(tf.nn.softmax(y))
    with tf.Session() as session:
        drawn = [session.run([x, y])[1].tobytes() for _ in range(4)]
assert len(set(drawn)) == 4
"""


def test_graphs_of_the_addresses_used_last_are_kept(cuda: Any) -> None:
    from timberframe_cuda.graphs import MOST_GRAPHS, Capture, Graphs

    graphs = Graphs()
    for key in range(MOST_GRAPHS):
        graphs.add((key,), Capture())
    assert graphs.find((0,)) is not None
    assert (graphs.is_repeated((100,)), graphs.is_repeated((100,))) == (False, True)
    graphs.add((100,), Capture())  # in place of the one that was not used for longest
    assert [key for key in (*range(MOST_GRAPHS), 100) if graphs.find((key,)) is None] == [1]


def test_addresses_that_occur_once_cost_no_graph_its_place(cuda: Any) -> None:
    from timberframe_cuda.graphs import Capture, Graphs

    graphs = Graphs()
    graphs.add((0,), Capture())
    assert not any(graphs.is_repeated((key,)) for key in range(1, 1000))
    assert graphs.find((0,)) is not None


@pytest.mark.slow
@pytest.mark.parametrize("program", [CAPTURED, RANDOM], ids=["same bits", "fresh random numbers"])
def test_graphs_change_nothing(emulated_environment: dict[str, str], program: str) -> None:
    environment = emulated_environment | {"TIMBERFRAME_PLUGINS": "cpu,cuda"}
    command = [sys.executable, "-c", TRAINING + program]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stderr
