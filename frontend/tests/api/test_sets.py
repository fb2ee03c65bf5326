"""Sets along the last dimension of tensors, and what is said of those that do not fit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import timberframe as tf
from timberframe_core.graph.apply import apply_op

A = [[1, 2, 2], [3, 4, 5]]


def run(fetches: Any) -> Any:
    with tf.Session() as session:
        return session.run(fetches)


def sparse(indices: list[list[int]], values: list[int], shape: list[int]) -> tf.SparseTensor:
    """Returns one whose indices only the run knows."""
    known = np.array(indices, np.int64).reshape(-1, len(shape))
    return tf.SparseTensor(tf.placeholder_with_default(known, [None, len(shape)]), values, shape)


def test_the_result_has_each_element_once_and_in_order() -> None:
    union = tf.sets.union(A, [[9, 1], [3, 3]])
    assert union.shape.as_list()[1:] == [None]
    found = run(union)
    assert found.values.tolist() == [1, 2, 9, 3, 4, 5]
    assert found.dense_shape.tolist() == [2, 3]


def test_older_programs_find_sets_among_the_metrics() -> None:
    found = run(tf.contrib.metrics.set_intersection(A, [[9, 1], [3, 3]]))
    assert found.values.tolist() == [1, 3]


def test_sizes_count_each_element_once() -> None:
    assert run(tf.sets.size(sparse([[0, 0], [0, 1], [1, 1]], [1, 1, 3], [3, 3]))).tolist() == [1, 1, 0]


def test_families_of_sets_of_a_large_shape() -> None:
    big = 2**40
    sets = sparse([[5, 7, 0], [big - 1, 0, 3]], [1, 2], [big, big, 4])
    assert run(tf.sets.intersection(sets, sets)).indices.tolist() == [[5, 7, 0], [big - 1, 0, 0]]


def test_indices_out_of_order_are_refused_if_validated() -> None:
    sets = sparse([[1, 0], [0, 1]], [1, 1], [2, 3])
    with pytest.raises(tf.errors.InvalidArgumentError, match="set_indices are not in order, each once"):
        run(tf.sets.size(sets))
    assert run(tf.sets.size(sets, validate_indices=False)).tolist() == [1, 1]


@pytest.mark.parametrize("validate", [True, False])
def test_indices_outside_are_refused(validate: bool) -> None:
    with pytest.raises(tf.errors.InvalidArgumentError, match="outside the shape"):
        run(tf.sets.union(A, sparse([[0, 0], [7, 0]], [1, 1], [2, 3]), validate))


def test_sets_of_other_shapes_are_refused_while_the_graph_is_built() -> None:
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"sets have shapes \(2,\) and \(1,\) but for the last"):
        tf.sets.union(A, [[1]])


def test_sparse_sets_of_other_shapes_are_refused() -> None:
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"sets have shapes \[2\] and \[3\] but for the last"):
        run(tf.sets.union(A, sparse([[0, 0]], [1], [3, 3])))


def test_vectors_are_refused() -> None:
    with pytest.raises(tf.errors.InvalidArgumentError, match="set1 has rank 1; at least 2 is required"):
        tf.sets.union([1], [2])


def test_dtypes_without_sets_are_refused() -> None:
    with pytest.raises(TypeError, match="a has dtype float32; it must be one of int8, "):
        tf.sets.union([[1.0]], [[2.0]])


def test_sets_of_two_dtypes_are_refused() -> None:
    with pytest.raises(TypeError, match="b has dtype int64; it must be int32, as that of a"):
        tf.sets.union([[1]], tf.constant([[1]], tf.int64))


def test_sizes_of_dense_sets_are_refused() -> None:
    with pytest.raises(TypeError, match="a SparseTensor is required"):
        tf.sets.size(A)


def test_unknown_operations_are_refused() -> None:
    with pytest.raises(
        tf.errors.InvalidArgumentError, match="set_operation is 'xor'; it must be a-b, b-a, intersection"
    ):
        apply_op("DenseToDenseSetOperation", [A, A], {"set_operation": "xor"})
