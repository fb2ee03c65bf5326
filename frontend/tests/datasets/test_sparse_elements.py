"""Sparse tensors in elements of datasets."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import timberframe as tf


def sparse(indices: list[Any], values: list[Any], shape: list[int]) -> tf.SparseTensor:
    return tf.SparseTensor(np.array(indices, np.int64).reshape(-1, len(shape)), values, shape)


def dense(session: tf.Session, dataset: Any) -> list[Any]:
    """Returns the elements, which are sparse tensors, made dense."""
    following = dataset.make_one_shot_iterator().get_next()
    assert isinstance(following, tf.SparseTensor)
    made, found = tf.sparse_tensor_to_dense(following), []
    while True:
        try:
            found.append(session.run(made).tolist())
        except tf.errors.OutOfRangeError:
            return found


MATRIX = ([[0, 1], [2, 0], [2, 2]], [1.0, 2.0, 3.0], [3, 3])
ROWS = [[0.0, 1.0, 0.0], [0.0, 0.0, 0.0], [2.0, 0.0, 3.0]]


def test_rows_of_a_sparse_tensor_are_elements(session: tf.Session) -> None:
    dataset = tf.data.Dataset.from_tensor_slices(sparse(*MATRIX))
    assert dense(session, dataset) == ROWS
    assert (dataset.output_types, dataset.output_shapes.as_list()) == (tf.float32, [3])
    assert dataset.output_classes is tf.SparseTensor


def test_a_whole_sparse_tensor_is_an_element(session: tf.Session) -> None:
    assert dense(session, tf.data.Dataset.from_tensors(sparse(*MATRIX)).repeat(2)) == [ROWS, ROWS]


def test_batches_are_sparse_tensors_with_one_dimension_more(session: tf.Session) -> None:
    dataset = tf.data.Dataset.from_tensor_slices(sparse(*MATRIX)).batch(2)
    assert dataset.output_shapes.as_list() == [None, 3]
    assert dense(session, dataset) == [ROWS[:2], ROWS[2:]]
    assert dense(session, dataset.unbatch()) == ROWS


def test_functions_get_and_return_them(session: tf.Session) -> None:
    numbers = tf.data.Dataset.range(1, 4)
    made = numbers.map(lambda n: tf.SparseTensor([[n - 1]], [n * 10], [3]))
    doubled = made.map(lambda s: s.with_values(s.values * 2))
    assert dense(session, doubled) == [[20, 0, 0], [0, 40, 0], [0, 0, 60]]
    large = made.filter(lambda s: tf.reduce_sum(s.values) > 15)
    assert dense(session, large.batch(2)) == [[[0, 20, 0], [0, 0, 30]]]


def test_batches_are_as_large_as_their_largest_element(session: tf.Session) -> None:
    made = tf.data.Dataset.range(1, 3).map(lambda n: tf.SparseTensor([[0]], [n], [n]))
    assert dense(session, made.batch(2)) == [[[1, 0], [2, 0]]]


def test_structures_of_sparse_and_dense_tensors(session: tf.Session) -> None:
    part = tf.data.Dataset.from_tensor_slices({"s": sparse(*MATRIX), "d": [1, 2, 3]})
    following = tf.data.Dataset.zip((part, tf.data.Dataset.range(3))).make_one_shot_iterator().get_next()
    element, number = session.run(following)
    assert (element["s"].values.tolist(), element["d"], number) == ([1.0], 1, 0)


def test_an_iterator_of_a_structure_goes_through_them(session: tf.Session) -> None:
    dataset = tf.data.Dataset.from_tensor_slices(sparse(*MATRIX)).batch(2)
    iterator = tf.data.Iterator.from_structure(
        dataset.output_types, dataset.output_shapes, None, dataset.output_classes
    )
    following = iterator.get_next()
    session.run(iterator.make_initializer(dataset))
    assert session.run(tf.sparse_tensor_to_dense(following)).tolist() == ROWS[:2]
    with pytest.raises(TypeError, match="one like SparseLeaf"):
        iterator.make_initializer(tf.data.Dataset.from_tensors(1.0))


def test_several_datasets_of_them_are_sampled(session: tf.Session) -> None:
    one, two = (tf.data.Dataset.from_tensors(sparse([[0]], [n], [n])) for n in (1, 2))
    chosen = tf.data.experimental.choose_from_datasets(
        [one, two], tf.data.Dataset.from_tensor_slices(tf.constant([1, 0], tf.int64))
    )
    assert dense(session, chosen) == [[2, 0], [1]]


def test_what_they_cannot_do_is_refused() -> None:
    dataset = tf.data.Dataset.from_tensors(sparse(*MATRIX))
    with pytest.raises(TypeError, match="only dense tensors can be padded"):
        dataset.padded_batch(2)
    with pytest.raises(TypeError, match="has no rows here"):
        dataset.unbatch()


def examples(folder: Path) -> str:
    """Returns the pattern of two files of 3 Examples each: x = [file, number], y = number, words = number times "a"."""
    for file in range(2):
        with tf.python_io.TFRecordWriter(str(folder / f"{file}.rec")) as writer:
            for number in range(3):
                example = tf.train.Example()
                example.features.feature["x"].float_list.value.extend([file, number])
                example.features.feature["y"].int64_list.value.append(number)
                example.features.feature["words"].bytes_list.value.extend([b"a"] * number)
                writer.write(example.SerializeToString())
    return str(folder / "*.rec")


FEATURES = {
    "x": tf.FixedLenFeature([2], tf.float32), "y": tf.FixedLenFeature([], tf.int64),
    "words": tf.VarLenFeature(tf.string),
}  # fmt: skip


def test_batches_of_features_of_examples(session: tf.Session, tmp_path: Path) -> None:
    dataset = tf.data.experimental.make_batched_features_dataset(
        examples(tmp_path), 4, FEATURES, label_key="y", num_epochs=1, shuffle=False
    )
    following = dataset.make_one_shot_iterator().get_next()
    features, labels = session.run(following)
    assert features["x"].tolist() == [[0, 0], [0, 1], [0, 2], [1, 0]]
    assert features["words"].dense_shape.tolist() == [4, 2]
    assert labels.tolist() == [0, 1, 2, 0]
    assert session.run(following)[1].tolist() == [1, 2]
    with pytest.raises(tf.errors.OutOfRangeError):
        session.run(following)


def test_batches_of_features_go_on_without_end_by_default(session: tf.Session, tmp_path: Path) -> None:
    dataset = tf.data.experimental.make_batched_features_dataset(examples(tmp_path), 4, FEATURES, shuffle_seed=1)
    following = dataset.make_one_shot_iterator().get_next()
    assert all(session.run(following)["x"].shape == (4, 2) for _ in range(10))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"label_key": "z"}, "label_key is 'z'; it must be one of the features, words, x, y"),
        ({"reader": lambda name: tf.data.Dataset.range(3)}, "reader gives elements of .*; serialised Examples"),
        ({"features": {}}, "no features; at least one is required"),
    ],
)
def test_wrong_arguments_of_batches_of_features(tmp_path: Path, given: dict[str, Any], message: str) -> None:
    with pytest.raises(tf.errors.InvalidArgumentError, match=message):
        tf.data.experimental.make_batched_features_dataset(examples(tmp_path), 4, **{"features": FEATURES, **given})
