"""Models that we write, loaded and run by TensorFlow: by its loader for TensorFlow 1, and by that of its servers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import timberframe

X = np.linspace(-1, 1, 12, dtype=np.float32).reshape(4, 3)


@pytest.fixture
def model(tmp_path: Path) -> tuple[str, np.ndarray]:
    """A folder, with partitioned variables, integers and a loop; and what it gives for X."""
    tf = timberframe
    folder = str(tmp_path / "model")
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.float32, [None, 3], name="x")
        with tf.variable_scope("net", partitioner=tf.fixed_size_partitioner(2)):
            w = tf.get_variable("w", [3, 5], initializer=tf.random_normal_initializer(seed=1))
        times = tf.get_variable("times", initializer=tf.constant(3))
        doubled = tf.while_loop(lambda i, _: i < times, lambda i, v: (i + 1, v * 2.0), [0, tf.matmul(x, w)])[1]
        y = tf.layers.dense(doubled, 2, tf.nn.tanh, name="save")
        session.run(tf.global_variables_initializer())
        expected = session.run(y, {x: X})
        tf.saved_model.simple_save(session, folder, {"x": x}, {"y": y})
    return folder, expected


def test_tensorflow_1s_loader_restores_our_variables(tensorflow: Any, model: tuple[str, np.ndarray]) -> None:
    folder, expected = model
    with tensorflow.Graph().as_default(), tensorflow.Session() as session:
        meta = tensorflow.saved_model.loader.load(session, ["serve"], folder)
        signature = meta.signature_def["serving_default"]
        found = session.run(signature.outputs["y"].name, {signature.inputs["x"].name: X})
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


def test_the_nodes_that_saver_def_names_restore_and_save(
    tensorflow: Any, model: tuple[str, np.ndarray], tmp_path: Path
) -> None:
    """As TensorFlow's servers do, which have no Savers."""
    folder, expected = model
    with tensorflow.Graph().as_default(), tensorflow.Session() as session:
        meta = _parsed(folder).meta_graphs[0]
        tensorflow.import_graph_def(meta.graph_def, name="")
        path = meta.saver_def.filename_tensor_name
        session.run(meta.saver_def.restore_op_name, {path: f"{folder}/variables/variables"})
        signature = meta.signature_def["serving_default"]
        found = session.run(signature.outputs["y"].name, {signature.inputs["x"].name: X})
        session.run(meta.saver_def.save_tensor_name, {path: str(tmp_path / "again")})
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)
    first = timberframe.train.load_checkpoint(f"{folder}/variables/variables")
    again = timberframe.train.load_checkpoint(str(tmp_path / "again"))
    for name in first.entries:
        np.testing.assert_array_equal(again.get_tensor(name), first.get_tensor(name))


def test_tensorflow_2s_loader_runs_the_signature(tensorflow: Any, model: tuple[str, np.ndarray]) -> None:
    import tensorflow as tf2

    folder, expected = model
    found = tf2.saved_model.load(folder).signatures["serving_default"](x=tf2.constant(X))["y"]
    np.testing.assert_allclose(found.numpy(), expected, rtol=1e-5, atol=1e-6)


def _parsed(folder: str) -> Any:
    from tensorflow.core.protobuf.saved_model_pb2 import SavedModel

    return SavedModel.FromString(Path(folder, "saved_model.pb").read_bytes())
