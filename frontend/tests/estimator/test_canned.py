"""Linear models and networks of feature columns."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import timberframe as tf

from .conftest import BINARY, FEATURES, KINDS, NUMBERS, X, config, kind, rows, trained, x

embedded = tf.feature_column.embedding_column(kind, 3, initializer=tf.constant_initializer(0.2))

THREE = np.digitize(NUMBERS, [-1, 1])

COLUMNS = [x, kind]
DENSE = [x, tf.feature_column.embedding_column(kind, 2)]


def test_a_linear_classifier_learns(tmp_path: Path) -> None:
    made = tf.estimator.LinearClassifier(COLUMNS, str(tmp_path), config=config())
    assert trained(made, BINARY)["accuracy"] > 0.9
    assert made.get_variable_value("linear/linear_model/kind/weights").shape == (2, 1)


def test_a_linear_regressor_learns(tmp_path: Path) -> None:
    made = tf.estimator.LinearRegressor(COLUMNS, str(tmp_path), config=config(), optimizer=tf.train.AdamOptimizer(0.1))
    assert trained(made, NUMBERS)["average_loss"] < 0.01


def test_a_network_classifies_names(tmp_path: Path) -> None:
    names = np.array(["low", "middle", "high"], object)
    made = tf.estimator.DNNClassifier(
        [8], DENSE, str(tmp_path), 3, label_vocabulary=list(names), optimizer="Adam", config=config()
    )
    assert trained(made, names[THREE], 300)["accuracy"] > 0.8
    found = next(made.predict(rows(None)))
    assert found["classes"][0] in [b"low", b"middle", b"high"]
    assert found.keys() == {"logits", "probabilities", "class_ids", "classes"}


def test_variables_of_networks_have_the_names_of_tensorflow(tmp_path: Path) -> None:
    made = tf.estimator.DNNRegressor([4, 3], DENSE, str(tmp_path), config=config())
    made.train(rows(NUMBERS), steps=1)
    names = [name for name in made.get_variable_names() if "Adagrad" not in name]
    layers = [
        f"dnn/{layer}/{part}" for layer in ("hiddenlayer_0", "hiddenlayer_1", "logits") for part in ("bias", "kernel")
    ]
    embedding = "dnn/input_from_feature_columns/input_layer/kind_embedding/embedding_weights"
    assert sorted(names) == sorted([*layers, embedding, "global_step"])


def test_metrics_of_two_classes(tmp_path: Path) -> None:
    found = tf.estimator.LinearClassifier(COLUMNS, str(tmp_path)).evaluate(rows(BINARY))
    assert found.keys() == {
        "accuracy", "accuracy_baseline", "auc", "auc_precision_recall", "average_loss", "global_step", "label/mean",
        "loss", "precision", "prediction/mean", "recall",
    }  # fmt: skip
    np.testing.assert_allclose(
        [found["average_loss"], found["loss"], found["label/mean"]],
        [np.log(2), 16 * np.log(2), BINARY.mean()],
        rtol=1e-5,
    )


def test_examples_have_weights(tmp_path: Path) -> None:
    made = tf.estimator.LinearRegressor(COLUMNS, str(tmp_path), weight_column="weight")
    found = made.evaluate(rows(NUMBERS))
    np.testing.assert_allclose(found["average_loss"], np.average(NUMBERS**2, weights=FEATURES["weight"]), rtol=1e-4)


def test_dropout_and_normalization_are_those_of_training_alone(tmp_path: Path) -> None:
    made = tf.estimator.DNNRegressor([8], [x], str(tmp_path), dropout=0.5, batch_norm=True, config=config())
    made.train(rows(NUMBERS, shuffle=True), steps=20)
    first, second = ([p["predictions"] for p in made.predict(rows(None))] for _ in range(2))
    np.testing.assert_array_equal(first, second)


def test_an_exported_classifier_takes_examples(tmp_path: Path) -> None:
    made = tf.estimator.LinearClassifier(COLUMNS, str(tmp_path / "model"), config=config())
    trained(made, BINARY, 20)
    spec = tf.feature_column.make_parse_example_spec(COLUMNS)
    receive = tf.estimator.export.build_parsing_serving_input_receiver_fn(spec)
    folder = made.export_saved_model(str(tmp_path / "exported"), receive)
    example = tf.train.Example()
    example.features.feature["x"].float_list.value.extend(X[0])
    example.features.feature["kind"].bytes_list.value.append(KINDS[0].encode())
    with tf.Session(graph=tf.Graph()) as session:
        signatures = tf.saved_model.load(session, ["serve"], os.fsdecode(folder)).signature_def
        signature = signatures["serving_default"]
        feeds = {signature.inputs["inputs"].name: [example.SerializeToString()]}
        scores, classes = session.run([signature.outputs[n].name for n in ("scores", "classes")], feeds)
    assert signatures.keys() == {"serving_default", "classification", "predict", "regression"}
    assert classes.tolist() == [[b"0", b"1"]]
    np.testing.assert_allclose(scores[0], next(made.predict(rows(None)))["probabilities"], rtol=1e-5)


def test_labels_of_another_kind_than_the_vocabulary_are_an_error(tmp_path: Path) -> None:
    made = tf.estimator.LinearClassifier(COLUMNS, str(tmp_path), label_vocabulary=["a", "b"])
    with pytest.raises(ValueError, match="labels have dtype int64; strings are required with label_vocabulary"):
        made.evaluate(rows(BINARY))


def test_labels_of_several_classes_that_are_no_integers_are_an_error(tmp_path: Path) -> None:
    made = tf.estimator.LinearClassifier(COLUMNS, str(tmp_path), n_classes=3)
    with pytest.raises(tf.errors.InvalidArgumentError, match="labels have dtype float32; integers are required for 3"):
        made.train(rows(THREE.astype(np.float32)))


def test_labels_of_two_classes_may_be_probabilities(tmp_path: Path) -> None:
    made = tf.estimator.LinearClassifier(COLUMNS, str(tmp_path))
    labels = np.linspace(0, 1, 64).astype(np.float32)
    made.train(rows(labels, shuffle=True), steps=50)
    found = made.evaluate(rows(labels))
    assert found["label/mean"] == pytest.approx(0.5)
    assert found["average_loss"] < np.log(2)  # that of a model which has learned nothing


@pytest.mark.parametrize("vocabulary", [None, ["a", "b", "c"]])
def test_labels_with_a_column_for_each_class_are_an_error(tmp_path: Path, vocabulary: list[str] | None) -> None:
    made = tf.estimator.LinearClassifier(COLUMNS, str(tmp_path), n_classes=3, label_vocabulary=vocabulary)
    labels = np.eye(3, dtype=np.int64)[THREE]
    with pytest.raises(
        tf.errors.InvalidArgumentError, match=r"labels have shape \(.*, 3\);.*\[batch\] or \[batch, 1\]"
    ):
        made.train(rows(labels if vocabulary is None else labels.astype(str).astype(object)))


def test_a_categorical_column_in_a_network_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="column 'kind' is categorical; an indicator_column or embedding_column"):
        tf.estimator.DNNClassifier([2], COLUMNS, str(tmp_path)).train(rows(BINARY))


def test_a_feature_that_is_missing_is_an_error(tmp_path: Path) -> None:
    made = tf.estimator.LinearRegressor([tf.feature_column.numeric_column("y")], str(tmp_path))
    with pytest.raises(tf.errors.NotFoundError, match="feature 'y': is not among the features x, kind, weight"):
        made.train(rows(NUMBERS))


@pytest.mark.parametrize("wrong", [5, -2])
def test_a_number_that_is_no_category_is_an_error(wrong: int) -> None:
    column = tf.feature_column.categorical_column_with_identity("n", 2)
    message = f"categorical_column_with_identity 'n': numbers from 0 to 1 are required.*{wrong}"
    with tf.Graph().as_default(), tf.Session() as session:
        number = tf.placeholder(tf.int64, [None, 1])
        layer = tf.feature_column.input_layer({"n": number}, [tf.feature_column.indicator_column(column)])
        with pytest.raises(tf.errors.InvalidArgumentError, match=message):
            session.run(layer, {number: [[wrong]]})


@pytest.mark.parametrize(
    ("classes", "labels", "vocabulary", "message"),
    [
        (2, [0, 1, 5], None, "labels must be numbers of classes, from 0 to 1; they are"),
        (3, [0, -1, 2], None, "labels must be numbers of classes, from 0 to 2; they are"),
        (2, ["a", "z", "b"], ["a", "b"], r"labels must be in label_vocabulary, \['a', 'b'\]; they are"),
    ],
)
def test_labels_of_no_class_are_named(
    tmp_path: Path, classes: int, labels: list[Any], vocabulary: list[str] | None, message: str
) -> None:
    made = tf.estimator.DNNClassifier([2], [x], str(tmp_path), classes, label_vocabulary=vocabulary)
    given = np.array(labels, object if vocabulary else np.int64)
    rows_ = tf.estimator.inputs.numpy_input_fn({"x": X[:3]}, given, batch_size=3, shuffle=False)
    with pytest.raises(tf.errors.InvalidArgumentError, match=message):
        made.train(rows_)


@pytest.mark.parametrize(
    "make",
    [
        lambda partitioner: tf.estimator.LinearClassifier([x, kind], partitioner=partitioner, config=config()),
        lambda partitioner: tf.estimator.DNNClassifier(
            [4], [x, embedded], input_layer_partitioner=partitioner, config=config()
        ),
        lambda partitioner: tf.estimator.DNNLinearCombinedClassifier(
            linear_feature_columns=[kind], dnn_feature_columns=[x, embedded], dnn_hidden_units=[4],
            input_layer_partitioner=partitioner, config=config(),
        ),
    ],
    ids=["linear", "dnn", "combined"],
)  # fmt: skip
def test_a_partitioner_divides_variables_and_changes_no_value(make: Callable[[Any], Any]) -> None:
    class Names(tf.train.SessionRunHook):
        def begin(self) -> None:
            names.extend(v.op.name for v in tf.global_variables())

    names: list[str] = []
    whole, divided = make(None), make(tf.fixed_size_partitioner(2))
    whole.train(rows(BINARY))
    divided.train(rows(BINARY), hooks=[Names()])
    assert any(name.endswith("/part_1") for name in names)
    for name in whole.get_variable_names():
        np.testing.assert_array_equal(divided.get_variable_value(name), whole.get_variable_value(name), name)
