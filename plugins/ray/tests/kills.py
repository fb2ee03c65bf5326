"""Kills workers and parameter servers of a training: ``python plugins/ray/tests/kills.py --kills N --seed S``.

A synchronous training over two workers, with dropout, is killed at random moments and goes on from its last checkpoint.
Its losses must be those of a training that nobody disturbed, bit for bit. Then a worker is killed, and one stopped,
while a run waits for it, which must fail by UnavailableError in time; and no sessions may be left in the workers.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np

import timberframe as tf
from timberframe_ray import Cluster, engine, local_cluster

CONFIG = tf.SessionConfig(plugins=["cpu"])
STEPS, CHECKPOINT_STEPS = 12, 3
PLACES = (("worker", 0), ("worker", 1), ("ps", 0))
KILL_SECONDS, SLACK_SECONDS = 2.0, 3.0
AGAIN_SECONDS = 90.0


def train(cluster: Cluster, folder: Path, hooks: list[Any]) -> dict[int, float]:
    """The losses by step, where a step was repeated its last."""
    losses: dict[int, float] = {}
    with tf.Graph().as_default():
        with tf.device("/job:ps/task:0"):
            step = tf.train.get_or_create_global_step()
            before = tf.identity(step)
            w = tf.get_variable("w", initializer=tf.constant(np.linspace(-1, 1, 8, dtype=np.float32)))
        optimizer = tf.train.MomentumOptimizer(0.05, 0.9)
        gradients, parts = [], []
        for task in range(2):
            with tf.device(f"/job:worker/task:{task}"):
                # Drawn by the number of the step, so that a step that is repeated draws the same.
                seed = tf.stack([tf.cast(step, tf.int32), task])
                kept = tf.cast(tf.random.stateless_uniform([8], seed=seed) < 0.8, tf.float32)
                loss = tf.reduce_sum(tf.square(w * kept - float(task)))
                gradients.append(optimizer.compute_gradients(loss, [w])[0][0])
                parts.append(loss)
        with tf.device("/job:ps/task:0"):
            total = tf.add_n(parts)
            train_op = optimizer.apply_gradients([(tf.add_n(gradients), w)], global_step=step)
        with tf.train.MonitoredTrainingSession(
            cluster.target,
            checkpoint_dir=str(folder),
            save_checkpoint_steps=CHECKPOINT_STEPS,
            hooks=[tf.train.StopAtStepHook(last_step=STEPS), *hooks],
            config=CONFIG,
        ) as session:
            while not session.should_stop():
                number, loss, _ = session.run([before, total, train_op])
                losses[int(number)] = float(loss)
    tf.Session.reset(cluster.target)
    return losses


class KillsOnce(tf.train.SessionRunHook):
    """Kills the process of a task while the training runs, some time after the run of a chosen number has begun."""

    def __init__(self, cluster: Cluster, place: tuple[str, int], run: int, seconds: float) -> None:
        self.cluster, self.place, self.run, self.seconds = cluster, place, run, seconds
        self.runs = 0

    def before_run(self, run_context: Any) -> None:
        self.runs += 1
        if self.runs == self.run:
            process = self.cluster.process(*self.place)
            threading.Timer(self.seconds, os.kill, (process, signal.SIGKILL)).start()


def failing_run(cluster: Cluster, number: int) -> float:
    """Seconds until a run fails that waits for a worker which gets a signal."""
    with tf.Graph().as_default():
        with tf.device("/job:worker/task:0"):
            loop = tf.while_loop(lambda i: i >= 0.0, lambda i: tf.abs(i), [tf.constant(1.0)])
        with tf.Session(cluster.target, config=CONFIG) as session:
            process, started = cluster.process("worker", 0), []

            def end() -> None:
                os.kill(process, number)
                started.append(time.monotonic())

            threading.Timer(1.0, end).start()
            try:
                session.run(loop)
            except tf.errors.UnavailableError:
                return time.monotonic() - started[0]
    raise AssertionError("the run did not fail")


def settled(cluster: Cluster) -> bool:
    """Whether no worker has a session any more."""
    workers = [engine.find_worker(cluster.name, *place) for place in PLACES]
    return all(engine.describe(worker)["sessions"] == 0 for worker in workers)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    choose = random.Random(given.seed)
    with (
        tempfile.TemporaryDirectory(prefix="tf-ray-") as folder,
        local_cluster(ps=1, workers=2, folder=folder, object_store_bytes=100 << 20) as cluster,
    ):
        undisturbed = train(cluster, Path(folder) / "undisturbed", [])
        assert len(undisturbed) == STEPS
        for i in range(given.kills):
            place, run, seconds = choose.choice(PLACES), choose.randint(2, STEPS), choose.uniform(0, 0.02)
            start = time.monotonic()
            found = train(cluster, Path(folder) / str(i), [KillsOnce(cluster, place, run, seconds)])
            took = time.monotonic() - start
            assert found == undisturbed, f"kill {i} of {place} in run {run}: {found} is not {undisturbed}"
            assert took < AGAIN_SECONDS
            print(
                f"kill {i + 1}: /job:{place[0]}/task:{place[1]} in run {run}: same losses after {took:.1f} s",
                flush=True,
            )
        for number, limit in ((signal.SIGKILL, KILL_SECONDS), (signal.SIGSTOP, 10.0)):
            took = failing_run(cluster, number)
            assert took < limit + SLACK_SECONDS, f"{signal.Signals(number).name}: noticed after {took:.1f} s"
            print(f"{signal.Signals(number).name}: UnavailableError after {took:.1f} s", flush=True)
        with tf.Graph().as_default(), tf.device("/job:worker/task:0"):
            y = tf.exp(0.0)
            with tf.Session(cluster.target, config=CONFIG) as session:  # ends the worker that hangs
                assert session.run(y) == 1
        assert settled(cluster), "sessions are left in the workers"
    print(f"{given.kills} kills: the same losses each time")
    return 0


if __name__ == "__main__":
    sys.exit(main())
