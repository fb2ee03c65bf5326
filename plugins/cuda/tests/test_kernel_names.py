"""Kernels are named after what they compute, which profilers and errors show."""

from __future__ import annotations

import subprocess
import sys

import pytest

PROGRAM = """
import numpy as np
import timberframe as tf
from cupy.cuda import Module

names, plain = [], Module.get_function
Module.get_function = lambda self, name: names.append(name) or plain(self, name)
with tf.Graph().as_default(), tf.device("/device:CUDA:0"), tf.Session() as session:
    x = tf.placeholder(tf.float32, [3])
    session.run(tf.exp(tf.negative(x)) * 2.0, {x: np.ones(3)})
    session.run(tf.reduce_max(x), {x: np.ones(3)})
print(names)
"""


@pytest.mark.slow
def test_kernels_are_named_after_ops(emulated_environment: dict[str, str]) -> None:
    environment = emulated_environment | {"TIMBERFRAME_PLUGINS": "cpu,cuda"}
    command = [sys.executable, "-c", PROGRAM]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert done.stdout == "['tf_Neg_Exp_Mul', 'tf_maximum']\n", done.stdout + done.stderr
