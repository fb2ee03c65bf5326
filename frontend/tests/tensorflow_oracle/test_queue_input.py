"""Queue-based input gives the numbers, names and orders that TensorFlow gives from equal seeds."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import timberframe as ours

KINDS = ("Queue", "Reader", "FIFO", "PaddingFIFO", "RandomShuffle", "ScalarSummary", "TextLine", "FixedLength")


def lines(tf: Any, folder: Path) -> Any:
    files = tf.train.match_filenames_once(str(folder / "*.txt"))
    queue = tf.train.string_input_producer(tf.identity(files), num_epochs=2, seed=3)
    key, value = tf.TextLineReader(skip_header_lines=1).read(queue)
    first, second = tf.decode_csv(value, [[0], [0]])
    return tf.train.batch([first, second, key], 5, allow_smaller_final_batch=True)


def shuffled(tf: Any, folder: Path) -> Any:
    number, word = tf.train.slice_input_producer([tf.range(9), tf.constant([*"abcdefghi"])], num_epochs=2, seed=5)
    settings = {"capacity": 40, "min_after_dequeue": 18, "seed": 11, "allow_smaller_final_batch": True}
    return tf.train.shuffle_batch({"number": number, "word": word}, 4, **settings)


def fixed(tf: Any, folder: Path) -> Any:
    reader = tf.FixedLengthRecordReader(record_bytes=4, header_bytes=2, footer_bytes=2, hop_bytes=3)
    return reader.read_up_to(tf.train.string_input_producer([str(folder / "bytes")], num_epochs=1), 3)


def padded(tf: Any, folder: Path) -> Any:
    number = tf.train.range_input_producer(5, num_epochs=1, shuffle=False).dequeue()
    return tf.train.batch([tf.fill([number], number)], 2, dynamic_pad=True, allow_smaller_final_batch=True)


def sparse(tf: Any, folder: Path) -> Any:
    number = tf.train.range_input_producer(6, num_epochs=1, shuffle=False).dequeue()
    indices = tf.cast(tf.stack([[0], [number]]), tf.int64)
    held = tf.SparseTensor(indices, tf.stack([number, number * 2]), tf.constant([6], tf.int64))
    return tf.train.batch([number, held], 3)


def results(tf: Any, build: Any, folder: Path) -> tuple[list[str], list[Any]]:
    """Returns the names of operations on queues and readers, and what comes until the input ends."""
    found = []
    with tf.Graph().as_default() as graph:
        tf.set_random_seed(7)
        made = build(tf, folder)
        names = [op.name for op in graph.get_operations() if op.type.startswith(KINDS) and "cond" not in op.name]
        with tf.Session() as session:
            session.run([tf.global_variables_initializer(), tf.local_variables_initializer()])
            coordinator = tf.train.Coordinator()
            threads = tf.train.start_queue_runners(session, coordinator)
            with suppress(tf.errors.OutOfRangeError):
                while True:
                    found.append(session.run(made))
            coordinator.request_stop()
            coordinator.join(threads)
    return names, [flat(x) for x in found]


def flat(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: flat(v) for k, v in value.items()}
    return [flat(v) for v in value] if isinstance(value, list | tuple) else np.asarray(value).tolist()


@pytest.mark.parametrize("build", [lines, shuffled, fixed, padded, sparse])
def test_input_is_tensorflows(tensorflow: Any, tmp_path: Path, build: Any) -> None:
    for i in range(3):
        (tmp_path / f"{i}.txt").write_text("title\n" + "".join(f"{i},{j}\n" for j in range(3)))
    (tmp_path / "bytes").write_bytes(bytes(range(21)))
    assert results(ours, build, tmp_path) == results(tensorflow, build, tmp_path)


@pytest.mark.parametrize("direction", ["ours", "theirs"])
def test_queue_runners_of_meta_graphs_carry_over(tensorflow: Any, direction: str) -> None:
    source, target = (ours, tensorflow) if direction == "ours" else (tensorflow, ours)
    with source.Graph().as_default():
        numbers = source.train.range_input_producer(6, num_epochs=1, shuffle=False).dequeue()
        source.train.batch([numbers], 3, name="triples")
        meta = source.train.export_meta_graph()
    with target.Graph().as_default(), target.Session() as session:
        given = target.MetaGraphDef.FromString(meta.SerializeToString())
        target.train.import_meta_graph(given, import_scope="within")
        session.run(target.local_variables_initializer())
        coordinator = target.train.Coordinator()
        threads = target.train.start_queue_runners(session, coordinator)
        found = [session.run("within/triples:0").tolist() for _ in range(2)]
        coordinator.request_stop()
        coordinator.join(threads)
    assert found == [[0, 1, 2], [3, 4, 5]]
