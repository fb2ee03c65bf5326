"""Softmax and cross entropies of rows that work-items hold in registers, and of longer ones that are summed online."""

from __future__ import annotations

import subprocess
import sys

import pytest

PROGRAM = """
import sys
import numpy as np
import timberframe as tf

rng = np.random.default_rng(0)
INFINITY = np.inf

def rows(classes):
    x = rng.standard_normal((7, classes)) * 4
    x[1] = np.linspace(-80, 80, classes)  # the largest element changes at each step
    x[2] = -INFINITY
    x[3, : classes // 2] = -INFINITY
    x[4, classes // 3] = INFINITY
    x[5, classes // 2] = np.nan
    return x

def run(x, dtype, spec):
    labels = np.arange(7) * 5 % x.shape[1]
    with tf.Graph().as_default(), tf.device(spec), tf.Session() as session:
        fed = tf.placeholder(tf.float64, x.shape)
        logits = tf.cast(tf.cast(fed, dtype), "float64" if "CPU" in spec else dtype)
        dense = tf.cast(tf.one_hot(labels, x.shape[1]), logits.dtype)
        losses = (tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits),
                  tf.nn.softmax_cross_entropy_with_logits_v2(labels=dense, logits=logits))
        found = [tf.nn.softmax(logits), tf.nn.log_softmax(logits), *losses,
                 *(tf.gradients(loss, logits)[0] for loss in losses)]
        return session.run([tf.cast(v, tf.float64) for v in found], {fed: x})

def check(classes, dtype, rtol, atol):
    x = rows(classes)
    for found, wanted in zip(run(x, dtype, "/device:CUDA:0"), run(x, dtype, "/device:CPU:0"), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=rtol, atol=atol)

for classes in map(int, sys.argv[1:]):
    check(classes, "float32", 2e-5, 1e-7)
    check(classes, "float64", 1e-12, 1e-15)
    check(classes, "bfloat16", 2e-2, 1e-3)
"""


@pytest.mark.slow
@pytest.mark.parametrize("streams", ["at once"], indirect=True)
@pytest.mark.parametrize("classes", [("5", "17", "32"), ("33", "300"), ("5000",), ("9001",)], ids=" ".join)
def test_rows_of_each_length_are_as_on_the_cpu(emulated_environment: dict[str, str], classes: tuple[str, ...]) -> None:
    environment = emulated_environment | {"TIMBERFRAME_PLUGINS": "cpu,cuda"}
    command = [sys.executable, "-c", PROGRAM, *classes]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stderr
