"""Feature columns give TensorFlow's input layers and linear models, in variables of the same names and shapes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import timberframe

FEATURES: dict[str, Any] = {
    "price": np.array([[1.0, -2.0], [0.5, 3.0], [7.0, 0.0]], np.float32),
    "age": np.array([[3], [11], [40]], np.int64),
    "kind": np.array([["a"], ["c"], ["z"]], object),
    "tags": np.array([["x", "y"], ["y", ""], ["", ""]], object),
    "number": np.array([[0], [2], [-1]], np.int64),
    "shares": np.array([[0.5, 2.0], [-1.5, 0.0], [0.0, 0.0]], np.float32),
}
Columns = Callable[[Any], list[Any]]


def weighted(fc: Any) -> Any:
    """Words, each of which has a weight."""
    return fc.weighted_categorical_column(fc.categorical_column_with_vocabulary_list("tags", ["x", "y", "a"]), "shares")


DENSE: dict[str, Columns] = {
    "numeric": lambda fc: [fc.numeric_column("price", shape=2), fc.numeric_column("age")],
    "normalized": lambda fc: [fc.numeric_column("price", shape=2, normalizer_fn=lambda x: (x - 18.0) / 10.0)],
    "bucketized": lambda fc: [fc.bucketized_column(fc.numeric_column("age"), [10, 11, 30])],
    "bucketized pair": lambda fc: [fc.bucketized_column(fc.numeric_column("price", shape=2), [0.0, 1.0])],
    "identity": lambda fc: [fc.indicator_column(fc.categorical_column_with_identity("number", 3))],
    "identity with default": lambda fc: [fc.indicator_column(fc.categorical_column_with_identity("number", 2, 1))],
    "vocabulary": lambda fc: [fc.indicator_column(fc.categorical_column_with_vocabulary_list("kind", ["a", "b", "c"]))],
    "vocabulary with buckets": lambda fc: [
        fc.indicator_column(fc.categorical_column_with_vocabulary_list("kind", ["a", "b"], num_oov_buckets=3))
    ],
    "several words": lambda fc: [fc.indicator_column(fc.categorical_column_with_vocabulary_list("tags", ["x", "y"]))],
    "hash": lambda fc: [fc.indicator_column(fc.categorical_column_with_hash_bucket("tags", 7))],
    "embedding": lambda fc: [fc.embedding_column(fc.categorical_column_with_hash_bucket("tags", 7), 3)],
    "embedding, sum": lambda fc: [fc.embedding_column(fc.categorical_column_with_hash_bucket("tags", 7), 2, "sum")],
    "embedding, sqrtn": lambda fc: [fc.embedding_column(fc.categorical_column_with_hash_bucket("tags", 7), 2, "sqrtn")],
    "embedding, weighted": lambda fc: [fc.embedding_column(weighted(fc), 3)],
    "embedding, weighted, sqrtn": lambda fc: [fc.embedding_column(weighted(fc), 3, "sqrtn")],
    "embedding, weighted, sum": lambda fc: [fc.embedding_column(weighted(fc), 3, "sum")],
    "embedding of bounded length": lambda fc: [
        fc.embedding_column(fc.categorical_column_with_hash_bucket("tags", 7), 3, max_norm=0.5)
    ],
    "shared embedding": lambda fc: fc.shared_embedding_columns(
        [
            fc.categorical_column_with_vocabulary_list("tags", ["x", "y", "a"]),
            fc.categorical_column_with_vocabulary_list("kind", ["x", "y", "a"]),
        ],
        2,
    ),
    "shared embedding by name": lambda fc: fc.shared_embedding_columns(
        [weighted(fc), fc.categorical_column_with_vocabulary_list("kind", ["x", "y", "a"])],
        2,
        shared_embedding_collection_name="words",
    ),
    "weighted": lambda fc: [fc.indicator_column(weighted(fc))],
    "cross of features": lambda fc: [fc.indicator_column(fc.crossed_column(["kind", "tags", "age"], 11))],
    "cross of columns": lambda fc: [
        fc.indicator_column(
            fc.crossed_column(
                [
                    fc.categorical_column_with_vocabulary_list("kind", ["a", "c"]),
                    fc.bucketized_column(fc.numeric_column("price", shape=2), [0.0, 1.0]),
                    "tags",
                ],
                13,
                hash_key=5,
            )
        )
    ],
    "cross of a cross": lambda fc: [
        fc.embedding_column(
            fc.crossed_column(
                [fc.crossed_column(["kind", "tags"], 3), fc.categorical_column_with_identity("number", 4)], 9
            ),
            2,
        )
    ],
    "order": lambda fc: [
        fc.numeric_column("price", shape=2),
        fc.indicator_column(fc.categorical_column_with_vocabulary_list("kind", ["a", "b", "c"])),
        fc.numeric_column("age"),
    ],
}

LINEAR: dict[str, Columns] = {
    "weighted": lambda fc: [weighted(fc), fc.numeric_column("age")],
    "cross": lambda fc: [fc.crossed_column(["kind", "tags"], 7), fc.numeric_column("age")],
    "embedding": lambda fc: [fc.embedding_column(fc.categorical_column_with_hash_bucket("tags", 7), 2)],
    "numeric": DENSE["numeric"],
    "bucketized": DENSE["bucketized"],
    "vocabulary": lambda fc: [fc.categorical_column_with_vocabulary_list("kind", ["a", "b", "c"])],
    "several words": lambda fc: [fc.categorical_column_with_hash_bucket("tags", 7), fc.numeric_column("age")],
}


def built(tf: Any, build: Callable[[Any, dict[str, Any]], Any]) -> tuple[np.ndarray, dict[str, Any]]:
    """Returns what a graph gives of FEATURES with fixed weights; and the shapes of its variables by name."""
    with tf.Graph().as_default():
        fed = {
            name: tf.placeholder(tf.string if array.dtype == object else array.dtype, [None, *array.shape[1:]])
            for name, array in FEATURES.items()
        }
        result = build(tf, fed)
        variables = tf.global_variables()
        with tf.Session() as session:
            session.run([tf.global_variables_initializer(), tf.tables_initializer()])
            for variable in variables:
                sizes = [int(n) for n in variable.shape.as_list()]
                variable.load(np.arange(np.prod(sizes), dtype=np.float32).reshape(sizes) / 7 - 1, session)
            found = session.run(result, {tensor: FEATURES[name] for name, tensor in fed.items()})
        return found, {v.op.name: v.shape.as_list() for v in variables}


def agrees(tensorflow: Any, build: Callable[[Any, dict[str, Any]], Any]) -> bool:
    """Returns whether both give the same numbers, in variables of the same names and shapes; says where they do not."""
    theirs, their_variables = built(tensorflow, build)
    ours, our_variables = built(timberframe, build)
    np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-6)
    return our_variables == their_variables


@pytest.mark.parametrize("name", DENSE)
def test_input_layers_agree(tensorflow: Any, name: str) -> None:
    assert agrees(tensorflow, lambda tf, fed: tf.feature_column.input_layer(fed, DENSE[name](tf.feature_column)))


@pytest.mark.parametrize("name", LINEAR)
@pytest.mark.parametrize("combiner", ["sum", "mean", "sqrtn"])
def test_linear_models_agree(tensorflow: Any, name: str, combiner: str) -> None:
    assert agrees(
        tensorflow,
        lambda tf, fed: tf.feature_column.linear_model(
            fed, LINEAR[name](tf.feature_column), units=2, sparse_combiner=combiner
        ),
    )


@pytest.mark.parametrize("function", ["input_layer", "linear_model"])
def test_variables_of_columns_agree(tensorflow: Any, function: str) -> None:
    def found(tf: Any) -> Any:
        with tf.Graph().as_default():
            variables: dict[Any, Any] = {}
            fc = tf.feature_column
            column = fc.embedding_column(fc.categorical_column_with_hash_bucket("tags", 7), 3)
            getattr(fc, function)(
                {"tags": tf.placeholder(tf.string, [None, 2])},
                [column],
                weight_collections=["mine"],
                cols_to_vars=variables,
            )
            names = {getattr(c, "name", c): sorted(v.op.name for v in made) for c, made in variables.items()}
            return names, {v.op.name for v in tf.get_collection("mine") if "bias" not in v.op.name}

    assert found(timberframe) == found(tensorflow)


def test_vocabularies_of_files_agree(tensorflow: Any, tmp_path: Path) -> None:
    (tmp_path / "words").write_text("c\na\nb\n")

    def build(tf: Any, fed: dict[str, Any]) -> Any:
        fc = tf.feature_column
        column = fc.categorical_column_with_vocabulary_file("kind", str(tmp_path / "words"), 2)
        return fc.input_layer(fed, [fc.indicator_column(column)])

    assert agrees(tensorflow, build)


def test_hashes_of_numbers_agree(tensorflow: Any) -> None:
    def build(tf: Any, fed: dict[str, Any]) -> Any:
        fc = tf.feature_column
        column = fc.categorical_column_with_hash_bucket("age", 7, tf.int64)
        return fc.input_layer(fed, [fc.indicator_column(column)])

    assert agrees(tensorflow, build)


def test_specs_for_parsing_agree(tensorflow: Any) -> None:
    def spec(tf: Any) -> dict[str, Any]:
        fc = tf.feature_column
        columns = [
            fc.numeric_column("price", shape=2, default_value=1.0),
            fc.categorical_column_with_vocabulary_list("kind", ["a"]),
            fc.categorical_column_with_hash_bucket("age", 7, tf.int64),
        ]
        found = fc.make_parse_example_spec(columns)
        return {k: (type(v).__name__, v.dtype.name, list(getattr(v, "shape", ()))) for k, v in found.items()}

    assert spec(timberframe) == spec(tensorflow)
