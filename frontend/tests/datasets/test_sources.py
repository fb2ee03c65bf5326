"""Datasets of files and of what Python makes."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import timberframe as tf

from .conftest import Elements, taken

Dataset = tf.data.Dataset


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        (b"a\nb\n", [b"a", b"b"]),
        (b"a\n\nlast", [b"a", b"", b"last"]),
        (b"a\r\nb\r\n", [b"a", b"b"]),
        (b"a\rb\n", [b"ab"]),
        (b"", []),
        (b"\n", [b""]),
    ],
)
def test_lines_come_without_their_ends(elements: Elements, tmp_path: Path, text: bytes, lines: list[bytes]) -> None:
    (tmp_path / "x").write_bytes(text)
    assert elements(tf.data.TextLineDataset(str(tmp_path / "x"))) == lines


def test_lines_of_files_larger_than_what_is_read_at_once(elements: Elements, tmp_path: Path) -> None:
    lines = [b"x" * (k * 997 % 5000) for k in range(300)]
    (tmp_path / "x").write_bytes(b"\n".join(lines))
    assert elements(tf.data.TextLineDataset(str(tmp_path / "x"), buffer_size=10), 1000) == lines


@pytest.mark.parametrize(("kind", "pack"), [("GZIP", gzip.compress), ("ZLIB", zlib.compress)])
def test_lines_of_compressed_files(elements: Elements, tmp_path: Path, kind: str, pack: Any) -> None:
    (tmp_path / "x").write_bytes(pack(b"one\ntwo\n" * 50))
    assert elements(tf.data.TextLineDataset(str(tmp_path / "x"), kind)) == [b"one", b"two"] * 50


def test_names_of_files_may_be_a_dataset(elements: Elements, tmp_path: Path) -> None:
    for i in range(2):
        (tmp_path / f"{i}").write_text(f"{i}\n")
    names = Dataset.list_files(str(tmp_path / "*"), shuffle=False)
    assert elements(tf.data.TextLineDataset(names)) == [b"0", b"1"]


def test_a_missing_file_is_an_error_and_the_next_one_is_read(elements: Elements, tmp_path: Path) -> None:
    (tmp_path / "x").write_text("line\n")
    names = [str(tmp_path / "absent"), str(tmp_path / "x")]
    assert elements(tf.data.TextLineDataset(names)) == ["NotFoundError", b"line"]


def records(path: Path, values: list[bytes], compression: str = "") -> str:
    with tf.python_io.TFRecordWriter(str(path), compression) as writer:
        for value in values:
            writer.write(value)
    return str(path)


VALUES = [b"", b"x", b"yy" * 3000, b"z" * 17] * 40


@pytest.mark.parametrize("compression", ["", "GZIP", "ZLIB"])
def test_records(elements: Elements, tmp_path: Path, compression: str) -> None:
    name = records(tmp_path / "x", VALUES, compression)
    assert elements(tf.data.TFRecordDataset([name], compression), 1000) == VALUES


def test_records_in_batches(elements: Elements, tmp_path: Path) -> None:
    found = elements(tf.data.TFRecordDataset(records(tmp_path / "x", VALUES)).batch(7))
    assert [x for batch in found for x in batch] == VALUES


@pytest.mark.parametrize("at", [0, 5, 9, 13, 30])
def test_a_damaged_record_is_data_loss(session: tf.Session, tmp_path: Path, at: int) -> None:
    name = records(tmp_path / "x", [b"first record", b"second"])
    data = bytearray(Path(name).read_bytes())
    data[at] ^= 4
    Path(name).write_bytes(data)
    assert "DataLossError" in taken(session, tf.data.TFRecordDataset(name).make_one_shot_iterator().get_next())


def test_a_record_that_is_cut_off_is_data_loss(elements: Elements, tmp_path: Path) -> None:
    name = records(tmp_path / "x", [b"first", b"second"])
    data = Path(name).read_bytes()
    Path(name).write_bytes(data[:-3])
    assert elements(tf.data.TFRecordDataset(name)) == [b"first", "DataLossError"]


def test_several_files_of_records_in_turn(elements: Elements, tmp_path: Path) -> None:
    names = [records(tmp_path / str(i), [f"{i}{k}".encode() for k in range(2)]) for i in range(2)]
    assert elements(tf.data.TFRecordDataset(names)) == [b"00", b"01", b"10", b"11"]


def test_records_of_one_length(elements: Elements, tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"HEADaabbccFOOT")
    dataset = tf.data.FixedLengthRecordDataset(str(tmp_path / "x"), 2, header_bytes=4, footer_bytes=4)
    assert elements(dataset) == [b"aa", b"bb", b"cc"]


def test_a_file_that_is_no_number_of_records_is_refused(elements: Elements, tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"aabbc")
    assert elements(tf.data.FixedLengthRecordDataset(str(tmp_path / "x"), 2)) == [b"aa", b"bb", "InvalidRecordsError"]


def test_examples_are_parsed(elements: Elements, tmp_path: Path) -> None:
    def example(k: int) -> bytes:
        feature = {
            "x": tf.train.Feature(float_list=tf.train.FloatList(value=[k, k + 0.5])),
            "label": tf.train.Feature(int64_list=tf.train.Int64List(value=[k])),
        }
        return tf.train.Example(features=tf.train.Features(feature=feature)).SerializeToString()

    name = records(tmp_path / "x", [example(k) for k in range(5)])
    features = {"x": tf.FixedLenFeature([2], tf.float32), "label": tf.FixedLenFeature([], tf.int64)}
    one_by_one = tf.data.TFRecordDataset(name).map(lambda s: tf.parse_single_example(s, features)).batch(2)
    at_once = tf.data.TFRecordDataset(name).batch(2).map(lambda s: tf.parse_example(s, features))
    assert elements(one_by_one) == elements(at_once)
    assert elements(at_once)[1] == {"x": [[2.0, 2.5], [3.0, 3.5]], "label": [2, 3]}


def test_files_are_listed_in_random_order_that_follows_from_the_seed(elements: Elements, tmp_path: Path) -> None:
    for i in range(9):
        (tmp_path / f"{i}").touch()
    pattern = str(tmp_path / "*")
    orders = [elements(Dataset.list_files(pattern, seed=3)) for _ in range(2)]
    assert orders[0] == orders[1] != sorted(orders[0])


def test_listing_no_file_is_an_error(session: tf.Session, tmp_path: Path) -> None:
    iterator = Dataset.list_files(str(tmp_path / "none*")).make_initializable_iterator()
    with pytest.raises(tf.errors.InvalidArgumentError, match="No files matched pattern"):
        session.run(iterator.initializer)


def test_a_generator_is_called_for_each_repetition(elements: Elements) -> None:
    calls: list[int] = []

    def count() -> Iterator[int]:
        calls.append(1)
        yield from range(2)

    assert elements(Dataset.from_generator(count, tf.int32, []).repeat(3)) == [0, 1] * 3
    assert len(calls) == 3


def test_a_generator_gives_structures(elements: Elements) -> None:
    def pairs() -> Iterator[Any]:
        yield {"a": [1, 2], "b": ("x", 0.5)}

    types = {"a": tf.int64, "b": (tf.string, tf.float32)}
    dataset = Dataset.from_generator(pairs, types, {"a": [None], "b": ([], [])})
    assert elements(dataset) == [{"a": [1, 2], "b": (b"x", 0.5)}]


def test_a_generator_gets_arguments(elements: Elements) -> None:
    assert elements(Dataset.from_generator(lambda n: iter(range(n)), tf.int64, [], args=(3,))) == [0, 1, 2]


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("text", "could not be converted to the expected type"),
        ([1], "yielded an element of shape"),
    ],
)
def test_a_wrong_element_of_a_generator_is_refused(session: tf.Session, value: Any, message: str) -> None:
    following = Dataset.from_generator(lambda: iter([value]), tf.int64, []).make_one_shot_iterator().get_next()
    with pytest.raises(tf.errors.InvalidArgumentError, match=message):
        session.run(following)


def test_an_error_of_a_generator_ends_it(elements: Elements) -> None:
    def broken() -> Iterator[int]:
        yield 1
        raise ValueError("no more")

    assert elements(Dataset.from_generator(broken, tf.int64, [])) == [1, "InvalidArgumentError"]


def test_map_and_batch(elements: Elements) -> None:
    dataset = Dataset.range(5).apply(tf.data.experimental.map_and_batch(lambda x: (x, x * x), 2, drop_remainder=True))
    assert elements(dataset) == [([0, 1], [0, 1]), ([2, 3], [4, 9])]


def test_batches_without_a_smaller_last_one(elements: Elements) -> None:
    assert elements(Dataset.range(5).apply(tf.contrib.data.batch_and_drop_remainder(2))) == [[0, 1], [2, 3]]
    ragged = Dataset.range(1, 4).map(lambda n: tf.fill([n], n))
    padded = tf.contrib.data.padded_batch_and_drop_remainder(2, [None])
    assert elements(ragged.apply(padded)) == [[[1, 0], [2, 2]]]


def test_parallel_interleave_keeps_the_order(elements: Elements) -> None:
    turns = tf.contrib.data.parallel_interleave(lambda x: Dataset.range(x), 2, block_length=2)
    assert elements(Dataset.range(4).apply(turns)) == elements(Dataset.range(4).interleave(Dataset.range, 2, 2))


def test_groups_have_one_key(elements: Elements) -> None:
    grouped = tf.data.experimental.group_by_window(lambda x: x % 2, lambda key, window: window.batch(3), window_size=3)
    assert elements(Dataset.range(8).apply(grouped)) == [[0, 2, 4], [1, 3, 5], [6], [7]]


def test_buckets_have_similar_lengths(elements: Elements) -> None:
    ragged = Dataset.from_tensor_slices([1, 5, 2, 6, 1, 7]).map(lambda n: tf.fill([n], n))
    bucketed = tf.data.experimental.bucket_by_sequence_length(lambda x: tf.size(x), [4], [2, 2])
    assert elements(ragged.apply(bucketed))[:2] == [
        [[1, 0], [2, 2]], [[5, 5, 5, 5, 5, 0], [6, 6, 6, 6, 6, 6]],
    ]  # fmt: skip


def test_the_only_element(session: tf.Session) -> None:
    assert session.run(tf.data.experimental.get_single_element(Dataset.range(3).batch(3))).tolist() == [0, 1, 2]


@pytest.mark.parametrize("count", [0, 2])
def test_a_single_element_must_be_the_only_one(session: tf.Session, count: int) -> None:
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"must have one( element)?$|must have one.*\["):
        session.run(tf.data.experimental.get_single_element(Dataset.range(count)))


def test_counter(elements: Elements) -> None:
    assert elements(tf.data.experimental.Counter(3, 2), 3) == [3, 5, 7]


def test_datasets_are_sampled_by_weight(elements: Elements) -> None:
    parts = [Dataset.from_tensors(i).repeat() for i in range(2)]
    drawn = elements(tf.data.experimental.sample_from_datasets(parts, [0.9, 0.1], seed=1), 200)
    assert 5 < sum(drawn) < 50


def test_a_dataset_is_chosen_for_each_element(elements: Elements) -> None:
    parts = [Dataset.range(0, 10), Dataset.range(10, 20)]
    chosen = tf.data.experimental.choose_from_datasets(parts, Dataset.from_tensor_slices(np.int64([1, 0, 1, 1])))
    assert elements(chosen) == [10, 0, 11, 12]


def test_the_number_of_elements(session: tf.Session) -> None:
    datasets = [
        Dataset.range(7).batch(2).repeat(3),
        Dataset.range(3).repeat(),
        Dataset.range(3).filter(lambda x: x > 1),
    ]
    assert session.run([tf.data.experimental.cardinality(d) for d in datasets]) == [12, -1, -2]


def test_unbatch(elements: Elements) -> None:
    assert elements(Dataset.range(5).batch(2).apply(tf.data.experimental.unbatch())) == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("weights", [[1.0, 0.0], np.float64([1, 0])])
def test_a_dataset_of_weight_zero_counts_as_one_that_has_ended(elements: Elements, weights: Any) -> None:
    parts = [Dataset.range(4), Dataset.range(50, 60)]
    assert elements(tf.data.experimental.sample_from_datasets(parts, weights, seed=3)) == [0, 1, 2, 3]


def test_a_dataset_of_weight_zero_takes_no_seed_of_another_use_of_it(elements: Elements) -> None:
    shuffled = Dataset.range(4).shuffle(11, seed=1)
    one = tf.data.experimental.sample_from_datasets([Dataset.range(1, 3), shuffled], [1.0, 0.0], seed=1)
    assert elements(one.concatenate(shuffled)) == [1, 2, 0, 3, 1, 2]  # TensorFlow 2.21's


def test_each_dataset_needs_a_weight() -> None:
    with pytest.raises(ValueError, match="1 weights for 2 datasets"):
        tf.data.experimental.sample_from_datasets([Dataset.range(4), Dataset.range(4)], [1.0])


@pytest.mark.parametrize(
    ("weights", "seed", "order"),  # TensorFlow 2.21's
    [
        ([0.7, 0.3], 3, [0, 1, 0, 2, 3, 4, 5, -1, 6, 7, -2, 8, -3, -4, -5, -6, -7, -8]),
        (None, 7, [0, 0, -1, 1, 2, -2, -3, -4, 3, -5, -6, -7, 4, 5, 6, 7, -8, 8]),
    ],
)
def test_a_seed_gives_tensorflows_order(elements: Elements, weights: Any, seed: int, order: list[int]) -> None:
    parts = [Dataset.range(9), Dataset.range(9).map(lambda x: -x)]
    assert elements(tf.data.experimental.sample_from_datasets(parts, weights, seed)) == order


def test_weights_may_be_a_dataset(elements: Elements) -> None:
    parts = [Dataset.range(9), Dataset.range(9).map(lambda x: -x)]
    weights = Dataset.from_tensors([0.2, 0.8]).repeat()
    found = elements(tf.data.experimental.sample_from_datasets(parts, weights, seed=8))
    assert found == [0, -1, -2, -3, -4, -5, -6, -7, -8, 0, 1, 2, 3, 4, 5, 6, 7, 8]  # TensorFlow 2.21's


def test_weights_of_integers_are_refused() -> None:
    with pytest.raises(TypeError, match=r"weights are int32; float32 or float64 is required"):
        tf.data.experimental.sample_from_datasets([Dataset.range(4), Dataset.range(4)], [1, 0])


@pytest.mark.parametrize(("weight", "wanted"), [(0.0, []), (0.5, [0, 1, 2])])
def test_one_dataset_to_draw_from_of_any_weight(elements: Elements, weight: float, wanted: list[int]) -> None:
    drawn = [
        tf.data.experimental.sample_from_datasets([Dataset.range(3)], w) for w in ([weight], tf.constant([weight]))
    ]
    assert [elements(d) for d in drawn] == [wanted, wanted]
