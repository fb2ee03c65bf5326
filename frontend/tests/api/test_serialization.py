"""Strings of tensors are read again, and refused where they are damaged or of another dtype."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import timberframe as tf


def run(fetches: Any) -> Any:
    with tf.Session() as session:
        return session.run(fetches)


def test_a_tensor_is_read_again() -> None:
    x = tf.constant([[1.0, -0.0], [float("inf"), 3.0]])
    text = tf.serialize_tensor(x)
    assert text.shape == ()
    assert run(tf.io.parse_tensor(text, tf.float32)).tobytes() == run(x).tobytes()


def test_datasets_of_strings_are_parsed() -> None:
    texts = [run(tf.io.serialize_tensor(tf.fill([n], n))) for n in (1, 3)]
    dataset = tf.data.Dataset.from_tensor_slices(texts).map(lambda text: tf.parse_tensor(text, tf.int32))
    element = dataset.make_one_shot_iterator().get_next()
    with tf.Session() as session:
        assert [session.run(element).tolist() for _ in texts] == [[1], [3, 3, 3]]


def test_another_dtype_is_refused() -> None:
    text = tf.serialize_tensor([1.0])
    with pytest.raises(
        tf.errors.InvalidArgumentError, match="serialized is a tensor of dtype float32; it must be int32"
    ):
        run(tf.parse_tensor(text, tf.int32))


def test_damaged_bytes_are_refused() -> None:
    with pytest.raises(tf.errors.InvalidArgumentError, match="do not parse as TensorProto"):
        run(tf.parse_tensor(b"\x0a\xff", tf.int32))


def test_several_strings_are_refused() -> None:
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"serialized has shape \(2,\); it must be a scalar"):
        run(tf.parse_tensor(["a", "b"], tf.int32))


def test_rows_of_a_sparse_tensor_are_read_again() -> None:
    sparse = tf.SparseTensor([[0, 1], [2, 0], [2, 3]], [1, 2, 3], [4, 5])
    rows = tf.serialize_many_sparse(sparse)
    again = tf.deserialize_many_sparse(rows, tf.int32, rank=2)
    assert rows.shape.as_list() == [None, 3]
    assert again.indices.shape.as_list() == [None, 2]
    assert [x.tolist() for x in run(again)] == [x.tolist() for x in run(sparse)]


def test_sparse_tensors_of_several_sizes_become_one() -> None:
    first, second = tf.SparseTensor([[1]], ["a"], [3]), tf.SparseTensor([[5]], ["b"], [6])
    rows = tf.stack([tf.serialize_sparse(first), tf.serialize_sparse(second)])
    found = run(tf.deserialize_many_sparse(rows, tf.string))
    assert found.indices.tolist() == [[0, 1], [1, 5]]
    assert found.dense_shape.tolist() == [2, 6]


def test_strings_of_sparse_tensors_with_more_dimensions() -> None:
    one = run(tf.serialize_sparse(tf.SparseTensor([[1]], [7], [3])))
    none = run(tf.serialize_sparse(tf.SparseTensor(np.zeros((0, 1), np.int64), tf.constant([], tf.int32), [3])))
    indices, values, shape = run(
        tf.raw_ops.DeserializeSparse(serialized_sparse=np.array([[none, none], [none, one]]), dtype=tf.int32)
    )
    assert (indices.tolist(), values.tolist(), shape.tolist()) == ([[1, 1, 1]], [7], [2, 2, 3])


def test_sparse_tensors_of_several_ranks_are_refused() -> None:
    rows = tf.stack(
        [
            tf.serialize_sparse(tf.SparseTensor([[1]], [7], [3])),
            tf.serialize_sparse(tf.SparseTensor([[1, 0]], [7], [3, 3])),
        ]
    )
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"have ranks \[1, 2\]; all must have one rank"):
        run(tf.deserialize_many_sparse(rows, tf.int32))


def test_rows_outside_the_shape_are_refused() -> None:
    sparse = tf.SparseTensor(tf.placeholder_with_default(np.array([[4, 0]]), [1, 2]), [1], [4, 5])
    with pytest.raises(tf.errors.InvalidArgumentError, match="outside the shape"):
        run(tf.serialize_many_sparse(sparse))


def test_variants_are_refused() -> None:
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"out_type is variant; .* it must be string"):
        tf.serialize_sparse(tf.SparseTensor([[1]], [7], [3]), out_type=tf.variant)
