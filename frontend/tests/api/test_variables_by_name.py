"""Variables by the names of their tensors: ``w:0`` is the value, as TensorFlow 1's references are."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import timberframe as tf

pytestmark = pytest.mark.usefixtures("graph")


def start(session: tf.Session) -> None:
    session.run(tf.global_variables_initializer())


def test_a_fetch_by_name_is_the_value(session: tf.Session) -> None:
    tf.Variable([1.0, 2.0], name="w")
    tf.get_variable("b", initializer=3.0)
    start(session)
    w, b = session.run(["w:0", "b:0"])
    assert (w.tolist(), b) == ([1.0, 2.0], 3.0)


def test_the_tensor_of_the_name_has_dtype_and_shape_of_the_value(graph: tf.Graph) -> None:
    tf.get_variable("layer/w", [2, 3])
    found = graph.get_tensor_by_name("layer/w:0")
    assert (found.dtype, found.shape.as_list()) == (tf.float32, [2, 3])


def test_the_tensor_of_the_name_is_an_operand(graph: tf.Graph, session: tf.Session) -> None:
    tf.Variable([1.0, 2.0], name="w")
    doubled = graph.get_tensor_by_name("w:0") * 2.0
    start(session)
    assert session.run(doubled).tolist() == [2.0, 4.0]


def test_the_output_of_the_operation_of_a_variable_is_its_value(graph: tf.Graph, session: tf.Session) -> None:
    tf.Variable([1.0, 2.0], name="w")
    start(session)
    assert session.run(graph.get_operation_by_name("w").outputs[0]).tolist() == [1.0, 2.0]


def test_an_update_is_in_a_later_fetch_by_name(session: tf.Session) -> None:
    w = tf.Variable(1.0, name="w")
    start(session)
    session.run(w.assign_add(1.5))
    assert session.run("w:0") == 2.5


@pytest.mark.parametrize("key", ["name", "variable", "tensor"])
def test_a_fed_variable_has_that_value_wherever_it_is_read(graph: tf.Graph, session: tf.Session, key: str) -> None:
    w = tf.Variable([1.0, 2.0], name="w")
    y = tf.reduce_sum(w * w) + tf.reduce_max(tf.identity(w))
    start(session)
    feed = {"name": "w:0", "variable": w, "tensor": graph.get_tensor_by_name("w:0")}[key]
    assert session.run(y, {feed: [3.0, 4.0]}) == 29.0
    assert session.run(y) == 7.0


def test_a_callable_feeds_a_variable(session: tf.Session) -> None:
    w = tf.Variable(1.0, name="w")
    call = session.make_callable([w + 1.0, w * 2.0], ["w:0"])
    assert call(5.0) == [6.0, 10.0]


def test_a_fed_variable_needs_no_value(session: tf.Session) -> None:
    w = tf.Variable(1.0, name="w")
    assert session.run(w + 1.0, {"w:0": 4.0}) == 5.0


def test_an_update_of_a_fed_variable_is_refused(session: tf.Session) -> None:
    w = tf.Variable(1.0, name="w")
    start(session)
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"AssignAddVariableOp 'more': works on variable 'w', for"):
        session.run([w.assign_add(1.0, name="more", read_value=False), w + 1.0], {w: 2.0})


def test_a_fed_value_has_the_variables_shape(session: tf.Session) -> None:
    w = tf.Variable([1.0, 2.0], name="w")
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"\(3,\)"):
        session.run(w + 1.0, {"w:0": [1.0, 2.0, 3.0]})


def test_explain_takes_a_feed_of_a_variable(session: tf.Session) -> None:
    w = tf.Variable([1.0, 2.0], name="w")
    assert session.explain(w * w, {"w:0": [1.0, 2.0]}).peak_bytes == {session.list_devices()[0].spec: 8}


def test_gradients_with_respect_to_the_tensor_of_the_name(graph: tf.Graph, session: tf.Session) -> None:
    w = tf.Variable([1.0, 2.0], name="w")
    (slope,) = tf.gradients(tf.reduce_sum(w * w * w), graph.get_tensor_by_name("w:0"))
    start(session)
    assert session.run(slope).tolist() == [3.0, 12.0]


def test_an_import_returns_the_value_of_a_variable(graph: tf.Graph, session: tf.Session) -> None:
    tf.Variable([1.0, 2.0], name="w")
    (found,) = tf.import_graph_def(graph.as_graph_def(), return_elements=["w:0"])
    assert (found.dtype, found.shape.as_list()) == (tf.float32, [2])
    session.run("import/w/Assign")
    assert session.run(found).tolist() == [1.0, 2.0]


def test_an_import_maps_a_value_to_a_variable(graph: tf.Graph, session: tf.Session) -> None:
    w = tf.Variable([1.0, 2.0], name="w")
    tf.multiply(w, 10.0, name="y")
    (y,) = tf.import_graph_def(graph.as_graph_def(), {"w:0": tf.constant([3.0, 4.0])}, ["y:0"])
    assert session.run(y).tolist() == [30.0, 40.0]


def test_a_frozen_graph_has_the_value_under_the_name(graph: tf.Graph, session: tf.Session) -> None:
    tf.add(tf.Variable([1.0, 2.0], name="w"), 1.0, name="y")
    start(session)
    frozen = tf.graph_util.convert_variables_to_constants(session, graph.as_graph_def(), ["y", "w"])
    with tf.Graph().as_default() as other:
        w, y = tf.import_graph_def(frozen, return_elements=["w:0", "y:0"], name="")
        with tf.Session(graph=other) as fresh:
            assert [x.tolist() for x in fresh.run([w, y])] == [[1.0, 2.0], [2.0, 3.0]]
            assert fresh.run("w:0").tolist() == [1.0, 2.0]


def test_a_meta_graph_gives_the_variable_back(graph: tf.Graph, session: tf.Session, tmp_path: Path) -> None:
    tf.Variable([1.0, 2.0], name="w")
    start(session)
    path = tf.train.Saver().save(session, str(tmp_path / "model"))
    with tf.Graph().as_default() as other, tf.Session(graph=other) as fresh:
        tf.train.import_meta_graph(f"{path}.meta").restore(fresh, path)
        assert fresh.run("w:0").tolist() == [1.0, 2.0]
        (found,) = tf.global_variables()
        assert (found.name, found.handle.dtype) == ("w:0", tf.resource)


def test_assign_takes_the_tensor_of_the_name(graph: tf.Graph, session: tf.Session) -> None:
    tf.Variable([1.0, 2.0], name="w")
    update = tf.assign(graph.get_tensor_by_name("w:0"), [5.0, 6.0])
    start(session)
    session.run(update)
    np.testing.assert_array_equal(session.run("w:0"), [5.0, 6.0])


def test_a_saver_takes_the_tensor_of_the_name(graph: tf.Graph, session: tf.Session, tmp_path: Path) -> None:
    tf.Variable([1.0, 2.0], name="w")
    start(session)
    path = tf.train.Saver([graph.get_tensor_by_name("w:0")]).save(session, str(tmp_path / "model"))
    assert tf.train.load_variable(path, "w").tolist() == [1.0, 2.0]
