"""Arguments by TensorFlow's names, in its order, and its defaults."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import timberframe as tf


def test_structures_of_other_types_differ_unless_types_are_not_checked() -> None:
    with pytest.raises(TypeError, match="structures are list and tuple"):
        tf.nest.assert_same_structure([1, 2], (3, 4))
    tf.nest.assert_same_structure([1, 2], (3, 4), check_types=False)
    assert tf.nest.map_structure(lambda a, b: a + b, [1, 2], (3, 4), check_types=False) == [4, 6]


def test_pooling_by_its_first_argument_of_either_name() -> None:
    images = np.arange(16, dtype=np.float32).reshape(1, 4, 4, 1)
    pooled = [tf.nn.avg_pool2d(**{name: images}, ksize=2, strides=2, padding="VALID") for name in ("value", "input")]
    with tf.Session() as session:
        for found in session.run(pooled):
            np.testing.assert_array_equal(found[0, :, :, 0], [[2.5, 4.5], [10.5, 12.5]])


def test_a_message_repeats_the_last_of_several_elements_unless_one_alone_may_be() -> None:
    assert tf.make_ndarray(tf.make_tensor_proto([1.0, 2.0], shape=[3])).tolist() == [1.0, 2.0, 2.0]
    assert tf.make_ndarray(tf.make_tensor_proto([1.0], shape=[3], allow_broadcast=True)).tolist() == [1.0, 1.0, 1.0]
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"value has shape \(2,\); it must have \(3,\)"):
        tf.make_tensor_proto([1.0, 2.0], shape=[3], allow_broadcast=True)


def test_priority_queue_without_shapes() -> None:
    queue = tf.PriorityQueue(3, tf.string)
    put = [queue.enqueue((tf.constant(number, tf.int64), text)) for number, text in ((2, "b"), (1, "a"))]
    with tf.Session() as session:
        session.run(put[0])
        session.run(put[1])
        assert session.run(queue.dequeue()) == [1, b"a"]


def test_static_table_by_name_third_and_the_older_one_by_shared_name() -> None:
    filled = tf.lookup.KeyValueTensorInitializer(["a"], [1])
    assert tf.lookup.StaticHashTable(filled, -1, "words").name == "words"
    assert tf.contrib.lookup.HashTable(filled, -1, "shared", "older").name == "older"


def test_a_scope_takes_positions_in_tensorflows_order() -> None:
    def largest(getter: Any, name: str, shape: Any, **others: Any) -> Any:
        seen.append((shape, others["dtype"], others["trainable"]))
        return getter(name=name, shape=shape, **others)

    seen: list[Any] = []
    from timberframe.api.variable_store import VariableStore

    store = VariableStore.of(tf.get_default_graph())
    made = tf.get_variable_scope().get_variable(
        store, "v", [2], tf.int32, None, None, None, False, custom_getter=largest
    )
    assert made.op.name == "v"
    assert seen == [([2], tf.int32, False)]


def test_output_tensors_of_columns() -> None:
    column = tf.feature_column.numeric_column("x")
    parts: dict[object, object] = {}
    whole = tf.feature_column.input_layer({"x": [[1.0], [2.0]]}, [column], cols_to_output_tensors=parts)
    assert parts == {column: whole}


def test_limits_and_kinds_of_dtypes() -> None:
    assert (tf.uint8.limits, tf.float32.limits, tf.bool.limits) == ((0, 255), (0, 1), (0, True))
    assert (tf.qint8.is_quantized, tf.int8.is_quantized) == (True, False)
    assert (tf.string.is_numpy_compatible, tf.resource.is_numpy_compatible) == (True, False)
    assert tf.float32.is_compatible_with("float32")
    assert not tf.float32.is_compatible_with(tf.int32)
    assert tf.as_dtype(np.int8) is tf.int8


def test_seeking_by_the_older_name(tmp_path: Path) -> None:
    path = str(tmp_path / "text")
    with tf.gfile.GFile(path, "w") as file:
        file.write("abcdef")
    with tf.gfile.GFile(path) as file:
        file.seek(position=3)
        assert file.read() == "def"
        with pytest.raises(TypeError, match="offset is None and position is None; one of them is required"):
            file.seek()


def test_operations_are_fetchable_and_variables_handles_not() -> None:
    graph = tf.get_default_graph()
    x = tf.constant(1.0)
    v = tf.Variable(1.0)
    assert graph.is_fetchable(tensor_or_op=x.op)
    assert graph.is_fetchable(x)
    assert not graph.is_fetchable(v.handle)


def test_devices_are_merged() -> None:
    merged = tf.DeviceSpec(job="worker").make_merged_spec(dev=tf.DeviceSpec(task=2))
    assert merged.to_string() == "/job:worker/task:2"
