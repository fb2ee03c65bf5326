"""Dimensions, NodeDefs and frozen graphs are TensorFlow's."""

from __future__ import annotations

import operator
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import timberframe as ours


@pytest.fixture
def dimensions(tensorflow: Any) -> Iterator[Any]:
    """TensorFlow, whose shapes have Dimensions as in TensorFlow 1."""
    tensorflow.disable_v2_tensorshape()
    yield tensorflow
    tensorflow.enable_v2_tensorshape()


@pytest.mark.parametrize("word", ["add", "sub", "mul", "floordiv", "mod", "eq", "ne", "lt", "le", "gt", "ge"])
def test_dimensions_calculate_alike(dimensions: Any, word: str) -> None:
    function, results = getattr(operator, word), []
    for tf in (ours, dimensions):
        sizes = [tf.Dimension(7), tf.Dimension(2), tf.Dimension(None), 3]
        made = [function(a, b) for a in sizes[:3] for b in sizes if getattr(a, "value", 7) != 2 or word != "sub"]
        results.append([x.value if isinstance(x, tf.Dimension) else x for x in made])
    assert results[0] == results[1]


def test_shapes_print_and_compare_alike(dimensions: Any) -> None:
    results = []
    for tf in (ours, dimensions):
        shape = tf.TensorShape([None, 3])
        made = [shape[0], shape[1], shape[1:], shape.ndims, shape.concatenate([2]), tf.TensorShape(None)[0]]
        results.append([str(x) for x in made] + [tf.dimension_value(shape[i]) for i in (0, 1)])
    assert results[0] == results[1]


def build(tf: Any) -> None:
    x = tf.placeholder(tf.float32, [None, 2], name="x")
    with tf.variable_scope("net"):
        w = tf.get_variable("w", initializer=np.array([[1, 2], [3, 4]], np.float32), use_resource=True)
    loop = tf.while_loop(lambda i, _: i < 2, lambda i, y: (i + 1, tf.matmul(y, w)), [0, x])[1]
    tf.identity(tf.check_numerics(loop + tf.gather(w, [0]), "bad"), name="y")


def frozen(tf: Any) -> tuple[Any, Any]:
    """Returns a frozen graph without training nodes, and its result."""
    with tf.Graph().as_default() as graph, tf.Session() as session:
        build(tf)
        session.run(tf.global_variables_initializer())
        made = tf.graph_util.convert_variables_to_constants(session, graph.as_graph_def(), ["y"])
        return tf.graph_util.remove_training_nodes(made, ["y"]), session.run("y:0", {"x:0": [[1.0, 2.0]]})


def test_frozen_graphs_run_in_tensorflow(tensorflow: Any) -> None:
    written, want = frozen(ours)
    definition = tensorflow.GraphDef()
    definition.ParseFromString(written.SerializeToString())
    with tensorflow.Graph().as_default(), tensorflow.Session() as session:
        tensorflow.import_graph_def(definition, name="")
        np.testing.assert_allclose(session.run("y:0", {"x:0": [[1.0, 2.0]]}), want)


def test_node_defs_are_alike(tensorflow: Any) -> None:
    nodes = []
    for tf in (ours, tensorflow):
        with tf.Graph().as_default():
            parts = tf.split(tf.constant([1.0, 2.0]), 2, name="parts")
            node = tf.add(*parts, name="y").op.node_def
            nodes.append((node.name, node.op, list(node.input), node.attr["T"].type))
    assert nodes[0] == nodes[1]


def test_sub_graphs_have_the_same_nodes(tensorflow: Any) -> None:
    found = []
    for tf in (ours, tensorflow):
        with tf.Graph().as_default() as graph:
            a = tf.constant(1.0, name="a")
            tf.negative(tf.identity(tf.stop_gradient(a, name="s"), name="i"), name="y")
            tf.exp(a, name="other")
            part = tf.graph_util.extract_sub_graph(graph.as_graph_def(), ["y"])
            small = tf.graph_util.remove_training_nodes(part, ["i"])
            found.append([[n.name for n in d.node] for d in (part, small)])
    assert found[0] == found[1]
