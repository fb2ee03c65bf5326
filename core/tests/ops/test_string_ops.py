"""ReduceJoin and GenerateVocabRemapping, whose answers are TensorFlow's."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import timberframe as tf

LETTERS = [["a", "b"], ["c", "d"]]


@pytest.fixture
def session() -> Iterator[tf.Session]:
    with tf.Graph().as_default() as graph, tf.Session(graph=graph) as session:
        yield session


@pytest.mark.parametrize(
    ("axes", "keep", "expected"),
    [
        ([0], False, [b"a-c", b"b-d"]),
        ([-1], False, [b"a-b", b"c-d"]),
        ([0, 1], False, b"a-c-b-d"),
        ([1, 0], False, b"a-b-c-d"),
        ([1], True, [[b"a-b"], [b"c-d"]]),
        ([], False, [[b"a", b"b"], [b"c", b"d"]]),
    ],
)
def test_strings_are_joined_along_dimensions(session: tf.Session, axes: list[int], keep: bool, expected: Any) -> None:
    joined = tf.raw_ops.ReduceJoin(
        inputs=LETTERS, reduction_indices=np.array(axes, np.int32), keep_dims=keep, separator="-"
    )
    assert np.asarray(session.run(joined), object).tolist() == expected


def test_dimensions_to_join_may_be_fed(session: tf.Session) -> None:
    axes = tf.placeholder(tf.int32)
    joined = tf.raw_ops.ReduceJoin(inputs=LETTERS, reduction_indices=axes)
    assert session.run(joined, {axes: [1, 0]}) == b"abcd"


def test_dimension_outside_is_out_of_range(session: tf.Session) -> None:
    axes = tf.placeholder(tf.int32)
    joined = tf.raw_ops.ReduceJoin(inputs=LETTERS, reduction_indices=axes, name="joined")
    with pytest.raises(tf.errors.OutOfRangeError, match=r"ReduceJoin 'joined': reduction_indices has 2 for rank 2"):
        session.run(joined, {axes: [2]})


def test_strings_of_no_elements_join_to_nothing(session: tf.Session) -> None:
    joined = tf.raw_ops.ReduceJoin(inputs=np.zeros((2, 0), object), reduction_indices=[1])
    assert session.run(joined).tolist() == [b"", b""]


@pytest.fixture
def vocabularies(tmp_path: Path) -> tuple[str, str]:
    old, new = tmp_path / "old", tmp_path / "new"
    old.write_bytes(b"a\nb\r\nc\n")
    new.write_bytes(b"c\na\nx")
    return str(new), str(old)


@pytest.mark.parametrize(
    ("offset", "count", "size", "expected"),
    [(0, 3, -1, ([2, 0, -1], 2)), (1, 1, 1, ([0], 1)), (0, 3, 2, ([-1, 0, -1], 1)), (0, 0, -1, ([], 0))],
)
def test_words_are_found_in_the_old_vocabulary(
    session: tf.Session, vocabularies: tuple[str, str], offset: int, count: int, size: int, expected: Any
) -> None:
    new, old = vocabularies
    made = tf.raw_ops.GenerateVocabRemapping(
        new_vocab_file=new, old_vocab_file=old, new_vocab_offset=offset, num_new_vocab=count, old_vocab_size=size
    )
    remapping, present = session.run(list(made))
    assert (remapping.tolist(), int(present)) == expected


@pytest.mark.parametrize(
    ("old", "count", "size", "error", "words"),
    [
        (b"a\na\n", 1, -1, tf.errors.FailedPreconditionError, "has 'a' in lines 0 and 1; each word must be there once"),
        (b"a\n", 1, 9, tf.errors.InvalidArgumentError, "has 1 lines; 9 are required"),
        (b"a\n", 4, -1, tf.errors.InvalidArgumentError, "has 3 lines; 4 are required"),
        (None, 1, -1, tf.errors.NotFoundError, "cannot be read"),
    ],
)
def test_bad_vocabularies_are_errors(
    session: tf.Session, vocabularies: tuple[str, str], old: bytes | None, count: int, size: int, error: Any, words: str
) -> None:
    new, path = vocabularies
    if old is None:
        Path(path).unlink()
    else:
        Path(path).write_bytes(old)
    made = tf.raw_ops.GenerateVocabRemapping(
        new_vocab_file=new, old_vocab_file=path, new_vocab_offset=0, num_new_vocab=count, old_vocab_size=size
    )
    with pytest.raises(error, match=words):
        session.run(made.remapping)


HASHES = {
    b"": 1936946117179621455,
    b"a": 3694432073954588131,
    b"hello world": 1769834696496558107,
    b"x" * 24: 1720933946053627091,
    b"y" * 48: 115286968839590345,
    b"z" * 100: 4609163928736578169,
}
"""Of TensorFlow 2.21, for 2**62 buckets."""


def test_hashes_are_tensorflows() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        found = session.run(tf.strings.to_hash_bucket_fast(list(HASHES), 2**62))
    assert found.tolist() == list(HASHES.values())
