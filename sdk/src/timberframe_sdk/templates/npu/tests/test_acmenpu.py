"""The device ACMENPU beside the CPU, and before the conformance suite."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import timberframe as tf
from timberframe_conformance.cli import main

DEVICE, CPU = "/device:ACMENPU:0", "/device:CPU:0"
PROFILE = str(Path(__file__).parents[1] / "profile.toml")


def classify(images: Any) -> Any:
    """A small network with every kind of layer that LeNet has."""
    rng = np.random.default_rng(0)
    filters = tf.constant(rng.normal(size=(5, 5, 1, 4)).astype(np.float32))
    weights = tf.constant(rng.normal(size=(64, 10)).astype(np.float32))
    x = tf.nn.relu(tf.nn.bias_add(tf.nn.conv2d(images, filters, [1, 1, 1, 1], "SAME"), tf.ones([4])))
    x = tf.nn.max_pool(x, [1, 2, 2, 1], [1, 2, 2, 1], "VALID")
    return tf.nn.softmax(tf.matmul(tf.reshape(x, [2, 64]), weights))


def test_a_network_gives_what_it_gives_on_the_cpu() -> None:
    images = np.random.default_rng(1).normal(size=(2, 8, 8, 1)).astype(np.float32)
    found = {}
    for device in (DEVICE, CPU):
        with tf.Graph().as_default(), tf.device(device):
            x = tf.placeholder(tf.float32, [2, 8, 8, 1])
            with tf.Session() as session:
                found[device] = session.run(classify(x), {x: images})
    np.testing.assert_allclose(found[DEVICE], found[CPU], rtol=1e-4, atol=1e-6)


def test_a_network_runs_on_the_device_as_a_whole() -> None:
    with tf.Graph().as_default(), tf.device(DEVICE):
        x = tf.placeholder(tf.float32, [2, 8, 8, 1])
        with tf.Session() as session:
            stages = session.explain(classify(x), {x: np.zeros((2, 8, 8, 1))}).stages
    assert [stage.device for stage in stages] == [DEVICE]


@pytest.mark.slow
def test_the_device_reaches_level_core() -> None:
    assert main(["run", "--device=acmenpu", "--profile", PROFILE, "--require", "core"]) == 0
