"""Training on workers goes on after a checkpoint with the same random numbers and elements of datasets."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("ray", reason="ray is not installed: it has no wheel for this Python or system")

import timberframe as tf
from timberframe_ray import Cluster, engine

CONFIG = tf.SessionConfig(plugins=["cpu"])


def train(cluster: Cluster, folder: Path, last_step: int, *hooks: Any) -> np.ndarray:
    """Returns a training over two workers with dropout and shuffled rows; the value of its variable."""
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


def replicas(cluster: Cluster, name: str, folder: Path, steps: int, kill_after: int | None = None) -> np.ndarray | None:
    """Returns a training by replicas.py; the value of its variable. kill_after: all is killed after so many steps."""
    environment = {**os.environ, "RAY_ADDRESS": engine.gcs_address()}
    command = [sys.executable, str(Path(__file__).with_name("replicas.py")), name, str(folder), str(steps)]
    process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    if kill_after is not None:
        for _ in range(kill_after):
            assert process.stdout.readline() == "step\n"
        process.kill()
        process.communicate()
        return None
    process.communicate(timeout=240)
    assert process.returncode == 0
    found: np.ndarray = tf.train.load_variable(str(folder), "w")
    return found


def test_replicas_that_were_killed_end_with_the_bits_of_those_that_were_not(cluster: Cluster, tmp_path: Path) -> None:
    whole = replicas(cluster, f"{tmp_path.name}-whole", tmp_path / "whole", 8)
    replicas(cluster, f"{tmp_path.name}-first", tmp_path / "parts", 8, kill_after=3)
    replicas(cluster, f"{tmp_path.name}-second", tmp_path / "parts", 8, kill_after=3)
    found = replicas(cluster, f"{tmp_path.name}-last", tmp_path / "parts", 8)
    assert whole is not None
    assert found is not None
    assert found.tobytes() == whole.tobytes()


def test_replicas_that_have_ended_go_on_with_the_bits_of_those_that_had_not(cluster: Cluster, tmp_path: Path) -> None:
    whole = replicas(cluster, f"{tmp_path.name}-whole", tmp_path / "whole", 6)
    replicas(cluster, f"{tmp_path.name}-first", tmp_path / "parts", 3)
    found = replicas(cluster, f"{tmp_path.name}-last", tmp_path / "parts", 6)
    assert whole is not None
    assert found is not None
    assert found.tobytes() == whole.tobytes()
