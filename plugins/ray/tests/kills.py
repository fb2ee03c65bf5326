"""Kills parts of a training at random moments: ``python plugins/ray/tests/kills.py --kills N --seed S``.

A synchronous training over two workers and a parameter server on two simulated nodes, with dropout and shuffled rows.
At random moments a worker or the server is killed, the client, or a node, which may also be stopped. Each time the
error must be of the right class and there in time, and the losses after recovery those of a training that nobody
disturbed, bit for bit. Nothing may be left: sessions, objects, open files. In the end `fit` loses a node, and gets
another one.
"""

from __future__ import annotations

import argparse
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from nodes import Nodes, held

import timberframe as tf
import timberframe_ray as tfr
from timberframe_ray import Cluster, engine

CONFIG = tf.SessionConfig(plugins=["cpu"])
STEPS, CHECKPOINT_STEPS = 12, 3
SIZE = 30_000
"""Elements of the variable: more than go with a call, so that steps use the object store."""
TASKS = (("worker", 0), ("worker", 1), ("ps", 0))
LOST = (tf.errors.UnavailableError, tf.errors.AbortedError)
LIMITS = {"task": 2.0, "client": 2.0, "node": 2.0, "frozen node": 10.0}
"""Seconds after which the end of each must be noticed."""
SLACK_SECONDS = 3.0
"""Machines are busy."""
AGAIN_SECONDS = 120.0
SETTLE_SECONDS = 30.0
"""Nodes say after some seconds what is in their stores."""
SPARE = 10
"""So many files and threads may come and go: it would be one for each kill where they were left."""
KINDS = ("task", "task", "task", "client", "node", "task", "task", "client", "frozen node", "task")
"""What is killed in turn: half of a hundred kills are of tasks, a fifth each of clients and nodes."""

Failure = tuple[str, float]
"""The class of an error, and when it came."""


class _NotingCreator(tf.train.SessionCreator):
    """Makes sessions whose errors of lost processes are noted."""

    def __init__(self, creator: tf.train.SessionCreator, note: Callable[[Failure], None]) -> None:
        self._creator, self._note = creator, note

    def create_session(self) -> Any:
        session: Any = self._creator.create_session()
        run = session.run

        def noted(*given: Any, **named: Any) -> Any:
            try:
                return run(*given, **named)
            except LOST as e:
                self._note((type(e).__name__, time.monotonic()))
                raise

        session.run = noted
        return session


def train(
    target: str, folder: Path, hooks: Sequence[Any] = (), each: Callable[[int, float], None] = lambda step, loss: None
) -> tuple[dict[int, float], list[Failure]]:
    """Returns the losses by step, where a step was repeated its last, and the errors of lost processes."""
    losses: dict[int, float] = {}
    failures: list[Failure] = []
    with tf.Graph().as_default():
        tf.set_random_seed(3)
        rows = tf.data.Dataset.range(24).shuffle(24, seed=1).repeat().batch(2)
        x = tf.cast(tf.compat.v1.data.make_one_shot_iterator(rows).get_next(), tf.float32) / 24.0
        with tf.device("/job:ps/task:0"):
            step = tf.train.get_or_create_global_step()
            before = tf.identity(step)
            w = tf.get_variable("w", initializer=tf.constant(np.linspace(-1, 1, SIZE, dtype=np.float32)))
        optimizer = tf.train.MomentumOptimizer(0.05, 0.9)
        gradients, parts = [], []
        for task in range(2):
            with tf.device(f"/job:worker/task:{task}"):
                kept = tf.nn.dropout(w * x[task], keep_prob=0.8)
                parts.append(tf.reduce_sum(tf.square(kept - float(task))))
                gradients.append(optimizer.compute_gradients(parts[-1], [w])[0][0])
        with tf.device("/job:ps/task:0"):
            total = tf.add_n(parts)
            train_op = optimizer.apply_gradients([(tf.add_n(gradients), w)], global_step=step)
        creator = tf.train.ChiefSessionCreator(master=target, config=CONFIG, checkpoint_dir=str(folder))
        stop = tf.train.StopAtStepHook(last_step=STEPS)
        saver = tf.train.CheckpointSaverHook(str(folder), save_steps=CHECKPOINT_STEPS)
        with tf.train.MonitoredSession(_NotingCreator(creator, failures.append), [stop, saver, *hooks]) as session:
            while not session.should_stop():
                number, loss, _ = session.run([before, total, train_op])
                losses[int(number)] = float(loss)
                each(int(number), float(loss))
    return losses, failures


