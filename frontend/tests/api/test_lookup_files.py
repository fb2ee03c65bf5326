"""Tables whose entries are the lines of a text file, and those that number all other words, too."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import timberframe as tf

WHOLE, NUMBER = tf.lookup.TextFileIndex.WHOLE_LINE, tf.lookup.TextFileIndex.LINE_NUMBER


@pytest.fixture
def path(tmp_path: Path) -> str:
    file = tmp_path / "words"
    file.write_text("one\t10\ntwo\t20\nthree\t30\n")
    return str(file)


def found(initializer: Any, default: Any, keys: Any) -> list[Any]:
    table = tf.lookup.StaticHashTable(initializer, default)
    with tf.Session() as session:
        session.run(tf.tables_initializer())
        values: list[Any] = session.run(table.lookup(tf.convert_to_tensor(keys))).tolist()
        return values


def test_lines_and_their_numbers(path: str) -> None:
    made = tf.lookup.TextFileInitializer(path, tf.string, WHOLE, tf.int64, NUMBER)
    assert found(made, -1, ["two\t20", "one\t10", "two"]) == [1, 0, -1]
    made = tf.lookup.TextFileInitializer(path, tf.int64, NUMBER, tf.string, WHOLE)
    assert found(made, "none", tf.constant([2, 3], tf.int64)) == [b"three\t30", b"none"]


def test_columns_become_keys_and_values(path: str) -> None:
    made = tf.lookup.TextFileInitializer(path, tf.string, 0, tf.int64, 1)
    assert found(made, -1, ["two", "three", "four"]) == [20, 30, -1]


def test_numbers_of_lines_may_begin_elsewhere(path: str) -> None:
    made = tf.lookup.TextFileInitializer(path, tf.string, 0, tf.int64, NUMBER, vocab_size=2, value_index_offset=5)
    assert found(made, -1, ["one", "two", "three"]) == [5, 6, -1]


def test_other_words_have_numbers_after_those_of_the_table(path: str) -> None:
    table = tf.lookup.StaticVocabularyTable(
        tf.lookup.TextFileInitializer(path, tf.string, 0, tf.int64, NUMBER), num_oov_buckets=5
    )
    with tf.Session() as session:
        session.run(table.initializer)
        words = tf.constant(["two", "a", "b", "c", "dd", "eee"])
        assert session.run(table.lookup(words)).tolist() == [1, 7, 5, 5, 4, 5]  # as TensorFlow's
        assert session.run(table.size()) == 8


def numbered(path: str, buckets: int, value_dtype: Any = tf.int64, value_index: int = NUMBER) -> Any:
    return tf.lookup.StaticVocabularyTable(
        tf.lookup.TextFileInitializer(path, tf.string, 0, value_dtype, value_index), buckets
    )


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda p: tf.lookup.TextFileInitializer(p, tf.string, NUMBER, tf.int64, 1), "key_dtype is string; with"),
        (lambda p: tf.lookup.TextFileInitializer(p, tf.string, -3, tf.int64, 1), "key_index is -3"),
        (lambda p: numbered(p, 0), "num_oov_buckets is 0"),
        (lambda p: numbered(p, 1, tf.string, WHOLE), "values are string"),
    ],
)
def test_what_is_wrong_is_named(path: str, make: Any, message: str) -> None:
    with pytest.raises(tf.errors.InvalidArgumentError, match=message):
        make(path)
