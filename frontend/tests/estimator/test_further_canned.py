"""Linear models with networks, baselines, and what heads make of logits."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import timberframe as tf

from .conftest import BINARY, FEATURES, KINDS, NUMBERS, RNG, X, config, kind, rows, trained, x

WIDE, DEEP = [x, kind], [x, tf.feature_column.embedding_column(kind, 2)]
ESTIMATORS = tf.estimator


def test_a_linear_model_with_a_network_classifies(tmp_path: Path) -> None:
    made = ESTIMATORS.DNNLinearCombinedClassifier(
        str(tmp_path), linear_feature_columns=WIDE, dnn_feature_columns=DEEP, dnn_hidden_units=[8], config=config()
    )
    assert trained(made, BINARY)["accuracy"] > 0.9
    names = [name for name in made.get_variable_names() if "/t_0" not in name]
    assert {"linear/linear_model/bias_weights/Ftrl", "dnn/hiddenlayer_0/kernel/Adagrad"} < set(names)
    assert "linear/linear_model/kind/weights/Adagrad" not in names
    assert made.get_variable_value("global_step") == 150


def test_a_linear_model_with_a_network_gives_numbers(tmp_path: Path) -> None:
    made = ESTIMATORS.DNNLinearCombinedRegressor(
        str(tmp_path), WIDE, tf.train.AdamOptimizer(0.1), DEEP, "Adam", [4], config=config()
    )
    assert trained(made, NUMBERS)["average_loss"] < 0.05


def test_a_step_adds_both_logits(tmp_path: Path) -> None:
    made = ESTIMATORS.DNNLinearCombinedRegressor(
        str(tmp_path), linear_feature_columns=[x], dnn_feature_columns=[x], dnn_hidden_units=[3], config=config()
    )
    made.train(rows(NUMBERS), steps=2)
    value = made.get_variable_value
    hidden = np.maximum(X @ value("dnn/hiddenlayer_0/kernel") + value("dnn/hiddenlayer_0/bias"), 0)
    deep = hidden @ value("dnn/logits/kernel") + value("dnn/logits/bias")
    wide = X @ value("linear/linear_model/x/weights") + value("linear/linear_model/bias_weights")
    got = np.stack([row["predictions"] for row in made.predict(rows(None))])
    np.testing.assert_allclose(got, deep + wide, rtol=1e-4, atol=1e-5)


def test_one_part_may_be_alone(tmp_path: Path) -> None:
    made = ESTIMATORS.DNNLinearCombinedClassifier(str(tmp_path), dnn_feature_columns=DEEP, dnn_hidden_units=[4])
    made.train(rows(BINARY), steps=1)
    assert not any(name.startswith("linear") for name in made.get_variable_names())


def test_a_baseline_gives_the_mean(tmp_path: Path) -> None:
    made = ESTIMATORS.BaselineRegressor(str(tmp_path), optimizer=tf.train.AdamOptimizer(0.1))
    made.train(rows(NUMBERS, shuffle=True), steps=300)
    assert next(made.predict(rows(None)))["predictions"][0] == pytest.approx(NUMBERS.mean(), abs=0.1)
    assert "baseline/bias" in made.get_variable_names()


def test_a_baseline_gives_the_frequencies_of_classes(tmp_path: Path) -> None:
    labels = np.array([0, 1, 1, 2] * 16)
    made = ESTIMATORS.BaselineClassifier(str(tmp_path), 3, optimizer=tf.train.AdamOptimizer(0.1))
    made.train(rows(labels, shuffle=True), steps=300)
    found = next(made.predict(rows(None)))["probabilities"]
    np.testing.assert_allclose(found, [0.25, 0.5, 0.25], atol=0.05)


def test_counts_have_the_loss_of_poisson(tmp_path: Path) -> None:
    counts = RNG.poisson(np.exp(0.5 * X[:, 0])).astype(np.float32)
    made = ESTIMATORS.LinearEstimator(
        ESTIMATORS.PoissonRegressionHead(), [x], str(tmp_path), tf.train.AdamOptimizer(0.1), config()
    )
    found = trained(made, counts, 300)
    log_means = X @ made.get_variable_value("linear/linear_model/x/weights")
    log_means = log_means[:, 0] + made.get_variable_value("linear/linear_model/bias_weights")[0]
    stirling = counts * np.log(np.maximum(counts, 1)) - counts + 0.5 * np.log(2 * np.pi * np.maximum(counts, 1))
    losses = np.exp(log_means) - counts * log_means + np.where(counts > 1, stirling, 0)
    assert found["average_loss"] == pytest.approx(losses.mean(), rel=1e-3)
    assert next(made.predict(rows(None)))["predictions"][0] == pytest.approx(np.exp(log_means[0]), rel=1e-4)
    np.testing.assert_allclose(made.get_variable_value("linear/linear_model/x/weights")[:, 0], [0.5, 0], atol=0.25)


def test_probabilities_are_learned_from_parts(tmp_path: Path) -> None:
    parts = 1 / (1 + np.exp(-NUMBERS))
    head = ESTIMATORS.LogisticRegressionHead()
    made = ESTIMATORS.LinearEstimator(head, WIDE, str(tmp_path), tf.train.AdamOptimizer(0.1), config())
    trained(made, parts, 300)
    got = np.array([row["predictions"][0] for row in made.predict(rows(None))])
    np.testing.assert_allclose(got, parts, atol=0.05)


def test_an_example_may_have_several_classes(tmp_path: Path) -> None:
    labels = np.stack([BINARY, 1 - BINARY, X[:, 0] > 0], 1).astype(np.int64)
    head = ESTIMATORS.MultiLabelHead(3, thresholds=[0.5])
    made = ESTIMATORS.DNNEstimator(head, [16], DEEP, str(tmp_path), "Adam", config=config())
    found = trained(made, labels, 400)
    assert found["accuracy/positive_threshold_0.5"] > 0.85
    assert found.keys() >= {"auc", "auc_precision_recall", "precision/positive_threshold_0.5", "average_loss"}


def test_several_names_of_classes_come_as_a_sparse_tensor(tmp_path: Path) -> None:
    def few() -> Any:
        labels = tf.SparseTensor([[0, 0], [0, 1], [2, 0]], ["b", "c", "a"], [3, 2])
        return {"x": tf.constant(X[:3])}, labels

    head = ESTIMATORS.MultiLabelHead(3, label_vocabulary=["a", "b", "c"])
    made = ESTIMATORS.BaselineEstimator(head, str(tmp_path), tf.train.GradientDescentOptimizer(1.0))
    made.train(few, steps=1)
    frequencies = np.array([1, 1, 1]) / 3  # of a, b and c among three examples
    np.testing.assert_allclose(made.get_variable_value("baseline/bias"), (frequencies - 0.5) / 3, rtol=1e-5)


def test_thresholds_and_names_of_heads_show_in_metrics(tmp_path: Path) -> None:
    head = ESTIMATORS.BinaryClassHead(thresholds=[0.25], name="mine")
    found = ESTIMATORS.LinearEstimator(head, WIDE, str(tmp_path)).evaluate(rows(BINARY))
    assert found["accuracy/positive_threshold_0.25/mine"] == pytest.approx(BINARY.mean())
    assert found["recall/positive_threshold_0.25/mine"] == 1


def test_a_head_takes_a_loss_of_the_users_own(tmp_path: Path) -> None:
    def loss(labels: Any, logits: Any, features: Any) -> Any:
        return tf.abs(labels - logits) * features["weight"][:, None]

    head = ESTIMATORS.RegressionHead(loss_fn=loss)
    found = ESTIMATORS.LinearEstimator(head, WIDE, str(tmp_path)).evaluate(rows(NUMBERS))
    assert found["average_loss"] == pytest.approx((np.abs(NUMBERS) * FEATURES["weight"]).mean(), rel=1e-4)


def test_weights_may_be_a_column(tmp_path: Path) -> None:
    column = tf.feature_column.numeric_column("weight", normalizer_fn=lambda w: 2.0 * w)
    found = ESTIMATORS.LinearRegressor(WIDE, str(tmp_path), weight_column=column).evaluate(rows(NUMBERS))
    assert found["average_loss"] == pytest.approx(np.average(NUMBERS**2, weights=FEATURES["weight"]), rel=1e-4)


def test_several_heads_learn_at_once(tmp_path: Path) -> None:
    heads = [ESTIMATORS.BinaryClassHead(name="sign"), ESTIMATORS.RegressionHead(name="size")]
    head = ESTIMATORS.MultiHead(heads, [1.0, 0.5])

    def given() -> Any:
        features = {"x": tf.constant(X), "kind": tf.constant(KINDS)}
        return features, {"sign": tf.constant(BINARY), "size": tf.constant(NUMBERS)}

    made = ESTIMATORS.LinearEstimator(head, WIDE, str(tmp_path), tf.train.AdamOptimizer(0.1), config())
    made.train(given, steps=200)
    found = made.evaluate(given, steps=1)
    assert found["accuracy/sign"] > 0.9
    assert found["average_loss/size"] < 0.05
    assert found["loss"] == pytest.approx(found["loss/sign"] + 0.5 * found["loss/size"], rel=1e-5)
    row = next(made.predict(rows(None)))
    assert row["size", "predictions"][0] == pytest.approx(NUMBERS[0], abs=0.5)
    assert ("sign", "probabilities") in row


def test_a_model_of_the_users_own_takes_a_head(tmp_path: Path) -> None:
    def model_fn(features: Any, labels: Any, mode: str) -> Any:
        with tf.variable_scope("mine"):
            logits = tf.layers.dense(features["x"], 1, kernel_regularizer=tf.nn.l2_loss)
        return ESTIMATORS.RegressionHead().create_estimator_spec(
            features, mode, logits, labels, tf.train.AdamOptimizer(0.1),
            regularization_losses=tf.losses.get_regularization_losses(),
        )  # fmt: skip

    made = ESTIMATORS.Estimator(model_fn, str(tmp_path), config())
    found = trained(made, NUMBERS, 5)
    kernel = made.get_variable_value("mine/dense/kernel")
    assert found["loss"] == pytest.approx(found["average_loss"] + 0.5 * (kernel**2).sum(), rel=1e-3)
    assert made.get_variable_value("global_step") == 5


def test_metrics_are_added(tmp_path: Path) -> None:
    def largest(predictions: Any, labels: Any) -> Any:
        return {"largest": tf.metrics.mean(tf.reduce_max(labels))}

    made = ESTIMATORS.add_metrics(ESTIMATORS.BaselineRegressor(str(tmp_path)), largest)
    found = made.evaluate(tf.estimator.inputs.numpy_input_fn(FEATURES, NUMBERS, 64, shuffle=False))
    assert found["largest"] == pytest.approx(NUMBERS.max())
    assert "average_loss" in found


def test_heads_of_contrib_are_those_of_tf_estimator() -> None:
    contrib = tf.contrib.estimator
    assert contrib.multi_class_head is ESTIMATORS.MultiClassHead
    head = contrib.regression_head("weight", label_dimension=3)
    assert isinstance(head, ESTIMATORS.RegressionHead)
    assert head.logits_dimension == 3
    assert contrib.poisson_regression_head(None, 2).logits_dimension == 2


def test_specs_of_examples_have_labels_and_weights() -> None:
    spec = ESTIMATORS.classifier_parse_example_spec(WIDE, "label", tf.string, weight_column="weight")
    assert set(spec) == {"x", "kind", "label", "weight"}
    assert (spec["label"].dtype, list(spec["label"].shape)) == (tf.string, [1])
    assert list(ESTIMATORS.regressor_parse_example_spec(WIDE, "y", label_dimension=3)["y"].shape) == [3]


def test_columns_in_place_of_the_folder_are_an_error() -> None:
    with pytest.raises(TypeError, match=r"DNNLinearCombinedClassifier: model_dir is .*; a path is required"):
        ESTIMATORS.DNNLinearCombinedClassifier([x], dnn_feature_columns=[x], dnn_hidden_units=[3])


def test_experimental_names() -> None:
    assert issubclass(ESTIMATORS.experimental.KMeans, tf.contrib.factorization.KMeansClustering)
    assert callable(ESTIMATORS.experimental.stop_if_no_decrease_hook)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: ESTIMATORS.DNNLinearCombinedClassifier(), "columns of one kind at least"),
        (lambda: ESTIMATORS.DNNLinearCombinedClassifier(dnn_feature_columns=DEEP), "and dnn_hidden_units with"),
        (lambda: ESTIMATORS.MultiLabelHead(1), "n_classes is 1; 2 or more are required"),
        (lambda: ESTIMATORS.MultiHead([ESTIMATORS.RegressionHead()]), r"names \[None\]; different ones are required"),
        (
            lambda: ESTIMATORS.RegressionHead().create_estimator_spec({}, "train", tf.zeros([2, 1]), tf.zeros([2])),
            "optimizer is None and train_op_fn None; give one of them",
        ),
        (lambda: ESTIMATORS.BinaryClassHead(thresholds=[1.5]), r"thresholds are \[1.5\]; numbers between 0 and 1"),
        (lambda: ESTIMATORS.regressor_parse_example_spec(WIDE, "x"), r"\['x'\] are features of columns, too"),
        (
            lambda: ESTIMATORS.add_metrics(ESTIMATORS.BaselineRegressor(), lambda logits: {}),
            r"metric_fn has the arguments \['logits'\]",
        ),
    ],
)
def test_wrong_arguments(call: Callable[[], Any], message: str) -> None:
    with pytest.raises(tf.errors.OpError, match=message):
        call()
