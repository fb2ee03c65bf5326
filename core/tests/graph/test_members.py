"""What programs ask of tensors, operations and graphs besides running them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import timberframe as tf


@pytest.fixture(autouse=True)
def graph() -> Iterator[tf.Graph]:
    with tf.Graph().as_default() as made:
        yield made


def test_traceback_ends_at_the_line_that_made_the_operation() -> None:
    made = tf.constant(1.0)
    entry = made.op.traceback[-1]
    assert (entry.filename, entry.name) == (__file__, "test_traceback_ends_at_the_line_that_made_the_operation")
    assert entry.line == "made = tf.constant(1.0)"
    assert __file__ in "".join(made.op.traceback.format())


def test_values_are_the_outputs() -> None:
    first, second = tf.split(tf.zeros([4]), 2)
    assert first.op.values() == (first, second)


def test_an_operation_names_those_on_whose_device_it_is_to_be() -> None:
    a = tf.constant(1.0, name="a")
    with tf.colocate_with(a):
        b = tf.constant(2.0)
    assert (a.op.colocation_groups(), b.op.colocation_groups()) == ([b"loc:@a"], [b"loc:@a"])


def test_rank_of_a_tensor() -> None:
    assert tf.zeros([2, 3]).ndim == 2
    assert tf.placeholder(tf.float32).ndim is None


def test_references_to_one_tensor_are_equal() -> None:
    a, b = tf.constant(1.0), tf.constant(1.0)
    assert {a.ref(): "a"}[a.ref()] == "a"
    assert a.ref() != b.ref()
    assert a.experimental_ref().deref() is a


def test_what_may_not_be_fed_or_fetched(graph: tf.Graph) -> None:
    x, y = tf.constant(1.0, name="x"), tf.constant(2.0, name="y")
    graph.prevent_feeding(x)
    graph.prevent_fetching(y.op)
    assert (graph.is_feedable(x), graph.is_feedable(y)) == (False, True)
    assert (graph.is_fetchable(x), graph.is_fetchable(y), graph.is_fetchable(y.op)) == (True, False, False)
    with tf.Session() as session:
        assert session.run(x + y) == 3
        with pytest.raises(ValueError, match=r"feed 'x:0' is one of Graph.prevent_feeding; it cannot be fed"):
            session.run(x + y, {x: 2.0})
        for fetch in (y, y.op):
            with pytest.raises(ValueError, match=r"is one of Graph.prevent_fetching; it cannot be fetched"):
                session.run(fetch)


def test_a_graph_names_its_collections(graph: tf.Graph) -> None:
    tf.add_to_collection("mine", 1)
    assert "mine" in graph.collections


def test_bodies_of_functions_say_that_they_are(graph: tf.Graph) -> None:
    inner = []
    tf.cond(tf.constant(True), lambda: inner.append(tf.get_default_graph()) or 1.0, lambda: 2.0)
    assert (graph.building_function, inner[0].building_function) == (False, True)


def test_a_container_of_a_graph_that_is_not_the_default() -> None:
    other = tf.Graph()
    with other.container("box"), other.as_default():
        queue = tf.FIFOQueue(1, tf.float32)
    assert queue.queue_ref.op.get_attr("container") == "box"


def test_a_sparse_tensor_with_other_values() -> None:
    sparse = tf.SparseTensor([[0, 1], [1, 0]], [1.0, 2.0], [2, 2])
    with tf.Session() as session:
        assert session.run(sparse.with_values([3, 4])).values.tolist() == [3, 4]
    with pytest.raises(ValueError, match=r"given shape \(3,\); one value for each element, \(2,\), is required"):
        sparse.with_values([1, 2, 3])


def test_negated_rows() -> None:
    rows = tf.IndexedSlices(tf.constant([[1.0]]), tf.constant([1]), tf.constant([2, 1]))
    with tf.Session() as session:
        assert session.run(tf.convert_to_tensor(-rows)).tolist() == [[0.0], [-1.0]]
    assert all(op.type == "Neg" or "Segment" in op.type for op in rows.consumers())
