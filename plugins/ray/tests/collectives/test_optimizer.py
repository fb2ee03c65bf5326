"""DistributedOptimizer: means of gradients, their order and bits, and how they overlap the backward pass."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

pytest.importorskip("ray", reason="ray is not installed: it has no wheel for this Python or system")

import timberframe as tf
import timberframe_ray as tfr


@pytest.fixture
def alone() -> Iterator[tfr.Group]:
    """A group of this process alone."""
    yield tfr.join(0, 1)
    tfr.leave()


@pytest.mark.slow
def test_two_processes_train_as_one_with_the_whole_batch(programs: Any) -> None:
    found = programs.in_processes(2, programs.trained_in_each_way)
    first, again, whole = found[0]
    for rank in (0, 1):
        for x, y in zip(first, found[rank][0], strict=True):
            assert x.tobytes() == y.tobytes()  # all processes have the same variables
    for x, y, z in zip(first, again, whole, strict=True):
        assert x.tobytes() == y.tobytes()  # bits are equal from run to run
        np.testing.assert_allclose(x, z, rtol=1e-5, atol=1e-6)  # sums of a split batch are rounded otherwise


def test_each_bucket_is_on_its_way_before_the_rest_of_the_backward_pass(alone: tfr.Group, programs: Any) -> None:
    x, labels = tf.placeholder(tf.float32, [8, 16]), tf.placeholder(tf.int32, [8])
    optimizer = tfr.DistributedOptimizer(tf.train.GradientDescentOptimizer(0.1), bucket_bytes=1000)
    step = optimizer.minimize(programs.network(x, labels))
    feeds = {x: np.ones((8, 16), np.float32), labels: np.zeros(8, np.int32)}
    with tf.Session(config=tf.SessionConfig(plugins=["cpu"])) as s:
        s.run(tf.global_variables_initializer())
        plan = str(s.explain(step, feeds))
    stages = re.findall(r"^  \d+: (.*)", plan, re.MULTILINE)
    starts = [i for i, stage in enumerate(stages) if "AllReduceStart" in stage]
    ends = [i for i, stage in enumerate(stages) if "AllReduceEnd" in stage]
    assert len(starts) == 3
    for before, after in itertools.pairwise(starts):
        assert any("cluster" in stage and "MatMul" in stage for stage in stages[before:after])
    assert min(ends) >= max(starts)


def test_it_is_the_optimizer_that_was_given(alone: tfr.Group) -> None:
    given = tf.train.MomentumOptimizer(0.5, 0.9)
    v, unused = tf.get_variable("v", [2], initializer=tf.zeros_initializer()), tf.get_variable("unused", [2])
    optimizer = tfr.DistributedOptimizer(given)
    pairs = optimizer.compute_gradients(tf.reduce_sum(v * [1.0, 2.0]), [v, unused])
    assert isinstance(optimizer, tf.train.MomentumOptimizer)
    assert type(given) is tf.train.MomentumOptimizer
    assert pairs[1] == (None, unused)
    step = optimizer.apply_gradients(pairs)
    with tf.Session() as s:
        s.run(tf.global_variables_initializer())
        s.run(step)
        np.testing.assert_array_equal(s.run(v), [-0.5, -1])
        np.testing.assert_array_equal(s.run(optimizer.get_slot(v, "momentum")), [1, 2])


def test_what_is_no_optimizer_is_refused() -> None:
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"3 given; a tf\.train\.Optimizer is required"):
        tfr.DistributedOptimizer(3)
