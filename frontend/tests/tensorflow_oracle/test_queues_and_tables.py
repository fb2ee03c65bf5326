"""Graphs with queues, tables and Print that TensorFlow wrote run here with its results, and ours run there."""

from __future__ import annotations

from typing import Any

import numpy as np

import timberframe as ours

SET_UP = ["fill", "insert", "put", "put_rows", "put_words"]
FETCHES = ["found:0", "tensors:0", "shuffled:0", "padded:0", "first:0", "printed:0"]


def build(tf: Any, mutable: Any) -> None:
    """Operations of the names above, by functions that both sides have."""
    keys, values = tf.constant(["a", "b"]), tf.constant([1, 2], tf.int64)
    table = tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer(keys, values), -1)
    tf.identity(table.lookup(tf.constant(["b", "q"])), name="found")
    tf.tables_initializer(name="fill")
    tensors = mutable(tf.int64, tf.int32, [0, 0], name="tensors_table")
    tf.group(tensors.insert(tf.constant([1, 2], tf.int64), tf.constant([[1, 2], [3, 4]])), name="insert")
    tf.identity(tensors.lookup(tf.constant([2, 7], tf.int64)), name="tensors")
    shuffled = tf.RandomShuffleQueue(9, 1, [tf.float32], shapes=[[]], seed=3)
    tf.group(shuffled.enqueue_many([[1.0, 2.0, 3.0, 4.0, 5.0]]), name="put")
    tf.identity(shuffled.dequeue_many(4), name="shuffled")
    padded = tf.PaddingFIFOQueue(5, [tf.int32], shapes=[[None]])
    tf.group(padded.enqueue([[1, 2]]), name="put_rows")
    tf.identity(padded.dequeue_many(1), name="padded")
    words = tf.PriorityQueue(5, [tf.string], [()])
    tf.group(words.enqueue((np.int64(1), "z")), name="put_words")
    tf.identity(words.dequeue()[1], name="first")
    tf.identity(tf.Print(tf.constant(1.0), [tf.constant(2.0)], "printed "), name="printed")


def results(tf: Any, definition: Any) -> list[Any]:
    with tf.Graph().as_default() as graph, tf.Session(graph=graph) as session:
        tf.import_graph_def(definition, name="")
        session.run(SET_UP)
        return [np.asarray(x).tolist() for x in session.run(FETCHES)]


def test_graphs_of_tensorflow_give_its_results(tensorflow: Any) -> None:
    with tensorflow.Graph().as_default() as graph:
        build(tensorflow, tensorflow.lookup.experimental.MutableHashTable)
    written = graph.as_graph_def()
    definition = ours.GraphDef()
    definition.ParseFromString(written.SerializeToString())
    assert results(ours, definition) == results(tensorflow, written)


def test_tensorflow_runs_our_graphs(tensorflow: Any) -> None:
    with ours.Graph().as_default() as graph:
        build(ours, ours.lookup.MutableHashTable)
    written = graph.as_graph_def()
    definition = tensorflow.GraphDef()
    definition.ParseFromString(written.SerializeToString())
    assert results(tensorflow, definition) == results(ours, written)


def test_a_chosen_queue_gives_the_same(tensorflow: Any) -> None:
    found = []
    for tf in (ours, tensorflow):
        with tf.Graph().as_default(), tf.Session() as session:
            queues = [tf.FIFOQueue(4, [tf.int32], [shape]) for shape in ([2], [2])]
            index = tf.placeholder(tf.int32, [])
            chosen = tf.QueueBase.from_list(index, queues)
            taken = chosen.dequeue_many(2)
            session.run([q.enqueue_many([[[i, 1], [i, 2], [i, 3]]]) for i, q in enumerate(queues)])
            rows = [session.run(taken, {index: i}).tolist() for i in (1, 0)]
            found.append((taken.shape.as_list(), rows, session.run(chosen.size(), {index: 1}), chosen.shapes))
    assert [str(x) for x in found[0]] == [str(x) for x in found[1]]
