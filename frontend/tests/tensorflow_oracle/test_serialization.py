"""Strings of tensors are TensorFlow's, and each side reads those of the other."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import timberframe

TENSORS = {
    "matrix": np.arange(6, dtype=np.float32).reshape(2, 3),
    "repeated": np.ones((2, 2), np.int32),
    "scalar": np.array(2.5),
    "empty": np.zeros((0, 3), np.int64),
    "half": np.array([1, 2.5], np.float16),
    "complex": np.array([1 + 2j], np.complex64),
    "bool": np.array([True, False]),
    "strings": np.array([["a", "bcd"], ["", "ä"]], object),
}


def run(tf: Any, build: Any) -> Any:
    with tf.Graph().as_default() as graph, tf.Session(graph=graph) as session:
        return session.run(build())


@pytest.mark.parametrize("name", TENSORS)
def test_bytes_of_tensors(tensorflow: Any, name: str) -> None:
    made = [
        run(tf, lambda tf=tf: tf.io.serialize_tensor(tf.constant(TENSORS[name]))) for tf in (tensorflow, timberframe)
    ]
    assert made[0] == made[1]
    dtype = "string" if TENSORS[name].dtype.kind == "O" else TENSORS[name].dtype
    read = [run(tf, lambda tf=tf: tf.parse_tensor(made[0], tf.as_dtype(dtype))) for tf in (tensorflow, timberframe)]
    assert read[0].dtype == read[1].dtype
    np.testing.assert_array_equal(*read)


@pytest.mark.parametrize("function", ["serialize_sparse", "serialize_many_sparse"])
@pytest.mark.parametrize("values", [[1.5, -2.0, 3.0], ["a", "", "bc"]], ids=["numbers", "strings"])
def test_both_read_sparse_tensors_of_both(tensorflow: Any, function: str, values: list[Any]) -> None:
    dtype = "float32" if isinstance(values[0], float) else "string"

    def write(tf: Any) -> Any:
        return getattr(tf, function)(tf.SparseTensor([[0, 1], [2, 0], [2, 3]], values, [4, 5]))

    def read(tf: Any, strings: np.ndarray) -> Any:
        return tf.deserialize_many_sparse(strings, tf.as_dtype(dtype))

    sides = tensorflow, timberframe
    written = [run(tf, lambda tf=tf: write(tf)).reshape(-1, 3) for tf in sides]
    want, *others = [run(tf, lambda tf=tf, x=x: read(tf, x)) for tf in sides for x in written]
    for found in others:
        assert [part.tolist() for part in found] == [part.tolist() for part in want]
