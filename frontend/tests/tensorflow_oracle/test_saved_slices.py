"""The saving nodes of TensorFlow's graphs with partitioned variables work here, and the files are good there."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import timberframe

VALUE = np.arange(35, dtype=np.float32).reshape(7, 5)


def variable(tf: Any, axis: int, parts: int = 3) -> Any:
    initializer = tf.constant(VALUE)
    return tf.get_variable("v", initializer=initializer, partitioner=tf.fixed_size_partitioner(parts, axis))


def their_graph(tf: Any, axis: int, sharded: bool) -> tuple[Any, Any, str]:
    """Returns a graph with a partitioned variable and saving nodes, as a GraphDef; what says
    their names; the initialiser.
    """
    with tf.Graph().as_default() as graph:
        tf.identity(variable(tf, axis), name="whole")
        saver = tf.train.Saver(sharded=sharded)
        initializer = tf.global_variables_initializer()
        return graph.as_graph_def(), saver.as_saver_def(), initializer.name


@pytest.mark.parametrize("sharded", [False, True])
@pytest.mark.parametrize("axis", [0, 1])
def test_nodes_save_for_both(tensorflow: Any, tmp_path: Path, axis: int, sharded: bool) -> None:
    graph_def, names, initializer = their_graph(tensorflow, axis, sharded)
    path = str(tmp_path / "m")
    with timberframe.Graph().as_default(), timberframe.Session() as session:
        timberframe.import_graph_def(graph_def, name="")
        session.run(initializer)
        session.run(names.save_tensor_name, {names.filename_tensor_name: path})
    np.testing.assert_array_equal(timberframe.train.load_variable(path, "v"), VALUE)
    for parts in (3, 2):
        with tensorflow.Graph().as_default(), tensorflow.Session() as session:
            v = variable(tensorflow, axis, parts)
            tensorflow.train.Saver().restore(session, path)
            np.testing.assert_array_equal(session.run(tensorflow.convert_to_tensor(v)), VALUE)


@pytest.mark.parametrize("parts", [1, 2, 3])
def test_nodes_restore_what_tensorflow_saved(tensorflow: Any, tmp_path: Path, parts: int) -> None:
    with tensorflow.Graph().as_default(), tensorflow.Session() as session:
        variable(tensorflow, 0, parts)
        session.run(tensorflow.global_variables_initializer())
        path = tensorflow.train.Saver().save(session, str(tmp_path / "m"))
    graph_def, names, _ = their_graph(tensorflow, 0, sharded=False)
    with timberframe.Graph().as_default(), timberframe.Session() as session:
        timberframe.import_graph_def(graph_def, name="")
        session.run(names.restore_op_name, {names.filename_tensor_name: path})
        np.testing.assert_array_equal(session.run("whole:0"), VALUE)
