"""tf.saved_model: models as folders."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import timberframe as tf
from timberframe.saved_model.loader import read_saved_model

X = np.arange(6, dtype=np.float32).reshape(2, 3)


def model(session: tf.Session) -> tuple[tf.Tensor, tf.Tensor, tf.Variable]:
    x = tf.placeholder(tf.float32, [None, 3], name="x")
    w = tf.get_variable("w", [3, 1], initializer=tf.ones_initializer())
    session.run(tf.global_variables_initializer())
    session.run(w.assign_add([[1.0], [2.0], [3.0]]))
    return x, tf.matmul(x, w, name="y"), w


def loaded(folder: Path, tags: Any = ("serve",), scope: str | None = None) -> tuple[Any, np.ndarray]:
    """Returns the MetaGraphDef of a folder, and what its first signature gives for X."""
    with tf.Graph().as_default() as graph, tf.Session(graph=graph) as session:
        meta = tf.saved_model.load(session, tags, str(folder), import_scope=scope)
        signature = meta.signature_def["serving_default"]
        x, y = (
            tf.saved_model.get_tensor_from_tensor_info(info, import_scope=scope)
            for info in (signature.inputs["x"], signature.outputs["y"])
        )
        return meta, session.run(y, {x: X})


def test_saved_model_comes_back_with_its_signature(session: tf.Session, tmp_path: Path) -> None:
    x, y, _ = model(session)
    tf.saved_model.simple_save(session, str(tmp_path / "m"), {"x": x}, {"y": y})
    assert tf.saved_model.contains_saved_model(str(tmp_path / "m"))
    meta, found = loaded(tmp_path / "m")
    np.testing.assert_array_equal(found, session.run(y, {x: X}))
    signature = meta.signature_def["serving_default"]
    assert signature.method_name == "tensorflow/serving/predict"
    assert [d.size for d in signature.inputs["x"].tensor_shape.dim] == [-1, 3]


def test_saved_model_loads_into_a_scope(session: tf.Session, tmp_path: Path) -> None:
    x, y, _ = model(session)
    tf.saved_model.simple_save(session, str(tmp_path / "m"), {"x": x}, {"y": y})
    np.testing.assert_array_equal(loaded(tmp_path / "m", scope="inner")[1], session.run(y, {x: X}))


def test_graphs_are_selected_by_tags(session: tf.Session, tmp_path: Path) -> None:
    x, y, w = model(session)
    builder = tf.saved_model.Builder(str(tmp_path / "m"))
    signature = tf.saved_model.predict_signature_def({"x": x}, {"y": y})
    reset = w.assign(tf.zeros([3, 1]), read_value=False)
    builder.add_meta_graph_and_variables(session, ["serve"], {"serving_default": signature})
    builder.add_meta_graph(["serve", "zero"], {"serving_default": signature}, main_op=reset)
    assert not tf.saved_model.contains_saved_model(str(tmp_path / "m"))
    builder.save(as_text=True)
    np.testing.assert_array_equal(loaded(tmp_path / "m")[1], session.run(y, {x: X}))
    np.testing.assert_array_equal(loaded(tmp_path / "m", {"zero", "serve"})[1], np.zeros((2, 1)))
    with pytest.raises(tf.errors.NotFoundError, match="no graph of the tags train; its graphs have the tags: serve; s"):
        loaded(tmp_path / "m", ["train"])


def test_folder_that_is_not_empty_is_left_alone(session: tf.Session, tmp_path: Path) -> None:
    x, y, _ = model(session)
    (tmp_path / "mine").touch()
    with pytest.raises(tf.errors.AlreadyExistsError, match="exists and is not empty; a new folder is required"):
        tf.saved_model.simple_save(session, str(tmp_path), {"x": x}, {"y": y})
    assert [p.name for p in tmp_path.iterdir()] == ["mine"]


def test_folder_without_model_is_an_error(session: tf.Session, tmp_path: Path) -> None:
    with pytest.raises(tf.errors.NotFoundError, match=r"has no saved_model\.pb; give the folder of a saved model"):
        tf.saved_model.load(session, ["serve"], str(tmp_path))
    (tmp_path / "saved_model.pb").write_bytes(b"\xff")
    with pytest.raises(tf.errors.InvalidArgumentError, match="do not parse as SavedModel"):
        tf.saved_model.load(session, ["serve"], str(tmp_path))


def test_signature_must_name_tensors_of_the_graph(session: tf.Session, tmp_path: Path) -> None:
    x, y, w = model(session)
    with pytest.raises(tf.errors.InvalidArgumentError, match="is no tensor; inputs and outputs of a model are tensors"):
        tf.saved_model.predict_signature_def({"x": x}, {"y": w.initializer})
    signature = tf.saved_model.predict_signature_def({"x": x}, {"y": y})
    signature.outputs["y"].name = "z:0"
    builder = tf.saved_model.Builder(str(tmp_path / "m"))
    with pytest.raises(tf.errors.InvalidArgumentError, match="signature 'key': names tensor 'z:0', which the graph"):
        builder.add_meta_graph_and_variables(session, ["serve"], {"key": signature})


def test_missing_variables_leave_the_session_usable(session: tf.Session, tmp_path: Path) -> None:
    x, y, w = model(session)
    tf.saved_model.simple_save(session, str(tmp_path / "m"), {"x": x}, {"y": y})
    for path in (tmp_path / "m" / "variables").iterdir():
        path.unlink()
    with pytest.raises(tf.errors.NotFoundError, match=r"there is no 'variables\.index'"):
        loaded(tmp_path / "m")
    assert session.run(w).shape == (3, 1)


def test_the_model_has_nodes_that_restore_its_variables(session: tf.Session, tmp_path: Path) -> None:
    """TensorFlow's servers run them. A model that is written again gets nodes of other names."""
    x, y, _ = model(session)
    expected = session.run(y, {x: X})
    tf.saved_model.simple_save(session, str(tmp_path / "first"), {"x": x}, {"y": y})
    with tf.Graph().as_default(), tf.Session() as other:
        tf.saved_model.load(other, ["serve"], str(tmp_path / "first"))
        tf.saved_model.simple_save(other, str(tmp_path / "again"), {"x": "x:0"}, {"y": "y:0"})
    with tf.Graph().as_default(), tf.Session() as fresh:
        meta = read_saved_model(str(tmp_path / "again")).meta_graphs[0]
        tf.import_graph_def(meta.graph_def, name="")
        variables = {meta.saver_def.filename_tensor_name: str(tmp_path / "again" / "variables" / "variables")}
        fresh.run(meta.saver_def.restore_op_name, variables)
        np.testing.assert_array_equal(fresh.run("y:0", {"x:0": X}), expected)
