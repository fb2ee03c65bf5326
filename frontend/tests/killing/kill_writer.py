"""Kills processes while they save checkpoints, and checks what is left.

    python frontend/tests/killing/kill_writer.py --kills 200

A writer fills all variables with the number of its step and saves, step after step. It is killed (SIGKILL) at a random
moment of a save; with --everywhere also once before each operation on files. Then the checkpoint that the folder names
last must restore, be whole, and be no older than the last one whose save had returned. The next writer goes on in the
same folder. Exit status 0 when all was well.
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

_SHAPES = [(257, 129), (1000,), (), (64, 64), (0, 3)]
_MAX_TO_KEEP = 3


def model() -> tuple[dict[str, tf.Variable], tf.Tensor, tf.Operation]:
    """Variables of several shapes, the step to fill them with, and the operation that does it."""
    step = tf.placeholder(tf.float32, [])
    variables = {f"v{i}": tf.Variable(tf.zeros(s), name=f"v{i}") for i, s in enumerate(_SHAPES)}
    fill = tf.group(*(v.assign(tf.fill(s, step)) for v, s in zip(variables.values(), _SHAPES, strict=True)))
    return variables, step, fill


def write(folder: Path, first: int, steps: int, numbered: bool, report: Callable[[str], None]) -> None:
    """Saves `steps` checkpoints; reports the beginning and the end of each."""
    variables, step, fill = model()
    saver = tf.train.Saver(variables, max_to_keep=_MAX_TO_KEEP)
    state = tf.train.get_checkpoint_state(str(folder))
    if state is not None:
        saver.recover_last_checkpoints(list(state.all_model_checkpoint_paths))
    with tf.Session() as session:
        for i in range(first, first + steps):
            session.run(fill, {step: i})
            report(f"saving {i}\n")
            saver.save(session, str(folder / "model.ckpt"), global_step=i if numbered else None)
            report(f"saved {i}\n")


def check(folder: Path, oldest: int) -> None:
    """Restores the latest checkpoint; all variables must be whole, and of step `oldest` or a later one."""
    variables, _, _ = model()
    latest = tf.train.latest_checkpoint(str(folder))
    assert latest is not None, sorted(p.name for p in folder.iterdir())
    with tf.Session() as session:
        tf.train.Saver(variables).restore(session, latest)
        values = session.run(variables)
    found = float(values["v2"])
    assert found >= oldest, (found, oldest)
    for value in values.values():
        np.testing.assert_array_equal(value, found)


def checked(folder: Path, oldest: int) -> bool:
    _, status = os.waitpid(in_child(lambda: check(folder, oldest)), 0)
    return status == 0


def kill_at_random(folder: Path, first: int, moments: random.Random, numbered: bool) -> int:
    """Starts a writer, kills it up to 30 ms after one of its saves began; returns the last step that was saved."""
    reading, writing = os.pipe()
    child = in_child(lambda: write(folder, first, 10_000, numbered, lambda x: _write_line(writing, x)))
    os.close(writing)
    saved, starts = first - 1, moments.randint(1, 4)
    with os.fdopen(reading) as lines:
        for line in lines:
            if line.startswith("saved"):
                saved = int(line.split()[1])
            else:
                starts -= 1
            if not starts:
                break
        time.sleep(moments.uniform(0, 0.03))
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        for line in lines:
            if line.startswith("saved"):
                saved = int(line.split()[1])
    return saved


def _write_line(descriptor: int, line: str) -> None:
    os.write(descriptor, line.encode())


def kill_before_event(folder: Path, first: int, number: int, numbered: bool) -> bool:
    """Returns a writer that kills itself before the nth operation on files of a save; False where it has fewer."""

    def report(line: str) -> None:
        if line.startswith("saving"):
            kill_before_file_operation(number)

    _, status = os.waitpid(in_child(lambda: write(folder, first, 1, numbered, report)), 0)
    return os.WIFSIGNALED(status)


def main() -> int:
    options, moments = begin(__doc__, 200)
    kills = sum(
        kill_in_a_new_folder(options.kills // 2, options.everywhere, numbered, moments) for numbered in (True, False)
    )
    print(f"{kills} kills; every time the last complete checkpoint was restored")
    return 0


def kill_in_a_new_folder(kills: int, everywhere: bool, numbered: bool, moments: random.Random) -> int:
    """Does all kills of one kind and returns their number; SystemExit where a checkpoint is lost."""
    with tempfile.TemporaryDirectory() as name:
        folder, step, done = Path(name), 0, 0
        os.waitpid(in_child(lambda: write(folder, 0, 1, numbered, lambda _: None)), 0)
        for done in range(1, kills + 1):
            step = max(step, kill_at_random(folder, step + 1, moments, numbered))
            if not checked(folder, step):
                sys.exit(f"after kill {done} the checkpoint of step {step} is lost")
        event = 1
        while everywhere and kill_before_event(folder, step + 1, event, numbered):
            if not checked(folder, step):
                sys.exit(f"a kill before file operation {event} lost the checkpoint of step {step}")
            event += 1
        assert event > 1 or not everywhere, "no operation on files was seen"
        return done + event - 1


if __name__ == "__main__":
    sys.exit(main())
