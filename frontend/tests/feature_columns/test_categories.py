"""Crosses, weights and shared vectors of categories. That the numbers are TensorFlow's say the tests beside it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import timberframe as tf

from ..conftest import run

fc = tf.feature_column
TAGS = np.array([["x", "y"], ["y", ""]], object)


def test_a_cross_has_a_category_for_each_combination(session: tf.Session) -> None:
    column = fc.indicator_column(fc.crossed_column(["tags", fc.categorical_column_with_identity("n", 3)], 1000))
    got = run(session, fc.input_layer({"tags": TAGS, "n": np.array([[0, 2], [1, -1]])}, [column]))
    assert got.sum(1).tolist() == [4, 2]


def test_a_linear_model_learns_what_only_a_cross_tells(session: tf.Session) -> None:
    bits = np.array([[0, 0], [0, 1], [1, 0], [1, 1]])
    features = {"a": bits[:, :1], "b": bits[:, 1:]}
    logits = fc.linear_model(features, [fc.crossed_column(["a", "b"], 50)])
    labels = (bits[:, :1] != bits[:, 1:]).astype(np.float32)
    loss = tf.losses.sigmoid_cross_entropy(labels, logits)
    train = tf.train.GradientDescentOptimizer(5.0).minimize(loss)
    session.run([tf.global_variables_initializer(), tf.tables_initializer()])
    for _ in range(100):
        session.run(train)
    assert session.run(loss) < 0.02


def test_sparse_weights_count_categories(session: tf.Session) -> None:
    column = fc.weighted_categorical_column(fc.categorical_column_with_vocabulary_list("tags", ["x", "y"]), "w")
    places = [[0, 0], [0, 1], [1, 0]]
    features = {
        "tags": tf.SparseTensor(places, ["x", "y", "y"], [2, 2]),
        "w": tf.SparseTensor(places, [0.5, 2.0, 3.0], [2, 2]),
    }
    got = run(session, fc.input_layer(features, [fc.indicator_column(column)]))
    assert got.tolist() == [[0.5, 2.0], [0.0, 3.0]]
    assert set(column.parse_example_spec) == {"tags", "w"}


def test_shared_vectors_are_one_variable_in_all_layers_of_a_graph(session: tf.Session) -> None:
    columns = fc.shared_embedding_columns([fc.categorical_column_with_identity(key, 5) for key in "ab"], 3)
    numbers = np.array([[1], [4]])
    layers = [fc.input_layer({"a": numbers, "b": numbers}, columns) for _ in range(2)]
    one, two = run(session, layers)
    assert [v.op.name for v in tf.global_variables()] == ["input_layer/a_b_shared_embedding/embedding_weights"]
    assert one.tolist() == two.tolist()
    assert [c.name for c in columns] == ["a_shared_embedding", "b_shared_embedding"]


def test_vectors_begin_with_those_of_a_checkpoint(session: tf.Session, tmp_path: Path) -> None:
    with tf.Graph().as_default() as graph, tf.Session(graph=graph) as other:
        kept = tf.get_variable("table", initializer=np.arange(6, dtype=np.float32).reshape(3, 2))
        other.run(kept.initializer)
        path = tf.train.Saver([kept]).save(other, str(tmp_path / "model"))
    column = fc.embedding_column(
        fc.categorical_column_with_identity("n", 3), 2, ckpt_to_load_from=path, tensor_name_in_ckpt="table"
    )
    got = run(session, fc.input_layer({"n": np.array([[2]])}, [column]))
    assert got.tolist() == [[4.0, 5.0]]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: fc.crossed_column(["a"], 5), "1 keys for 5 buckets; two keys at least"),
        (lambda: fc.crossed_column(["a", "b"], 0), "2 keys for 0 buckets"),
        (lambda: fc.crossed_column(["a", fc.numeric_column("b")], 5), "a bucketized_column for a numeric one"),
        (
            lambda: fc.crossed_column(["a", fc.categorical_column_with_hash_bucket("b", 5)], 5),
            "the feature's name for a column by a hash",
        ),
        (
            lambda: fc.linear_model({"a": np.ones((2, 1)), "b": TAGS}, fc.crossed_column(["a", "b"], 5)),
            "feature 'a' has dtype float64; strings or integers are required",
        ),
        (lambda: fc.weighted_categorical_column(fc.numeric_column("a"), "w"), "a categorical column is required"),
        (
            lambda: fc.linear_model(
                {"a": np.array([[1]]), "w": np.array([[1]])},
                fc.weighted_categorical_column(fc.categorical_column_with_identity("a", 2), "w"),
            ),
            "feature 'w' has dtype int64; float32 is required",
        ),
        (
            lambda: fc.shared_embedding_columns(
                [fc.categorical_column_with_identity("a", 2), fc.categorical_column_with_identity("b", 3)], 4
            ),
            "one kind and one number are required",
        ),
        (
            lambda: fc.embedding_column(fc.categorical_column_with_identity("a", 2), 4, ckpt_to_load_from="x"),
            "ckpt_to_load_from is 'x' and tensor_name_in_ckpt None; give both or none",
        ),
    ],
)
def test_wrong_arguments(call: Callable[[], Any], message: str) -> None:
    with pytest.raises(tf.errors.OpError, match=message):
        call()
