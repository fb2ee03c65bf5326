"""Training on workers goes on after a checkpoint with the same random numbers and elements of datasets."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("ray", reason="ray is not installed: it has no wheel for this Python or system")

import timberframe as tf
from timberframe_ray import Cluster

CONFIG = tf.SessionConfig(plugins=["cpu"])


def train(cluster: Cluster, folder: Path, last_step: int, *hooks: Any) -> np.ndarray:
    """A training over two workers with dropout and shuffled rows; the value of its variable."""
    with tf.Graph().as_default():
        tf.set_random_seed(3)
        rows = tf.data.Dataset.range(12).shuffle(12, seed=1).repeat().batch(2)
        x = tf.cast(tf.compat.v1.data.make_one_shot_iterator(rows).get_next(), tf.float32)
        with tf.device("/job:ps/task:0"):
            step = tf.train.get_or_create_global_step()
            w = tf.get_variable("w", initializer=tf.constant([1.0, -1.0]))
        losses = []
        for task in range(2):
            with tf.device(f"/job:worker/task:{task}"):
                kept = tf.nn.dropout(w * x[task], keep_prob=0.5)
                losses.append(tf.reduce_sum(tf.square(kept - 1.0 + tf.random_normal([2]))))
        train_op = tf.train.GradientDescentOptimizer(0.001).minimize(tf.add_n(losses), global_step=step)
        stop = tf.train.StopAtStepHook(last_step=last_step)
        with tf.train.MonitoredTrainingSession(
            cluster.target, checkpoint_dir=str(folder), save_checkpoint_steps=2, hooks=[stop, *hooks], config=CONFIG
        ) as session:
            while not session.should_stop():
                session.run(train_op)
    tf.Session.reset(cluster.target)
    found: np.ndarray = tf.train.load_variable(str(folder), "w")
    return found


class Kills(tf.train.SessionRunHook):
    """Kills a worker before one of the runs."""

    def __init__(self, cluster: Cluster, run: int) -> None:
        self._cluster, self._left = cluster, run

    def before_run(self, run_context: Any) -> None:
        self._left -= 1
        if self._left == 0:
            os.kill(self._cluster.process("worker", 1), signal.SIGKILL)


def test_a_training_that_goes_on_ends_with_the_bits_of_one_that_was_not_interrupted(
    cluster: Cluster, tmp_path: Path
) -> None:
    whole = train(cluster, tmp_path / "whole", 8)
    train(cluster, tmp_path / "parts", 4)
    assert train(cluster, tmp_path / "parts", 8).tobytes() == whole.tobytes()


def test_a_training_whose_worker_is_killed_ends_with_the_bits_of_one_that_was_not(
    cluster: Cluster, tmp_path: Path
) -> None:
    whole = train(cluster, tmp_path / "whole", 8)
    assert train(cluster, tmp_path / "killed", 8, Kills(cluster, 6)).tobytes() == whole.tobytes()


def test_random_ops_without_a_seed_go_on_with_theirs(cluster: Cluster) -> None:
    with tf.device("/job:worker/task:0"):
        drawn = tf.random_uniform([3])
    with tf.Session(cluster.target, config=CONFIG) as session:
        session.run(drawn)
        positions = session.read_positions()
        wanted = session.run(drawn)
    with tf.Session(cluster.target, config=CONFIG) as session:
        session.run(drawn)
        session.set_positions(positions)
        np.testing.assert_array_equal(session.run(drawn), wanted)
