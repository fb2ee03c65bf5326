"""Kills processes while they train, and compares what the training comes to with one that was not killed.

    python frontend/tests/killing/kill_training.py --kills 50

A training with a shuffled dataset, random noise and dropout writes a checkpoint every few steps. Its
process is killed (SIGKILL) at a random moment: while it starts, runs, or saves. Another one goes on in the same folder,
until the last step is done; then all variables must have the bits of the training that nobody killed. This is repeated
until there were enough kills. With --everywhere a shorter training is also killed once before each operation on files
of its steps. Exit status 0 when all was well.
"""

from __future__ import annotations

import os
import random
import signal
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from children import begin, in_child, kill_before_file_operation

import timberframe as tf

_STEPS = 40
_FEW_STEPS = 4
_FEATURES = np.random.default_rng(0).normal(size=(64, 4)).astype(np.float32)


def model() -> tf.Operation:
    """Returns a training step: a shuffled dataset whose elements are changed at random, noise, dropout, Adam."""
    rows = tf.data.Dataset.from_tensor_slices(_FEATURES).shuffle(40).repeat()
    noisy = rows.map(lambda x: x + tf.random_normal([4], stddev=0.01), num_parallel_calls=2)
    x = noisy.batch(16).prefetch(2).make_one_shot_iterator().get_next() + tf.random_normal([16, 4], stddev=0.01)
    hidden = tf.nn.dropout(tf.layers.dense(x, 8, tf.nn.relu), rate=0.3)
    loss = tf.reduce_mean(tf.square(tf.layers.dense(hidden, 1) - tf.reduce_sum(x, 1, keepdims=True)))
    return tf.train.AdamOptimizer(0.01).minimize(loss, tf.train.get_or_create_global_step())


def train(folder: Path, steps: int, every: int, report: Callable[[], None] = lambda: None) -> None:
    """Trains to the last step, from the latest checkpoint on; reports each step. every: steps between checkpoints."""
    if (tf.train.latest_checkpoint(str(folder)) or "").endswith(f"-{steps}"):
        return  # it was killed after its last step
    tf.set_random_seed(7)
    step = model()
    with tf.train.MonitoredTrainingSession(
        checkpoint_dir=str(folder), save_checkpoint_steps=every, hooks=[tf.train.StopAtStepHook(last_step=steps)]
    ) as session:
        while not session.should_stop():
            session.run(step)
            report()


def result(folder: Path, steps: int) -> dict[str, bytes]:
    """Returns the bits of all variables in the latest checkpoint, which is that of the last step."""
    reader = tf.train.load_checkpoint(str(folder))
    values = {name: reader.get_tensor(name) for name in reader.get_variable_to_shape_map()}
    assert int(values["global_step"]) == steps
    return {name: np.asarray(value).tobytes() for name, value in values.items()}


def killed(folder: Path, moments: random.Random) -> bool:
    """Trains in a process that is killed at a random moment; False where the training had ended before."""
    reading, writing = os.pipe()
    child = in_child(lambda: train(folder, _STEPS, 3, lambda: _report(writing)))
    os.close(writing)
    with os.fdopen(reading, "rb", 0) as steps:
        for _ in range(moments.randint(0, 12)):
            if not steps.read(1):
                break
        time.sleep(moments.uniform(0, 0.02))
        os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
    if not os.WIFSIGNALED(status) and status:
        sys.exit("a training failed")
    return os.WIFSIGNALED(status)


def _report(descriptor: int) -> None:
    os.write(descriptor, b".")


def whole(folder: Path, steps: int = _STEPS, every: int = 3) -> dict[str, bytes]:
    """Returns the result of a training that goes on, or begins, and that nobody kills."""
    _, status = os.waitpid(in_child(lambda: train(folder, steps, every)), 0)
    if status:
        sys.exit("a training failed")
    return result(folder, steps)


def killed_before_event(folder: Path, number: int) -> bool:
    """Returns a short training that kills itself before its nth operation on files; False where it has fewer."""

    def work() -> None:
        steps = iter([lambda: kill_before_file_operation(number)])
        train(folder, _FEW_STEPS, 1, lambda: next(steps, lambda: None)())

    _, status = os.waitpid(in_child(work), 0)
    return os.WIFSIGNALED(status)


def kill_everywhere(folder: Path) -> int:
    """Kills a short training before each of its operations on files; returns how many there were."""
    expected, number = whole(folder / "whole", _FEW_STEPS, 1), 1
    while killed_before_event(folder / str(number), number):
        if whole(folder / str(number), _FEW_STEPS, 1) != expected:
            sys.exit(f"a kill before file operation {number} changed the result")
        number += 1
    return number - 1


def main() -> int:
    options, moments = begin(__doc__, 50)
    done = trainings = 0
    with tempfile.TemporaryDirectory() as name:
        expected = whole(Path(name) / "whole")
        while done < options.kills:
            folder = Path(name) / str(trainings)
            while done < options.kills and killed(folder, moments):
                done += 1
            found = whole(folder)
            different = [n for n in expected if found.get(n) != expected[n]]
            if found.keys() != expected.keys() or different:
                sys.exit(f"after {done} kills the variables {different} have other bits")
            trainings += 1
        if options.everywhere:
            done += kill_everywhere(Path(name) / "everywhere")
    print(f"{done} kills; every time the result had the same bits")
    return 0


if __name__ == "__main__":
    sys.exit(main())