class At(tf.train.SessionRunHook):
    """Calls a function once while the training runs, some time after the run of a chosen number has begun."""

    def __init__(self, run: int, seconds: float, function: Callable[[], None]) -> None:
        self._left, self._seconds, self._function = run, seconds, function
        self.at = float("inf")

    def before_run(self, run_context: Any) -> None:
        self._left -= 1
        if self._left == 0:
            threading.Timer(self._seconds, self._call).start()

    def _call(self) -> None:
        self._function()
        self.at = time.monotonic()


class Kills:
    """Kills of all kinds, and what they must leave. choose: the random moments."""

    def __init__(self, nodes: Nodes, cluster: Cluster, folder: Path, choose: random.Random) -> None:
        self._nodes, self._cluster, self._folder, self._choose = nodes, cluster, folder, choose
        self._undisturbed, failures = train(cluster.target, folder / "undisturbed")
        assert len(self._undisturbed) == STEPS
        assert not failures
        tf.Session.reset(cluster.target)

    def kill(self, kind: str, number: int) -> tuple[str, float | None]:
        """Returns one kill: the class of the first error, and seconds until it; None where the training had ended."""
        run, seconds = self._choose.randint(2, STEPS), self._choose.uniform(0, 0.02)
        folder, start = self._folder / str(number), time.monotonic()
        work = self._client if kind == "client" else self._part
        found, name, took = work(kind, folder, run, seconds)
        assert found == self._undisturbed, f"{kind} in run {run}: {found} is not {self._undisturbed}"
        assert took is None or took < LIMITS[kind] + SLACK_SECONDS, f"{kind}: {name} after {took:.1f} s"
        assert time.monotonic() - start < AGAIN_SECONDS
        tf.Session.reset(self._cluster.target)
        return name, took

    def _part(self, kind: str, folder: Path, run: int, seconds: float) -> tuple[dict[int, float], str, float | None]:
        """Returns a training that loses a task or a node."""
        place = self._choose.choice(TASKS)
        process = self._cluster.process(*place)
        if kind == "task":
            hook = At(run, seconds, lambda: os.kill(process, signal.SIGKILL))
        else:
            self._nodes.move(self._cluster, place)
            number = signal.SIGSTOP if kind == "frozen node" else signal.SIGKILL
            hook = At(run, seconds, lambda: self._nodes.signal(number))
        losses, failures = train(self._cluster.target, folder, [hook])
        if kind != "task":
            self._nodes.renew()
        name, when = failures[0] if failures else ("no error", None)
        return losses, name, None if when is None else when - hook.at

    def _client(self, kind: str, folder: Path, run: int, seconds: float) -> tuple[dict[int, float], str, float | None]:
        """Returns a training whose client is killed, and another client that goes on."""
        command = [sys.executable, __file__, "--target", self._cluster.target, "--folder", str(folder)]
        first = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert first.stdout is not None
        printed = [first.stdout.readline() for _ in range(run - 1)]
        time.sleep(seconds)
        first.kill()
        start = time.monotonic()
        printed += first.communicate()[0].splitlines()
        while not settled(self._cluster):
            time.sleep(0.02)
        took = time.monotonic() - start
        printed += subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout.splitlines()
        found = [re.fullmatch(r"(\d+) (\S+)\n?", line) for line in printed]
        return {int(m[1]): float.fromhex(m[2]) for m in found if m}, "sessions dropped", took


