"""Ten pipelines of tf.data: one program for the device's sessions and for TensorFlow's, whose names it shares."""

from __future__ import annotations

import atexit
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from timberframe_conformance.bench.workload import Call

PREFIX = "tf.data: "
BATCH = 128
RUNS = 20
"""Of one call, so that threads that make elements ahead have to keep pace."""

_FOREVER = 10**9


class Files:
    """What the pipelines read: lines of eight numbers each, and Examples of 32 numbers and a label."""

    def __init__(self, folder: Path, lines: int = 2000, examples: int = 2000) -> None:
        from timberframe.python_io import TFRecordWriter

        rng = np.random.default_rng(5)
        self.texts = [str(folder / f"{i}.csv") for i in range(4)]
        for name in self.texts:
            rows = rng.uniform(size=(lines, 8))
            Path(name).write_text("".join(",".join(f"{x:.4f}" for x in row) + "\n" for row in rows))
        self.records = str(folder / "records")
        with TFRecordWriter(self.records) as writer:
            for i in range(examples):
                writer.write(_example(rng.uniform(size=32), i % 10))


def _example(numbers: np.ndarray, label: int) -> bytes:
    import timberframe as tf

    feature = {
        "x": tf.train.Feature(float_list=tf.train.FloatList(value=numbers.tolist())),
        "y": tf.train.Feature(int64_list=tf.train.Int64List(value=[label])),
    }
    made: bytes = tf.train.Example(features=tf.train.Features(feature=feature)).SerializeToString()
    return made


def _generated() -> Iterator[Any]:
    for i in range(_FOREVER):
        yield np.full(8, i, np.float32), i


def _images() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(6)
    return rng.uniform(size=(10_000, 64)).astype(np.float32), np.arange(10_000) % 10


def _parsed(tf: Any, text: Any) -> Any:
    return tf.parse_example(text, {"x": tf.FixedLenFeature([32], tf.float32), "y": tf.FixedLenFeature([], tf.int64)})


def _training(tf: Any, dataset: Any) -> Any:
    """Returns a step of a small network on what a dataset gives, and what sets its variables."""
    images, labels = tf.data.make_one_shot_iterator(dataset).get_next()
    hidden = tf.nn.relu(tf.matmul(images, tf.get_variable("first", [64, 256])))
    logits = tf.matmul(hidden, tf.get_variable("second", [256, 10]))
    losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits)
    return tf.train.GradientDescentOptimizer(0.1).minimize(tf.reduce_mean(losses))


Make = Callable[[Any, Files], Any]
"""A dataset of batches of one of the two libraries."""

PIPELINES: dict[str, Make] = {
    "range, map, batch": lambda tf, files: tf.data.Dataset.range(_FOREVER).map(lambda x: x * 2 + 1).batch(BATCH),
    "slices, shuffle, batch": lambda tf, files: (
        tf.data.Dataset.from_tensor_slices(_images()).shuffle(5000, seed=1).repeat().batch(BATCH)
    ),
    "lines, decode_csv, batch": lambda tf, files: (
        tf.data.TextLineDataset(files.texts).repeat()
        .map(lambda line: tf.stack(tf.decode_csv(line, [[0.0]] * 8))).batch(BATCH)
    ),
    "TFRecord, batch, parse_example": lambda tf, files: (
        tf.data.TFRecordDataset(files.records).repeat().batch(BATCH).map(lambda text: _parsed(tf, text))
    ),
    "from_generator, batch": lambda tf, files: (
        tf.data.Dataset.from_generator(_generated, (tf.float32, tf.int64), ([8], [])).batch(BATCH)
    ),
    "map to many lengths, padded_batch": lambda tf, files: (
        tf.data.Dataset.range(_FOREVER).map(lambda x: tf.fill([x % 17 + 1], x)).padded_batch(BATCH, [None])
    ),
    "interleave of files, batch": lambda tf, files: (
        tf.data.Dataset.from_tensor_slices(files.texts)
        .interleave(lambda name: tf.data.TextLineDataset(name), 4, 16).repeat().batch(BATCH)
    ),
    "zip, batch": lambda tf, files: (
        tf.data.Dataset.zip((tf.data.Dataset.from_tensor_slices(_images()[0]).repeat(),
                             tf.data.Dataset.range(_FOREVER))).batch(BATCH)
    ),
    "filter, batch": lambda tf, files: (
        tf.data.Dataset.range(_FOREVER).filter(lambda x: tf.equal(x % 3, 0)).batch(BATCH)
    ),
    "prefetch over a training step": lambda tf, files: (
        tf.data.Dataset.from_tensor_slices(_images()).shuffle(1000, seed=1).repeat()
        .map(lambda image, label: (image * 2 - 1, label)).batch(BATCH).prefetch(2)
    ),
}  # fmt: skip


def pipeline(tf: Any, name: str, files: Files, session: Callable[[Any], Any]) -> Call:
    """Returns a call that takes `RUNS` batches of a pipeline. tf: timberframe, or tensorflow.compat.v1."""
    with tf.Graph().as_default() as graph:
        dataset = PIPELINES[name](tf, files)
        trains = "training" in name
        fetch = _training(tf, dataset) if trains else tf.data.make_one_shot_iterator(dataset).get_next()
        made = session(graph)
        made.run(tf.global_variables_initializer())
    run = made.run

    def call() -> Any:
        for _ in range(RUNS):
            found = run(fetch)
        return found

    return call


def tensorflow_call(name: str, files: Files) -> Call:
    """Returns the pipeline in TensorFlow's own Session."""
    import tensorflow.compat.v1 as tf  # type: ignore[import-untyped]  # a peer that need not be there

    tf.logging.set_verbosity(tf.logging.ERROR)  # of names that TensorFlow 2 gave others
    return pipeline(tf, name, files, lambda graph: tf.Session(graph=graph))


def temporary_files() -> Files:
    """Returns files in a folder of their own, which goes when the process ends."""
    folder = tempfile.mkdtemp(prefix="conformance-pipelines-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return Files(Path(folder))
