"""Accumulators give TensorFlow's results, and graphs with them go both ways."""

from __future__ import annotations

from typing import Any

import numpy as np

import timberframe as ours

RUNS = ["add_1", "add_2", "add_3", "add_rows_1", "add_rows_2", "at_7", "add_late"]
FETCHES = ["mean:0", "total:0", "indices:0", "values:0", "shape:0", "left:0"]


def build(tf: Any) -> None:
    """Operations of the names above, by functions that both sides have."""
    mean = tf.ConditionalAccumulator(tf.float32, shape=[2], name="m")
    total = tf.ConditionalAccumulator(tf.float64, shape=[], reduction_type="SUM", name="t")
    for i, (vector, number) in enumerate((([1.0, 2.0], 0.1), ([0.3, 2.5], 0.7), ([3.7, 5.0], 0.2)), 1):
        tf.group(mean.apply_grad(vector), total.apply_grad(tf.constant(number, tf.float64)), name=f"add_{i}")
    tf.identity(mean.take_grad(2), name="mean")
    tf.identity(total.take_grad(3), name="total")
    sparse = tf.SparseConditionalAccumulator(tf.float32, shape=[4, 2], name="s")
    for i, (indices, values) in enumerate((([0, 2], [[1.0, 1.5], [2.0, 2.5]]), ([1, 2], [[0.3, 1.0], [4.1, 0.7]])), 1):
        tf.group(sparse.apply_grad(indices, values, [4, 2]), name=f"add_rows_{i}")
    found = sparse.take_grad(2)
    for name, value in zip(("indices", "values", "shape"), found, strict=True):
        tf.identity(value, name=name)
    late = tf.ConditionalAccumulator(tf.float32, shape=[], name="late")
    tf.group(late.set_global_step(7), name="at_7")
    tf.group(late.apply_grad(1.0, local_step=6), name="add_late")
    tf.identity(late.num_accumulated(), name="left")


def results(tf: Any, definition: Any) -> list[Any]:
    with tf.Graph().as_default() as graph, tf.Session(graph=graph) as session:
        tf.import_graph_def(definition, name="")
        for name in RUNS:
            session.run(name)
        return [np.asarray(x).tolist() for x in session.run(FETCHES)]


def test_graphs_of_tensorflow_give_its_results(tensorflow: Any) -> None:
    with tensorflow.Graph().as_default() as graph:
        build(tensorflow)
    written = graph.as_graph_def()
    definition = ours.GraphDef()
    definition.ParseFromString(written.SerializeToString())
    assert results(ours, definition) == results(tensorflow, written)


def test_tensorflow_runs_our_graphs(tensorflow: Any) -> None:
    with ours.Graph().as_default() as graph:
        build(ours)
    written = graph.as_graph_def()
    definition = tensorflow.GraphDef()
    definition.ParseFromString(written.SerializeToString())
    assert results(tensorflow, definition) == results(ours, written)