def settled(cluster: Cluster) -> bool:
    """Returns whether no worker has a session any more."""
    workers = [engine.find_worker(cluster.name, *place) for place in TASKS]
    return all(engine.describe(worker)["sessions"] == 0 for worker in workers)


def fit_with_fewer(nodes: Nodes, folder: Path) -> list[int]:
    """Returns the sizes of a training that loses a node, and gets it back later."""
    folder.mkdir()

    def work() -> None:
        size = tfr.group().size
        last = size == 2 and (folder / "last").exists()
        w = tf.get_variable("w", initializer=tf.ones([4]))
        optimizer = tfr.DistributedOptimizer(tf.train.GradientDescentOptimizer(0.01))
        step = optimizer.minimize(tf.reduce_sum(tf.square(w)))
        with tf.Session(config=CONFIG) as session:
            session.run(tf.global_variables_initializer())
            session.run(step)
            (folder / str(size)).touch()
            while not last:  # until the node goes, or comes back
                session.run(step)
                time.sleep(0.01)

    def wait_for(size: int) -> None:
        while not (folder / str(size)).exists():
            time.sleep(0.1)
            assert training.is_alive()

    found: list[tfr.Result] = []
    training = threading.Thread(target=lambda: found.append(tfr.fit(work, workers=(1, 2), cpus=1.0)))
    training.start()
    wait_for(2)
    (folder / "1").unlink(missing_ok=True)  # it begins with one where the other takes long to start
    nodes.signal(signal.SIGKILL)
    wait_for(1)
    (folder / "last").touch()
    nodes.renew()
    training.join(AGAIN_SECONDS)
    return [attempt.size for attempt in found[0].attempts]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--target", help="train as a client of this cluster, and print the losses")
    parser.add_argument("--folder", help="for the client's checkpoints")
    given = parser.parse_args()
    if given.target:
        train(given.target, Path(given.folder), each=lambda step, loss: print(step, loss.hex(), flush=True))
        return 0
    with tempfile.TemporaryDirectory(prefix="tf-ray-") as name, Nodes(name) as nodes:
        engine.join(nodes.address)
        with Cluster("kills", {"ps": [0], "worker": [0, 1]}) as cluster:
            all_kinds(Kills(nodes, cluster, Path(name), random.Random(given.seed)), given.kills, cluster)
        sizes = fit_with_fewer(nodes, Path(name) / "fit")
        assert sizes[-3:] == [2, 1, 2], sizes
        print(f"fit: {' -> '.join(map(str, sizes))} processes")
    print(f"{given.kills} kills: the same losses each time, and nothing is left")
    return 0


def all_kinds(kills: Kills, count: int, cluster: Cluster) -> None:
    """So many kills, one kind after the other, and that nothing is left by them."""
    found: dict[str, list[tuple[str, float | None]]] = {}
    before = held()
    for i in range(count):
        kind = KINDS[i % len(KINDS)]
        start = time.monotonic()
        name, took = kills.kill(kind, i)
        found.setdefault(kind, []).append((name, took))
        when = "" if took is None else f" after {took:.2f} s"
        print(f"kill {i + 1}: {kind}: {name}{when}; same losses after {time.monotonic() - start:.1f} s", flush=True)
    for kind, all_of_it in found.items():
        seconds = [t for _, t in all_of_it if t is not None]
        names = {n: sum(x == n for x, _ in all_of_it) for n, _ in all_of_it}
        print(f"{kind}: {names}, at most {max(seconds, default=0):.2f} s, median {np.median(seconds or [0]):.2f} s")
    assert settled(cluster), "sessions are left in the workers"
    end = time.monotonic() + SETTLE_SECONDS
    while (after := held())["bytes"] > before["bytes"] and time.monotonic() < end:
        time.sleep(0.5)
    print(f"held before: {before}, after: {after}", flush=True)
    assert after["bytes"] <= before["bytes"], "objects are left in the object stores"
    assert all(after[key] < before[key] + SPARE for key in ("files", "threads")), "the client has more and more open"


if __name__ == "__main__":
    sys.exit(main())
