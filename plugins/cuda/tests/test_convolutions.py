"""Convolutions and their gradients through cuBLAS are those of the CPU in float64, in one piece and in many."""

from __future__ import annotations

import subprocess
import sys

import pytest

PROGRAM = """
import sys
import numpy as np
import timberframe as tf
import timberframe_accelerator.unfolding as unfolding
from cupy.cuda import cublas

unfolding.LEAST_COLUMNS, unfolding.PIECE_BYTES = 0, int(sys.argv[1])
rng = np.random.default_rng(0)
LIMITS = {"float16": 3e-3, "bfloat16": 3e-2, "float32": 1e-5, "float64": 1e-12}

def run(spec, x, f, dtype, computed, **attrs):
    with tf.Graph().as_default(), tf.device(spec), tf.Session() as session:
        fed = [tf.placeholder(tf.float64, a.shape) for a in (x, f)]
        images, filter = (tf.cast(tf.cast(a, dtype), computed) for a in fed)
        y = tf.nn.conv2d(images, filter, **attrs)
        weights = np.cos(np.arange(np.prod(y.shape.as_list()))).reshape(y.shape.as_list())
        gradients = tf.gradients(tf.reduce_sum(tf.cast(y, tf.float64) * weights), [images, filter])
        return session.run([tf.cast(v, tf.float64) for v in (y, *gradients)], dict(zip(fed, (x, f))))

def check(taps, stride, dilation, padding, groups, layout, dtype):
    shape, steps, rates = [2, 9, 11, 8], [1, stride, stride, 1], [1, dilation, dilation, 1]
    if layout == "NCHW":
        shape, steps, rates = ([a[0], a[3], a[1], a[2]] for a in (shape, steps, rates))
    x, f = rng.standard_normal(shape), rng.standard_normal((taps, taps, 8 // groups, 6))
    attrs = dict(strides=steps, padding=padding, data_format=layout, dilations=rates)
    before = cublas.calls
    found = run("/device:CUDA:0", x, f, dtype, dtype, **attrs)
    assert cublas.calls >= before + (2 if groups > 1 and taps > 1 else 3)
    for a, b in zip(found, run("/device:CPU:0", x, f, dtype, "float64", **attrs)):
        np.testing.assert_allclose(a, b, atol=LIMITS[dtype] * np.abs(b).max(), rtol=0)

check(1, 1, 1, "SAME", 1, "NHWC", "float32")
check(1, 2, 1, "VALID", 1, "NHWC", "float32")
check(1, 1, 1, "SAME", 2, "NCHW", "bfloat16")
check(3, 1, 1, "SAME", 1, "NHWC", "float16")
check(3, 2, 1, "SAME", 2, "NHWC", "float32")
check(3, 1, 2, "VALID", 1, "NHWC", "float32")
check(2, 3, 1, "VALID", 1, "NCHW", "float64")
check(5, 2, 1, "SAME", 1, "NHWC", "bfloat16")
"""


@pytest.mark.slow
@pytest.mark.parametrize("nbytes", [1 << 25, 2000])
def test_convolutions_are_products_of_unfolded_images(emulated_environment: dict[str, str], nbytes: int) -> None:
    environment = emulated_environment | {"TIMBERFRAME_PLUGINS": "cpu,cuda"}
    command = [sys.executable, "-c", PROGRAM, str(nbytes)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stderr
