"""Hash tables: filling, finding, changing."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import timberframe as tf


def words(keys: Any = ("a", "b"), values: Any = (1, 2), **settings: Any) -> tf.lookup.StaticHashTable:
    initializer = tf.lookup.KeyValueTensorInitializer(list(keys), list(values), tf.string, tf.int64)
    return tf.lookup.StaticHashTable(initializer, -1, **settings)


def test_keys_give_their_values_and_others_the_default(session: tf.Session) -> None:
    table = words()
    session.run(tf.tables_initializer())
    assert session.run(table.lookup([["a", "z"], ["b", "a"]])).tolist() == [[1, -1], [2, 1]]


def test_shape_of_what_is_found_is_known() -> None:
    with tf.Graph().as_default():
        assert words().lookup(tf.placeholder(tf.string, [3, 2])).shape == [3, 2]


def test_table_must_be_initialized(session: tf.Session) -> None:
    with pytest.raises(tf.errors.FailedPreconditionError, match=r"table .words. is not initialized"):
        session.run(words(name="words").lookup(["a"]))


def test_size_is_zero_before_and_counts_keys_after(session: tf.Session) -> None:
    table = words()
    size = table.size()
    assert session.run(size) == 0
    session.run(table.initializer)
    assert session.run(size) == 2


def test_initializing_twice_changes_nothing(session: tf.Session) -> None:
    table = words()
    initialize = tf.tables_initializer()
    session.run(initialize)
    session.run(initialize)
    assert session.run(table.lookup(["b"])).tolist() == [2]


def test_initializing_with_other_values_is_refused(session: tf.Session) -> None:
    session.run(words(shared_name="t").initializer)
    with pytest.raises(tf.errors.FailedPreconditionError, match="table 't' is initialized already"):
        session.run(words(values=(1, 3), shared_name="t").initializer)


def test_key_with_two_values_is_refused(session: tf.Session) -> None:
    with pytest.raises(tf.errors.FailedPreconditionError, match="key b'a' has the values 1 and 2"):
        session.run(words(keys=("a", "a")).initializer)


def test_key_that_is_given_twice_with_one_value_counts_once(session: tf.Session) -> None:
    table = words(keys=("a", "a"), values=(1, 1))
    session.run(table.initializer)
    assert session.run(table.size()) == 1


def test_each_session_initializes_for_itself(session: tf.Session) -> None:
    table = words()
    session.run(tf.tables_initializer())
    found = table.lookup(["a"])
    with tf.Session(graph=session.graph) as other, pytest.raises(tf.errors.FailedPreconditionError):
        other.run(found)


def test_entries_are_exported(session: tf.Session) -> None:
    table = words()
    session.run(table.initializer)
    keys, values = session.run(table.export())
    assert dict(zip(keys.tolist(), values.tolist(), strict=True)) == {b"a": 1, b"b": 2}


def test_lookup_in_a_loop(session: tf.Session) -> None:
    initializer = tf.lookup.KeyValueTensorInitializer([1, 2, 3], [2, 3, 0], tf.int64, tf.int64)
    table = tf.lookup.StaticHashTable(initializer, -1)
    session.run(table.initializer)
    last = tf.while_loop(lambda x: x > 0, lambda x: table.lookup(x), [tf.constant(1, tf.int64)])
    assert session.run(last) == 0


def test_what_is_found_goes_on_to_devices(session: tf.Session) -> None:
    table = words()
    session.run(table.initializer)
    embeddings = tf.constant([[0.0], [10.0], [20.0]])
    assert session.run(tf.gather(embeddings, table.lookup(["b", "a"])) * 2.0).tolist() == [[40.0], [20.0]]


def test_dtype_of_keys_is_checked_while_building() -> None:
    with tf.Graph().as_default(), pytest.raises(tf.errors.InvalidArgumentError, match="string"):
        words().lookup(tf.constant([1]))


# Tables that change


def test_mutable_table_keeps_what_was_inserted_last(session: tf.Session) -> None:
    table = tf.lookup.MutableHashTable(tf.string, tf.float32, -1.0)
    session.run(table.insert(["a", "b", "a"], [1.0, 2.0, 3.0]))
    assert session.run(table.lookup(["a", "b", "c"])).tolist() == [3.0, 2.0, -1.0]


def test_removed_keys_give_the_default(session: tf.Session) -> None:
    table = tf.lookup.MutableHashTable(tf.string, tf.int32, 0)
    session.run(table.insert(["a", "b"], [1, 2]))
    session.run(table.remove(["a", "zz"]))
    assert session.run([table.size(), table.lookup("a")]) == [1, 0]


def test_values_may_be_tensors(session: tf.Session) -> None:
    table = tf.lookup.MutableHashTable(tf.int64, tf.int32, [0, 0])
    session.run(table.insert([1, 2], [[1, 2], [3, 4]]))
    assert session.run(table.lookup([[2, 5]])).tolist() == [[[3, 4], [0, 0]]]


def test_values_of_another_shape_are_refused(session: tf.Session) -> None:
    table = tf.lookup.MutableHashTable(tf.int64, tf.int32, [0, 0])
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"values have shape \(2,\) for keys of shape \(2,\)"):
        session.run(table.insert([1, 2], [1, 2]))


def test_default_may_be_given_for_each_key(session: tf.Session) -> None:
    table = tf.lookup.MutableHashTable(tf.string, tf.int32, 0)
    session.run(table.insert(["a"], [1]))
    assert session.run(table.lookup(["a", "b"], dynamic_default_values=[7, 8])).tolist() == [1, 8]


def test_import_replaces_all_entries(session: tf.Session) -> None:
    table = tf.lookup.MutableHashTable(tf.string, tf.int32, 0)
    session.run(table.insert(["a"], [1]))
    session.run(tf.raw_ops.LookupTableImportV2(table_handle=table.resource_handle, keys=["b"], values=[2]))
    assert session.run(table.export())[0].tolist() == [b"b"]


def test_table_that_is_filled_once_refuses_changes(session: tf.Session) -> None:
    table = words()
    session.run(table.initializer)
    insert = tf.raw_ops.LookupTableInsertV2(
        table_handle=table.resource_handle, keys=["c"], values=tf.constant([3], tf.int64)
    )
    with pytest.raises(tf.errors.FailedPreconditionError, match="filled once"):
        session.run(insert)


# Vocabularies


def test_words_get_their_numbers(session: tf.Session) -> None:
    table = tf.contrib.lookup.index_table_from_tensor(["x", "y", "z"], default_value=-7)
    session.run(tf.tables_initializer())
    assert session.run(table.lookup(["y", "q", "z"])).tolist() == [1, -7, 2]


def test_numbers_get_their_words(session: tf.Session) -> None:
    table = tf.lookup.index_to_string_table_from_tensor(["x", "y"])
    session.run(tf.tables_initializer())
    assert session.run(table.lookup(np.array([1, 5]))).tolist() == [b"y", b"UNK"]


def test_initializer_of_a_graph_without_tables_does_nothing(session: tf.Session) -> None:
    assert session.run(tf.tables_initializer()) is None


def test_tables_travel_in_a_graph_def(session: tf.Session) -> None:
    table = words(name="t")
    table.lookup(["b", "q"], name="found")
    initialize = table.initializer.name
    with tf.Graph().as_default() as graph, tf.Session(graph=graph) as other:
        tf.import_graph_def(session.graph.as_graph_def(), name="")
        other.run(initialize)
        assert other.run("found:0").tolist() == [2, -1]


def test_words_that_are_not_listed_get_tensorflows_buckets(session: tf.Session) -> None:
    table = tf.lookup.index_table_from_tensor(["x", "y", "z"], num_oov_buckets=4)
    session.run(tf.tables_initializer())
    found = session.run(table.lookup(["y", "q", "z", "hello", "w"]))
    assert found.tolist() == [1, 4, 2, 3, 6]  # TensorFlow 2.21
    assert session.run(table.size()) == 7
