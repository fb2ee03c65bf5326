"""Normal numbers between bounds that a group draws together are those that one work-item draws, errors included."""

from __future__ import annotations

import subprocess
import sys

import pytest

PROGRAM = """
import numpy as np
import timberframe as tf
import timberframe_accelerator.kernels.random as kernels

LOW = np.array([-1, -9, 2, 0.5, -2, -np.inf, 5.3])  # by normals, by exponentials and by uniforms
HIGH = np.array([1, 9, 9, 0.6, -1.9, 0.3, np.inf])

def draw(dtype, count, large_batch, mean=0.0):
    kernels._LARGE_BATCH = large_batch
    means = np.full(7, mean)
    with tf.Graph().as_default(), tf.device("/device:CUDA:0"), tf.Session() as session:
        fed = {tf.placeholder(dtype, a.shape): a.astype(dtype) for a in (means, np.ones(7), LOW, HIGH)}
        drawn = tf.random.stateless_parameterized_truncated_normal((count, 7), [3, 5], *[*fed][:2], *[*fed][2:])
        return session.run(drawn, fed)

for dtype in ("float16", "float32", "float64"):
    for count in (1, 130, 2500):
        drawn = draw(dtype, count, 1)
        np.testing.assert_array_equal(drawn, draw(dtype, count, 1 << 40))
        assert ((drawn >= LOW - 0.01) & (drawn <= HIGH + 0.01)).all()
for large_batch in (1, 1 << 40):
    try:
        draw("float32", 100, large_batch, np.nan)
    except tf.errors.InternalError as e:
        print(str(e).split(": ")[1])
"""


@pytest.mark.slow
@pytest.mark.parametrize("streams", ["at once"], indirect=True)
def test_a_group_draws_what_one_work_item_draws(emulated_environment: dict[str, str]) -> None:
    environment = emulated_environment | {"TIMBERFRAME_PLUGINS": "cpu,cuda"}
    command = [sys.executable, "-c", PROGRAM]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert done.stdout.splitlines() == ["row 0"] * 2, done.stdout + done.stderr
