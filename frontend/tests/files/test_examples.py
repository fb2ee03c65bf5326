"""Example messages: writing and parsing."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import timberframe as tf

pytestmark = pytest.mark.usefixtures("session")


def example(**features: list[Any]) -> bytes:
    made = {}
    for key, values in features.items():
        if isinstance(values[0], bytes):
            made[key] = tf.train.Feature(bytes_list=tf.train.BytesList(value=values))
        elif isinstance(values[0], float):
            made[key] = tf.train.Feature(float_list=tf.train.FloatList(value=values))
        else:
            made[key] = tf.train.Feature(int64_list=tf.train.Int64List(value=values))
    return bytes(tf.train.Example(features=tf.train.Features(feature=made)).SerializeToString())


ONE, TWO = example(a=[1.0, 2.0], n=[1, 2, 3], t=[b"x"]), example(a=[3.0, 4.0], n=[4])


def test_single_examples(session: tf.Session) -> None:
    features = {"a": tf.FixedLenFeature([2], tf.float32), "t": tf.FixedLenFeature([], tf.string)}
    found = tf.parse_single_example(ONE, {**features, "n": tf.VarLenFeature(tf.int64)})
    assert (found["a"].shape.as_list(), found["t"].shape.as_list()) == ([2], [])
    got = session.run(found)
    assert (got["a"].tolist(), got["t"]) == ([1.0, 2.0], b"x")
    assert (got["n"].indices.tolist(), got["n"].values.tolist()) == ([[0], [1], [2]], [1, 2, 3])


def test_batches(session: tf.Session) -> None:
    features = {
        "a": tf.FixedLenFeature([1, 2], tf.float32),
        "t": tf.FixedLenFeature([], tf.string, b"none"),
        "n": tf.VarLenFeature(tf.int64),
        "s": tf.FixedLenSequenceFeature([], tf.int64, allow_missing=True, default_value=9),
    }
    got = session.run(tf.parse_example([ONE, TWO], features))
    assert got["a"].tolist() == [[[1.0, 2.0]], [[3.0, 4.0]]]
    assert got["t"].tolist() == [b"x", b"none"]
    assert got["n"].indices.tolist() == [[0, 0], [0, 1], [0, 2], [1, 0]]
    assert got["n"].dense_shape.tolist() == [2, 3]
    assert got["s"].shape == (2, 0)


def test_sequences_are_filled(session: tf.Session) -> None:
    got = session.run(tf.parse_example([ONE, TWO], {"n": tf.FixedLenSequenceFeature([], tf.int64, True, -1)}))
    assert got["n"].tolist() == [[1, 2, 3], [4, -1, -1]]


def test_sparse_features_of_two_keys(session: tf.Session) -> None:
    given = example(at=[4, 0], v=[1.0, 2.0])
    got = session.run(tf.parse_example([given], {"x": tf.SparseFeature("at", "v", tf.float32, 5)}))["x"]
    assert (got.indices.tolist(), got.values.tolist(), got.dense_shape.tolist()) == (
        [[0, 4], [0, 0]],
        [1.0, 2.0],
        [1, 5],
    )


def test_a_file_of_examples_is_read_back(session: tf.Session, tmp_path: Path) -> None:
    with tf.python_io.TFRecordWriter(tmp_path / "a") as writer:
        for i in range(3):
            writer.write(example(n=[i]))
    records = list(tf.python_io.tf_record_iterator(tmp_path / "a"))
    assert session.run(tf.parse_example(records, {"n": tf.FixedLenFeature([], tf.int64)}))["n"].tolist() == [0, 1, 2]


@pytest.mark.parametrize(
    ("features", "message"),
    [
        ({"z": tf.FixedLenFeature([], tf.int64)}, "example 0: feature 'z' is missing and has no default"),
        ({"n": tf.FixedLenFeature([2], tf.int64)}, r"example 0: feature 'n' has 3 values; shape \(2,\) needs 2"),
        ({"n": tf.FixedLenFeature([3], tf.float32)}, "feature 'n' has a int64_list; a float_list, of float32"),
        ({"n": tf.FixedLenFeature([None], tf.int64)}, "each size of a FixedLenFeature must be known"),
        ({"n": tf.FixedLenFeature([2], tf.int64, [1, 2, 3])}, "feature 'n' has a default of shape"),
        ({"n": tf.FixedLenSequenceFeature([], tf.int64)}, "allow_missing is False"),
        ({"n": tf.int64}, "feature 'n' is .*; a FixedLenFeature, VarLenFeature"),
        ({}, "features is empty"),
    ],
)
def test_wrong_features(session: tf.Session, features: dict[str, Any], message: str) -> None:
    with pytest.raises(tf.errors.InvalidArgumentError, match=message):
        session.run(tf.parse_example([ONE], features))


def test_other_bytes_are_refused(session: tf.Session) -> None:
    parsed = tf.parse_example([b"\xff\xff"], {"n": tf.VarLenFeature(tf.int64)}, example_names=["first"])
    with pytest.raises(tf.errors.InvalidArgumentError, match="example 'first': 2 bytes do not parse as Example"):
        session.run(parsed)
    wrong: Callable[[], Any] = lambda: tf.parse_single_example([ONE], {"n": tf.VarLenFeature(tf.int64)})  # noqa: E731 - called below
    with pytest.raises(tf.errors.InvalidArgumentError, match="it must be a scalar"):
        wrong()
