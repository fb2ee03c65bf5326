"""Devices in NumPy draw the numbers of every other device."""

from __future__ import annotations

import numpy as np
import pytest

import timberframe as tf


def _three_runs(device: str, op: str) -> list[np.ndarray]:
    with tf.Graph().as_default(), tf.device(device):
        draw = {"uniform": tf.random_uniform, "normal": tf.random_normal, "truncated": tf.truncated_normal}[op]
        x = draw([1001], seed=4)
        with tf.Session() as session:
            return [session.run(x) for _ in range(3)]


def test_uniforms_are_bit_equal_on_two_devices() -> None:
    np.testing.assert_array_equal(_three_runs("/device:NUMPY:0", "uniform"), _three_runs("/device:CPU:0", "uniform"))


@pytest.mark.parametrize("op", ["normal", "truncated"])
def test_normals_of_two_devices_agree_within_their_roundings(op: str) -> None:
    """Five roundings on each side, and one each for the deviation and the mean."""
    pairs = zip(_three_runs("/device:NUMPY:0", op), _three_runs("/device:CPU:0", op), strict=True)
    for numpy, cpu in pairs:
        np.testing.assert_allclose(numpy, cpu, rtol=6 * np.finfo(np.float32).eps)
