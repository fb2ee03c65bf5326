"""tf.contrib.predictor: arrays in, arrays out, of saved models and estimators."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import timberframe as tf

predictor = tf.contrib.predictor


@pytest.fixture
def saved(tmp_path: Path) -> str:
    """A model of 3 x + 1 with one input and two outputs."""
    folder = str(tmp_path / "model")
    with tf.Graph().as_default(), tf.Session() as sess:
        x = tf.placeholder(tf.float32, [None], "x")
        w = tf.get_variable("w", [], initializer=tf.constant_initializer(3.0))
        y = tf.identity(w * x + 1, "y")
        sess.run(tf.global_variables_initializer())
        tf.saved_model.simple_save(sess, folder, {"x": x}, {"y": y, "twice": 2 * y})
    return folder


def test_a_saved_model_by_its_signature(saved: str) -> None:
    model = predictor.from_saved_model(saved)
    found = model({"x": [0.0, 2.0]})
    np.testing.assert_array_equal(found["y"], [1, 7])
    np.testing.assert_array_equal(found["twice"], [2, 14])
    assert set(model.feed_tensors) == {"x"}
    assert set(model.fetch_tensors) == {"y", "twice"}
    assert model.graph is not tf.get_default_graph()


def test_a_saved_model_by_names_of_tensors(saved: str) -> None:
    model = predictor.from_saved_model(saved, input_names={"in": "x:0"}, output_names={"out": "y:0"}, tags="serve")
    assert model({"in": [1.0]})["out"] == [4]


def test_wrong_signatures_and_inputs(saved: str) -> None:
    with pytest.raises(ValueError, match=r"no signature 'other'; it has serving_default"):
        predictor.from_saved_model(saved, signature_def_key="other")
    with pytest.raises(
        ValueError,
        match="signature_def_key, input_names, output_names given; signature_def_key, signature_def, or input_names",
    ):
        predictor.from_saved_model(saved, "serving_default", input_names={"x": "x:0"}, output_names={"y": "y:0"})
    with pytest.raises(ValueError, match="there is no input z; its inputs are x"):
        predictor.from_saved_model(saved)({"z": [1.0]})


def test_an_estimator(tmp_path: Path) -> None:
    def model_fn(features: Any, labels: Any, mode: str) -> Any:
        w = tf.get_variable("w", [], initializer=tf.constant_initializer(2.0))
        y = w * features["x"]
        outputs = {"serving_default": tf.estimator.export.PredictOutput({"y": y})}
        train = tf.train.get_global_step().assign_add(1)
        return tf.estimator.EstimatorSpec(
            mode, {"y": y, "half": y / 2}, tf.reduce_sum(y), train, export_outputs=outputs
        )

    estimator = tf.estimator.Estimator(model_fn, str(tmp_path))
    estimator.train(tf.estimator.inputs.numpy_input_fn({"x": np.ones(4, np.float32)}, shuffle=False), steps=1)
    x = {"x": tf.placeholder(tf.float32, [None])}
    receive = tf.estimator.export.build_raw_serving_input_receiver_fn(x)
    found = predictor.from_estimator(estimator, receive)({"x": [1.0, 2.0]})
    np.testing.assert_array_equal(found["half"], [1, 2])
    assert set(predictor.from_estimator(estimator, receive, "serving_default")({"x": [1.0]})) == {"y"}
    with pytest.raises(ValueError, match="export_outputs has no 'other'; it has serving_default"):
        predictor.from_estimator(estimator, receive, "other")
