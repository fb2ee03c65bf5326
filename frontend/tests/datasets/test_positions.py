"""Positions of iterators: a session that is given them goes on with the elements that would have come."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import timberframe as tf

from .conftest import taken

Dataset = tf.data.Dataset
Make = Callable[[], Any]


def drawn(x: Any) -> Any:
    """x and a random number."""
    return x, tf.random_uniform([], 0, 10**6, tf.int32, seed=4)


def called(x: Any) -> Any:
    """x, by a function of Python."""
    return tf.py_func(lambda v: v * 3, [x], tf.int64)


def slow(x: Any) -> Any:
    """x, after some milliseconds."""

    def call(v: np.int64) -> np.int64:
        time.sleep(0.004)
        return v

    return tf.py_func(call, [x], tf.int64)


def generated() -> Any:
    return Dataset.from_generator(lambda: iter(range(20)), tf.int64, [])


PIPELINES: dict[str, Make] = {
    "range": lambda: Dataset.range(20),
    "tensors": lambda: Dataset.from_tensors(1).repeat(20),
    "batch": lambda: Dataset.range(40).batch(3),
    "shuffle": lambda: Dataset.range(20).shuffle(6, seed=1).repeat(3),
    "shuffle of results": lambda: Dataset.range(20).map(called).shuffle(6, seed=1).repeat(3).batch(4),
    "large shuffle": lambda: Dataset.range(20).shuffle(100, seed=1).repeat(2),
    "fixed shuffle": lambda: Dataset.range(20).shuffle(6, seed=1, reshuffle_each_iteration=False).repeat(3),
    "unseeded shuffle": lambda: Dataset.range(20).shuffle(6).repeat(3),
    "map": lambda: Dataset.range(20).map(drawn),
    "batches of maps": lambda: Dataset.range(40).map(lambda x: x * 2).batch(3),
    "shuffle and dropout": lambda: Dataset.range(20).shuffle(5, seed=2).map(drawn).batch(3).repeat(3),
    "unseeded numbers": lambda: Dataset.range(20).map(lambda x: tf.random_uniform([])),
    "prefetch": lambda: Dataset.range(20).map(drawn).prefetch(4),
    "prefetch of shuffle": lambda: Dataset.range(20).shuffle(5, seed=2).repeat(2).map(drawn).batch(2).prefetch(3),
    "parallel map": lambda: Dataset.range(20).map(called, num_parallel_calls=4),
    "filter": lambda: Dataset.range(40).filter(lambda x: tf.equal(x % 3, 0)).batch(2),
    "take and skip": lambda: Dataset.range(40).skip(3).take(20).shard(2, 1),
    "concatenate": lambda: Dataset.range(7).concatenate(Dataset.range(9)).repeat(2),
    "zip": lambda: Dataset.zip((Dataset.range(20).shuffle(3, seed=1), Dataset.range(9).map(called).repeat(3))).batch(2),
    "flat_map": lambda: Dataset.range(7).flat_map(lambda x: Dataset.range(x).map(drawn)),
    "interleave": lambda: Dataset.range(9).interleave(lambda x: Dataset.range(x).shuffle(3, seed=1), 3, 2),
    "shuffles in flat_map": lambda: Dataset.range(2, 4).repeat(3).flat_map(
        lambda x: Dataset.range(x * 2).shuffle(3, seed=1).repeat(2)),
    "caches in flat_map": lambda: Dataset.range(5).flat_map(lambda x: Dataset.range(x).cache().repeat(2)),
    "shuffled groups": lambda: Dataset.range(20).apply(tf.data.experimental.group_by_window(
        lambda x: x % 3, lambda k, w: w.shuffle(9, seed=1).repeat(2).batch(2), 4)),
    "window": lambda: Dataset.range(20).window(3, shift=2).flat_map(lambda w: w.batch(3)),
    "cache": lambda: Dataset.range(9).map(drawn).cache().repeat(3),
    "padded": lambda: Dataset.range(1, 20).map(lambda x: tf.fill([x % 4 + 1], x)).padded_batch(2, [None]),
    "unbatch": lambda: Dataset.range(20).batch(5).unbatch(),
    "generator": generated,
    "strings": lambda: Dataset.range(20).map(tf.as_string).shuffle(4, seed=1).batch(3),
    "scan": lambda: Dataset.range(20).apply(tf.data.experimental.scan(np.int64(0), lambda s, x: (s + x, s))),
    "take_while": lambda: Dataset.range(20).apply(tf.data.experimental.take_while(lambda x: x < 15)),
    "random": lambda: tf.data.experimental.RandomDataset(3).take(20),
    "groups": lambda: Dataset.range(20).apply(
        tf.data.experimental.group_by_window(lambda x: x % 3, lambda k, w: w.batch(4), 4)
    ),
    "choice": lambda: tf.data.experimental.sample_from_datasets([Dataset.range(9), Dataset.range(50, 60)], seed=3),
    "choice of prefetched": lambda: tf.data.experimental.sample_from_datasets(
        [Dataset.range(n, n + 9).map(slow).prefetch(4) for n in (0, 50)], seed=3),
    "prefetched groups": lambda: Dataset.range(20).apply(
        tf.data.experimental.group_by_window(lambda x: x % 2, lambda k, w: w.map(slow).prefetch(4), 9)
    ),
    "shuffle and repeat": lambda: Dataset.range(9).apply(tf.data.experimental.shuffle_and_repeat(4, 3, seed=1)),
}  # fmt: skip


def check(make: Make, initialize: bool, count: int) -> None:
    """Goes through a dataset, and from an element on in another session."""
    with tf.Graph().as_default() as graph:
        dataset = make()
        iterator = dataset.make_initializable_iterator() if initialize else dataset.make_one_shot_iterator()
        following = iterator.get_next()
    with tf.Session(graph=graph) as session:
        if initialize:
            session.run(iterator.initializer)
        taken(session, following, count)
        positions = session.read_positions()
        rest = taken(session, following)
    with tf.Session(graph=graph) as session:
        session.set_positions(positions)
        if initialize:
            session.run(iterator.initializer)
        assert taken(session, following) == rest


@pytest.mark.parametrize("name", PIPELINES)
@pytest.mark.parametrize("initialize", [True, False], ids=["initializable", "one-shot"])
def test_another_session_goes_on(name: str, initialize: bool) -> None:
    check(PIPELINES[name], initialize, 5)


@pytest.mark.parametrize("count", [0, 1, 6, 7, 12, 19, 30])
def test_another_session_goes_on_from_anywhere(count: int) -> None:
    check(PIPELINES["prefetch of shuffle"], True, count)


def write_files(folder: Path) -> tuple[list[str], list[str]]:
    lines, records = [], []
    for i in range(3):
        lines.append(str(folder / f"{i}.txt"))
        Path(lines[-1]).write_text("".join(f"file {i} line {k}\n" for k in range(i * 4)))
        records.append(str(folder / f"{i}.tfrecord"))
        with tf.python_io.TFRecordWriter(records[-1]) as writer:
            for k in range(7):
                writer.write(f"{i} {k}".encode() * k)
    return lines, records


@pytest.mark.parametrize("count", [0, 1, 4, 5, 11])
def test_another_session_goes_on_in_text(tmp_path: Path, count: int) -> None:
    lines, _ = write_files(tmp_path)
    check(lambda: tf.data.TextLineDataset(lines), False, count)


@pytest.mark.parametrize("count", [0, 1, 6, 7, 8, 20])
def test_another_session_goes_on_in_records(tmp_path: Path, count: int) -> None:
    _, records = write_files(tmp_path)
    check(lambda: tf.data.TFRecordDataset(records).repeat(2).shuffle(3, seed=1), False, count)


def test_another_session_goes_on_in_compressed_records(tmp_path: Path) -> None:
    name = str(tmp_path / "x")
    with tf.python_io.TFRecordWriter(name, "GZIP") as writer:
        for k in range(9):
            writer.write(bytes([k]) * k)
    check(lambda: tf.data.TFRecordDataset(name, "GZIP"), False, 4)


def test_a_session_goes_back_to_a_position() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        following = PIPELINES["prefetch of shuffle"]().make_one_shot_iterator().get_next()
        taken(session, following, 3)
        positions = session.read_positions()
        first = taken(session, following, 6)
        session.set_positions(positions)
        assert taken(session, following, 6) == first


def test_equal_histories_have_equal_positions() -> None:
    found = []
    with tf.Graph().as_default() as graph:
        following = PIPELINES["shuffle and dropout"]().make_one_shot_iterator().get_next()
    for _ in range(2):
        with tf.Session(graph=graph) as session:
            taken(session, following, 4)
            found.append(session.read_positions())
    assert found[0] == found[1] != {}


def trained(folder: str, steps: int) -> Any:
    """Returns the weights after so many steps in all, with dropout, shuffling and threads; those made before go on."""
    with tf.Graph().as_default():
        tf.set_random_seed(3)
        tf.train.get_or_create_global_step()
        numbers = np.random.default_rng(1).normal(size=(40, 3)).astype(np.float32)
        noisy = Dataset.from_tensor_slices(numbers).shuffle(16).repeat().map(lambda x: x + tf.random_normal([3]))
        following = noisy.batch(8).prefetch(3).make_one_shot_iterator().get_next()
        weights = tf.get_variable("weights", initializer=np.ones((3, 1), np.float32))
        loss = tf.reduce_mean((tf.nn.dropout(following, 0.5) @ weights - 1) ** 2)
        step = tf.train.AdamOptimizer(0.01).minimize(loss, tf.train.get_global_step())
        hooks = [tf.train.StopAtStepHook(last_step=steps)]
        with tf.train.MonitoredTrainingSession(
            checkpoint_dir=folder,
            hooks=hooks,
            save_checkpoint_steps=4,
            save_summaries_steps=None,
            log_step_count_steps=None,
        ) as session:
            while not session.should_stop():
                session.run(step)
            found = None
        with tf.train.MonitoredSession(tf.train.ChiefSessionCreator(checkpoint_dir=folder)) as session:
            found = session.run(weights)
    return found


def test_a_training_that_is_stopped_and_goes_on_ends_with_the_same_bits(tmp_path: Path) -> None:
    whole = trained(str(tmp_path / "whole"), 15)
    for steps in (4, 9, 15):
        parts = trained(str(tmp_path / "parts"), steps)
    assert parts.tolist() == whole.tolist()
