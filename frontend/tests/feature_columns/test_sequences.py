"""Feature columns of sequences, and the layer that takes them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import timberframe as tf

from ..conftest import run

fc, contrib = tf.feature_column, tf.contrib.feature_column
RANDOM = np.random.default_rng(0)
WORDS = np.array([["a", "c", ""], ["", "", ""], ["b", "zz", "a"]], object)


def sparse(array: np.ndarray, kept: np.ndarray) -> tf.SparseTensor:
    return tf.SparseTensor(np.argwhere(kept), array[kept], array.shape)


def test_an_indicator_has_each_step(session: tf.Session) -> None:
    column = fc.indicator_column(fc.sequence_categorical_column_with_vocabulary_list("words", ["a", "b", "c"]))
    values, lengths = run(session, contrib.sequence_input_layer({"words": sparse(WORDS, WORDS != "")}, [column]))
    assert lengths.tolist() == [2, 0, 3]
    assert values[0].tolist() == [[1, 0, 0], [0, 0, 1], [0, 0, 0]]
    assert values[2].tolist() == [[0, 1, 0], [0, 0, 0], [1, 0, 0]]


def test_dense_words_end_with_empty_ones(session: tf.Session) -> None:
    column = fc.indicator_column(fc.sequence_categorical_column_with_vocabulary_list("words", ["a", "b", "c"]))
    _, lengths = run(session, contrib.sequence_input_layer({"words": WORDS}, [column]))
    assert lengths.tolist() == [2, 0, 3]


def test_an_embedding_has_the_vector_of_each_step(session: tf.Session) -> None:
    numbers = np.array([[2, 0], [1, -1]], np.int64)
    column = fc.embedding_column(fc.sequence_categorical_column_with_identity("numbers", 3), 4)
    values, lengths = run(session, contrib.sequence_input_layer({"numbers": numbers}, [column]))
    (weights,) = tf.global_variables()
    assert weights.op.name == "sequence_input_layer/numbers_embedding/embedding_weights"
    table = session.run(weights)
    np.testing.assert_array_equal(values, [[table[2], table[0]], [table[1], np.zeros(4)]])
    assert lengths.tolist() == [2, 1]


def test_categories_of_one_step_are_combined(session: tf.Session) -> None:
    numbers = np.array([[[2, 0], [1, -1]], [[-1, -1], [-1, -1]]], np.int64)
    column = fc.embedding_column(fc.sequence_categorical_column_with_identity("numbers", 3), 4)
    given = {"numbers": sparse(numbers, numbers >= 0)}
    values, lengths = run(session, contrib.sequence_input_layer(given, [column]))
    table = session.run(tf.global_variables()[0])
    np.testing.assert_allclose(values[0], [(table[2] + table[0]) / 2, table[1]], rtol=1e-6)
    assert lengths.tolist() == [2, 0]


def test_shared_vectors_of_sequences(session: tf.Session) -> None:
    columns = [fc.sequence_categorical_column_with_hash_bucket(key, 5) for key in ("one", "two")]
    shared = fc.shared_embedding_columns(columns, 2)
    values, _ = run(session, contrib.sequence_input_layer({"one": WORDS, "two": WORDS}, shared))
    assert [v.op.name for v in tf.global_variables()] == [
        "sequence_input_layer/one_two_shared_embedding/embedding_weights"
    ]
    np.testing.assert_array_equal(values[..., :2], values[..., 2:])


def test_numbers_of_several_for_each_step(session: tf.Session) -> None:
    numbers = np.arange(1.0, 9.0, dtype=np.float32).reshape(2, 4)
    kept = np.array([[True] * 4, [True, True, True, False]])
    column = fc.sequence_numeric_column("numbers", shape=(2,), default_value=-1.0)
    values, lengths = run(session, contrib.sequence_input_layer({"numbers": sparse(numbers, kept)}, [column]))
    assert values.tolist() == [[[1, 2], [3, 4]], [[5, 6], [7, -1]]]
    assert lengths.tolist() == [2, 2]


def test_numbers_are_normalized(session: tf.Session) -> None:
    def halved(x: tf.SparseTensor) -> tf.SparseTensor:
        return tf.SparseTensor(x.indices, x.values / 2, x.dense_shape)

    column = fc.sequence_numeric_column("numbers", normalizer_fn=halved)
    numbers = np.array([[4.0, 0.0]], np.float32)
    values, lengths = run(session, contrib.sequence_input_layer({"numbers": sparse(numbers, numbers > 0)}, [column]))
    assert values.tolist() == [[[2.0], [0.0]]]
    assert lengths.tolist() == [1]


def test_columns_are_side_by_side_by_their_names(session: tf.Session) -> None:
    numbers = np.array([[1.0, 2.0, 3.0]], np.float32)
    columns = [
        fc.sequence_numeric_column("z"), fc.indicator_column(fc.sequence_categorical_column_with_identity("a", 2)),
    ]  # fmt: skip
    features = {"z": sparse(numbers, numbers > 0), "a": np.array([[0, 1, 1]])}
    values, _ = run(session, contrib.sequence_input_layer(features, columns))
    assert values.tolist() == [[[1, 0, 1], [0, 1, 2], [0, 1, 3]]]


def test_numbers_of_steps_that_differ_are_an_error_of_the_run(session: tf.Session) -> None:
    columns = [fc.indicator_column(fc.sequence_categorical_column_with_identity(key, 2)) for key in "ab"]
    numbers = tf.placeholder(tf.int64, [None, 2])
    made = contrib.sequence_input_layer({"a": np.array([[0, 1]]), "b": numbers}, columns)
    with pytest.raises(tf.errors.InvalidArgumentError, match="assert_equal"):
        session.run(made, {numbers: [[0, -1]]})


def test_a_network_learns_from_sequences(session: tf.Session) -> None:
    words = RANDOM.choice(np.array(["a", "b", "c"], object), (16, 5))
    column = fc.embedding_column(fc.sequence_categorical_column_with_vocabulary_list("words", ["a", "b", "c"]), 4)
    steps, lengths = contrib.sequence_input_layer({"words": words}, [column])
    _, state = tf.nn.dynamic_rnn(tf.nn.rnn_cell.GRUCell(8), steps, lengths, dtype=tf.float32)
    wanted = (words == "a").sum(1).astype(np.float32)
    loss = tf.losses.mean_squared_error(wanted, tf.layers.dense(state, 1)[:, 0])
    train = tf.train.AdamOptimizer(0.05).minimize(loss)
    session.run([tf.global_variables_initializer(), tf.tables_initializer()])
    for _ in range(150):
        session.run(train)
    assert session.run(loss) < 0.1 * wanted.var()


def test_numbers_of_examples_beside_those_of_their_steps(session: tf.Session) -> None:
    context, steps = np.array([[1.0, 2.0]], np.float32), np.array([[[3.0], [4.0]]], np.float32)
    joined = session.run(contrib.concatenate_context_input(context, steps))
    assert joined.tolist() == [[[3.0, 1.0, 2.0], [4.0, 1.0, 2.0]]]


def test_features_of_sequences_are_parsed(session: tf.Session, tmp_path: Path) -> None:
    (tmp_path / "words").write_text("a\nb\n")
    columns = [
        fc.sequence_numeric_column("z"),
        fc.indicator_column(fc.sequence_categorical_column_with_vocabulary_file("w", str(tmp_path / "words"))),
    ]
    example = tf.train.Example()
    example.features.feature["z"].float_list.value.extend([1.0, 2.0])
    example.features.feature["w"].bytes_list.value.extend([b"b", b"a"])
    features = tf.parse_example([example.SerializeToString()], fc.make_parse_example_spec(columns))
    values, lengths = run(session, contrib.sequence_input_layer(features, columns))
    assert values.tolist() == [[[0, 1, 1], [1, 0, 2]]]
    assert lengths.tolist() == [2]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: fc.input_layer(
                {"w": WORDS}, fc.indicator_column(fc.sequence_categorical_column_with_identity("w", 2))
            ),
            "column 'w': is of sequences; tf.contrib.feature_column.sequence_input_layer is required",
        ),
        (
            lambda: contrib.sequence_input_layer({}, fc.indicator_column(fc.categorical_column_with_identity("w", 2))),
            "column 'w' is not of sequences; a sequence_categorical_column is required",
        ),
        (
            lambda: contrib.sequence_input_layer({}, fc.numeric_column("w")),
            "column 'w' is not of sequences of numbers",
        ),
        (
            lambda: fc.input_layer({}, fc.sequence_numeric_column("w")),
            "input_layer: column 'w' is of sequences",
        ),
        (lambda: fc.linear_model({}, fc.sequence_numeric_column("w")), "linear_model: column 'w' is of sequences"),
        (lambda: fc.sequence_numeric_column("w", dtype=tf.string), "dtype is string; a number's is required"),
        (
            lambda: contrib.concatenate_context_input(np.ones((2, 3), np.float32), np.ones((2, 3), np.float32)),
            r"sequence_input is float32 of shape \(2, 3\); float32 of rank 3 is required",
        ),
    ],
)
def test_wrong_arguments(call: Callable[[], Any], message: str) -> None:
    with pytest.raises(tf.errors.OpError, match=message):
        call()
