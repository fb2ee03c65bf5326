"""Datasets give TensorFlow's elements in TensorFlow's order, errors in the same places, and graphs go both ways."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import timberframe as ours

theirs = pytest.importorskip("tensorflow.compat.v1")

Make = Callable[[Any], Any]


def plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: plain(v) for k, v in value.items()}
    if isinstance(value, tuple):
        return tuple(plain(v) for v in value)
    return np.asarray(value).tolist()


def taken(tf: Any, session: Any, element: Any, most: int = 100) -> list[Any]:
    found: list[Any] = []
    while len(found) < most:
        try:
            found.append(plain(session.run(element)))
        except tf.errors.OutOfRangeError:
            break
        except tf.errors.OpError as e:
            found.append(type(e).__name__)
    return found


def elements(tf: Any, make: Make, rounds: int = 1) -> list[list[Any]]:
    with tf.Graph().as_default() as graph:
        iterator = tf.data.make_initializable_iterator(make(tf))
        following = iterator.get_next()
        with tf.Session(graph=graph) as session:
            found = []
            for _ in range(rounds):
                session.run(iterator.initializer)
                found.append(taken(tf, session, following))
            return found


def failing(tf: Any, x: Any) -> Any:
    return tf.check_numerics(tf.where(tf.equal(x % 4, 2), float("nan"), tf.cast(x, tf.float32)), "bad")


def experimental(tf: Any) -> Any:
    return tf.data.experimental


PIPELINES: dict[str, Make] = {
    "padded": lambda tf: tf.data.Dataset.range(1, 9).map(lambda x: (tf.fill([x % 4 + 1], x), x))
    .padded_batch(3, ([None], []), (np.int64(-1), np.int64(0))),
    "interleave": lambda tf: tf.data.Dataset.range(1, 9).interleave(
        lambda x: tf.data.Dataset.from_tensors(x).repeat(x), cycle_length=3, block_length=2),
    "parallel interleave": lambda tf: tf.data.Dataset.range(1, 9).interleave(
        lambda x: tf.data.Dataset.from_tensors(x).repeat(x), cycle_length=3, block_length=2, num_parallel_calls=2),
    "interleaved shuffles": lambda tf: tf.data.Dataset.range(1, 6).interleave(
        lambda x: tf.data.Dataset.range(x * 2).shuffle(3, seed=4), cycle_length=2).repeat(2),
    "flat_map of shuffles": lambda tf: tf.data.Dataset.range(1, 6).flat_map(
        lambda x: tf.data.Dataset.range(x * 2).shuffle(3, seed=4)),
    "windows": lambda tf: tf.data.Dataset.range(11).window(3, 2, 2).flat_map(lambda w: w.batch(5)),
    "windows without remainder": lambda tf: tf.data.Dataset.range(11).window(4, 3, 1, True).flat_map(
        lambda w: w.batch(5)),
    "wide shifts": lambda tf: tf.data.Dataset.range(17).window(2, 5, 2).flat_map(lambda w: w.batch(5)),
    "groups": lambda tf: tf.data.Dataset.range(20).apply(experimental(tf).group_by_window(
        lambda x: x % 3, lambda k, w: w.batch(4), 4)),
    "buckets": lambda tf: tf.data.Dataset.range(1, 20).map(lambda x: tf.fill([x % 7 + 1], x)).apply(
        experimental(tf).bucket_by_sequence_length(lambda x: tf.size(x), [3, 5], [2, 3, 4])),
    "scan": lambda tf: tf.data.Dataset.range(9).apply(experimental(tf).scan(np.int64(5), lambda s, x: (s + x, s * x))),
    "scan of pairs": lambda tf: tf.data.Dataset.zip((tf.data.Dataset.range(9), tf.data.Dataset.range(2, 9))).apply(
        experimental(tf).scan(np.int64(5), lambda s, pair: (s + pair[0], s * pair[1]))
    ),
    "take_while": lambda tf: tf.data.Dataset.range(9).apply(experimental(tf).take_while(lambda x: x < 5)),
    "map_and_batch": lambda tf: tf.data.Dataset.range(9).apply(experimental(tf).map_and_batch(lambda x: x * 2, 4)),
    "choice": lambda tf: experimental(tf).choose_from_datasets(
        [tf.data.Dataset.range(3), tf.data.Dataset.range(10, 20)],
        tf.data.Dataset.from_tensor_slices(np.int64([0, 1, 1, 0, 0, 0, 1]))),
    "counter": lambda tf: experimental(tf).Counter(5, 3).take(4),
    "random": lambda tf: experimental(tf).RandomDataset(seed=7).take(6),
    "unbatch": lambda tf: tf.data.Dataset.range(9).batch(4).apply(experimental(tf).unbatch()),
    "enumerate": lambda tf: tf.data.Dataset.range(5, 8).enumerate(3),
    "concatenate": lambda tf: tf.data.Dataset.range(3).concatenate(tf.data.Dataset.range(9, 11)).repeat(2),
    "shards": lambda tf: tf.data.Dataset.range(11).shuffle(4, seed=2).shard(3, 1),
    "cache of shuffle": lambda tf: tf.data.Dataset.range(7).shuffle(4, seed=2).cache().repeat(2),
    "zip of shuffles": lambda tf: tf.data.Dataset.zip((
        tf.data.Dataset.range(7).shuffle(4, seed=2), tf.data.Dataset.range(9).shuffle(4, seed=3))).repeat(2),
    "random numbers": lambda tf: tf.data.Dataset.range(5).map(lambda x: tf.random_uniform([2], seed=5)).repeat(2),
    "caches in flat_map": lambda tf: tf.data.Dataset.range(5).flat_map(
        lambda x: tf.data.Dataset.range(x).cache().repeat(2)),
    "repeated shuffles in flat_map": lambda tf: tf.data.Dataset.range(2, 4).repeat(2).flat_map(
        lambda x: tf.data.Dataset.range(x * 3).shuffle(4, seed=1).repeat(2)),
    "two random ops": lambda tf: tf.data.Dataset.range(4).map(
        lambda x: (tf.random_uniform([], seed=1), tf.random_uniform([], 0, 9, tf.int32, seed=2))),
    "errors in zip": lambda tf: tf.data.Dataset.zip(
        (tf.data.Dataset.range(9).map(lambda x: failing(tf, x)), tf.data.Dataset.range(9))),
    "errors in interleave": lambda tf: tf.data.Dataset.range(5).interleave(
        lambda x: tf.data.Dataset.range(x, x + 3).map(lambda y: failing(tf, y)), cycle_length=3, block_length=2),
    "errors in windows": lambda tf: tf.data.Dataset.range(9).map(lambda x: failing(tf, x)).filter(lambda x: x < 8)
    .batch(3),
    "errors in predicates": lambda tf: tf.data.Dataset.range(9).filter(lambda x: failing(tf, x) > 0).batch(2),
    "errors in shuffle": lambda tf: tf.data.Dataset.range(12).map(lambda x: failing(tf, x)).shuffle(4, seed=1),
    "errors ignored": lambda tf: tf.data.Dataset.range(12).map(lambda x: failing(tf, x)).apply(
        experimental(tf).ignore_errors()).batch(3),
    "generator": lambda tf: tf.data.Dataset.from_generator(
        lambda n: ((i, [i] * i) for i in range(n)), (tf.int64, tf.int32), ([], [None]), args=(4,)).repeat(2),
}  # fmt: skip


@pytest.mark.parametrize("name", PIPELINES)
def test_elements_are_tensorflows(name: str) -> None:
    assert elements(ours, PIPELINES[name], 2) == elements(theirs, PIPELINES[name], 2)


SHUFFLES = itertools.product((1, 3, 8, 50), (None, 0, 5), (None, 0, 7), (True, False))


@pytest.mark.parametrize(("buffer", "graph_seed", "seed", "again"), [s for s in SHUFFLES if s[1:3] != (None, None)])
def test_shuffles_have_tensorflows_order(buffer: int, graph_seed: int | None, seed: int | None, again: bool) -> None:
    def make(tf: Any) -> Any:
        if graph_seed is not None:
            tf.set_random_seed(graph_seed)
        return tf.data.Dataset.range(11).shuffle(buffer, seed, again).repeat(3).batch(4)

    assert elements(ours, make, 2) == elements(theirs, make, 2)


def test_lists_of_files_have_tensorflows_order(tmp_path: Path) -> None:
    for i in range(9):
        (tmp_path / f"{i}").touch()
    found = [elements(tf, lambda tf: tf.data.Dataset.list_files(str(tmp_path / "*"), seed=3)) for tf in (ours, theirs)]
    assert found[0] == found[1]


def test_files_are_read_as_tensorflow_reads_them(tmp_path: Path) -> None:
    (tmp_path / "text").write_bytes(b"one\r\ntwo\n\nfour\rfive\nlast")
    (tmp_path / "fixed").write_bytes(b"HHaabbccF")
    with theirs.python_io.TFRecordWriter(str(tmp_path / "records"), "GZIP") as writer:
        for k in range(20):
            writer.write(bytes([k]) * k)

    def read(tf: Any) -> Any:
        text = tf.data.TextLineDataset(str(tmp_path / "text"))
        fixed = tf.data.FixedLengthRecordDataset(str(tmp_path / "fixed"), 2, 2, 1)
        return text.concatenate(fixed).concatenate(tf.data.TFRecordDataset(str(tmp_path / "records"), "GZIP"))

    assert elements(ours, read) == elements(theirs, read)


def build(tf: Any) -> None:
    """Iterators of several kinds, whose operations have names that both sides give."""
    tf.set_random_seed(4)
    slices = tf.data.Dataset.from_tensor_slices((np.arange(12.0, dtype=np.float32), np.arange(12)))
    mapped = slices.shuffle(5, seed=3).map(lambda x, y: (x * 2, y), num_parallel_calls=2).repeat(2).batch(5).prefetch(1)
    tf.identity(tf.data.make_one_shot_iterator(mapped).get_next()[0], name="first")
    factor = tf.placeholder(tf.int64, [], name="factor")
    inner = tf.data.Dataset.range(4).flat_map(lambda x: tf.data.Dataset.range(x).map(lambda y: y * factor))
    iterator = tf.data.make_initializable_iterator(inner.filter(lambda x: x >= 0).take(9))
    tf.identity(iterator.get_next(), name="second")
    tf.group(iterator.initializer, name="begin")
    windows = tf.data.Dataset.range(9).window(3).interleave(lambda w: w.batch(3), cycle_length=2)
    tf.identity(tf.data.make_one_shot_iterator(windows).get_next(), name="third")
    total = tf.data.Dataset.range(5).reduce(np.int64(0), lambda a, b: a + b)
    tf.identity(total, name="total")


def results(tf: Any, definition: Any) -> list[Any]:
    with tf.Graph().as_default() as graph, tf.Session(graph=graph) as session:
        tf.import_graph_def(definition, name="")
        session.run("begin", {"factor:0": 3})
        return [*(taken(tf, session, f"{name}:0") for name in ("first", "second", "third")), session.run("total:0")]


@pytest.mark.parametrize("writer", [ours, theirs], ids=["ours", "theirs"])
def test_graphs_with_datasets_go_both_ways(writer: Any) -> None:
    with writer.Graph().as_default() as graph:
        build(writer)
    text = graph.as_graph_def().SerializeToString()
    found = [results(tf, tf.GraphDef.FromString(text)) for tf in (ours, theirs)]
    assert found[0] == found[1]
    assert len(found[0][0]) == 5
