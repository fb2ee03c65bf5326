"""Trainings by several processes: results, lost processes, and processes that come later."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("ray", reason="ray is not installed: it has no wheel for this Python or system")

import timberframe as tf
import timberframe_ray as tfr
from timberframe_ray import engine

HALF = 0.5
"""Of the one CPU that the cluster has: there is room for two processes."""


def training(folder: str, steps: int, each_step: Callable[[int], None]) -> Callable[[], Any]:
    """Returns a function for `fit`: trains a line until a step by all processes, and gives size,
    weights and the first step.
    """

    def train() -> Any:
        rank, size = tfr.group().rank, tfr.group().size
        x = tf.constant(np.random.default_rng(0).standard_normal((8, 3)).astype(np.float32)[rank::size])
        w = tf.get_variable("w", [3], initializer=tf.zeros_initializer())
        loss = tf.reduce_mean(tf.square(tf.reduce_sum(x * w, 1) - tf.reduce_sum(x * [1.0, -2.0, 3.0], 1)))
        counter = tf.train.get_or_create_global_step()
        step = tfr.DistributedOptimizer(tf.train.MomentumOptimizer(0.05, 0.9)).minimize(loss, counter)
        hooks = [tf.train.StopAtStepHook(last_step=steps)]
        equal = tf.group(*tfr.broadcast_variables(tf.global_variables()))
        with tf.train.MonitoredTrainingSession(
            checkpoint_dir=folder if rank == 0 else None, hooks=hooks,
            scaffold=tf.train.Scaffold(local_init_op=equal), save_checkpoint_steps=5,
            config=tf.SessionConfig(plugins=["cpu"]),
        ) as session:  # fmt: skip
            first = at = session.run(counter)
            while not session.should_stop():
                session.run(step)
                at += 1
                each_step(int(at))
        return size, tf.train.load_variable(folder, "w") if rank == 0 else None, int(first)

    return train


def nothing(step: int) -> None:
    pass


@pytest.mark.usefixtures("cluster")
def test_a_training_whose_process_is_killed_ends_as_one_that_nobody_disturbed(tmp_path: Path) -> None:
    mark = tmp_path / "killed"

    def kill(step: int) -> None:
        if step == 8 and not mark.exists() and tfr.group().rank == 1:
            mark.touch()
            os.kill(os.getpid(), signal.SIGKILL)

    found = tfr.fit(training(str(tmp_path / "a"), 20, kill), workers=2, cpus=HALF)
    quiet = tfr.fit(training(str(tmp_path / "b"), 20, nothing), workers=2, cpus=HALF)
    assert [a.size for a in found.attempts] == [2, 2]
    assert found.values[0][2] == 5  # it went on from its last checkpoint
    assert [a.end for a in quiet.attempts] == [""]
    assert found.values[0][1].tobytes() == quiet.values[0][1].tobytes()


@pytest.mark.usefixtures("cluster")
def test_a_training_takes_another_process_when_there_is_room(tmp_path: Path) -> None:
    blocker = engine.start_trainer(HALF)
    engine.get(blocker.address.remote())
    free = tmp_path / "free"

    def wait(step: int) -> None:
        if step == 7 and tfr.group().size == 1:
            free.touch()
            time.sleep(60)  # until it is ended

    def release() -> None:
        while not free.exists():
            time.sleep(0.1)
        engine.end(blocker)

    thread = threading.Thread(target=release)
    thread.start()
    found = tfr.fit(training(str(tmp_path / "a"), 20, wait), workers=(1, 2), cpus=HALF)
    thread.join()
    assert [(a.size, a.end) for a in found.attempts] == [(1, "another process can be had"), (2, "")]
    assert found.values[0][2] == 5
    np.testing.assert_allclose(found.values[0][1], [1, -2, 3], atol=1.0)


@pytest.mark.usefixtures("cluster")
def test_errors_of_the_program_are_raised_at_once() -> None:
    def train() -> None:
        raise tf.errors.OutOfRangeError("no more rows")

    with pytest.raises(tf.errors.OutOfRangeError, match="no more rows"):
        tfr.fit(train, workers=1, cpus=HALF)


@pytest.mark.usefixtures("cluster")
def test_errors_of_the_program_have_their_class_and_say_which_rank_raised_them() -> None:
    def train() -> None:
        if tfr.group().rank == 1:
            raise ValueError("a row is missing")

    with pytest.raises(ValueError, match=r"^a row is missing") as found:
        tfr.fit(train, workers=2, cpus=HALF)
    assert "It was raised by rank 1:" in found.value.__notes__[0]
    assert "in train" in found.value.__notes__[0]


@pytest.mark.usefixtures("cluster")
def test_errors_that_cannot_be_pickled_have_their_words() -> None:
    class RowError(Exception):
        def __init__(self, row: int, reason: str) -> None:
            super().__init__(f"row {row}: {reason}")

    def train() -> None:
        raise RowError(3, "missing")

    with pytest.raises(tf.errors.UnknownError, match=r"^RowError: row 3: missing"):
        tfr.fit(train, workers=1, cpus=HALF)


@pytest.mark.usefixtures("cluster")
def test_too_few_processes_are_an_error() -> None:
    with pytest.raises(tf.errors.UnavailableError, match=r"fit: \d processes could be had in 4 s; at least 3 with"):
        tfr.fit(nothing_at_all, workers=3, cpus=HALF, seconds=4)


def nothing_at_all() -> None:
    pass


def test_numbers_of_processes_that_make_no_sense_are_refused() -> None:
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"workers is \(3, 2\); 1 <= fewest <= most"):
        tfr.fit(nothing_at_all, workers=(3, 2))


@pytest.mark.parametrize("name", ["max_failures", "cpus", "seconds"])
def test_numbers_below_0_are_refused(name: str) -> None:
    with pytest.raises(tf.errors.InvalidArgumentError, match=f"{name} is -1"):
        tfr.fit(nothing_at_all, workers=1, **{name: -1})


def test_ray_is_started_with_room_for_all_processes() -> None:
    program = "import timberframe_ray as tfr; print(tfr.fit(lambda: 'done', workers=1, cpus=1.2, seconds=20).values)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.stdout.splitlines()[-1:] == ["['done']"], done.stderr


@pytest.mark.usefixtures("cluster")
def test_a_training_joins_the_ray_of_ray_address() -> None:
    program = "import timberframe_ray as tfr\nfrom timberframe_ray import engine\ntfr.fit(lambda: None, cpus=0.1)\n"
    command = [sys.executable, "-c", program + "print(engine.gcs_address())"]
    there = engine.gcs_address()
    found = subprocess.run(
        command, env={**os.environ, "RAY_ADDRESS": there}, capture_output=True, text=True, check=False
    )
    assert found.stdout.strip() == there, found.stderr
    nowhere = {**os.environ, "RAY_ADDRESS": "127.0.0.1:1"}
    found = subprocess.run(command, env=nowhere, capture_output=True, text=True, check=False)
    assert "no Ray cluster can be reached at 127.0.0.1:1" in found.stderr
