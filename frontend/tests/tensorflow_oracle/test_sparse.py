"""Functions of sparse tensors and their gradients give what TensorFlow gives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import timberframe as ours

Build = Callable[[Any, Any, Any], Any]
"""Of the library, a sparse 3x4 matrix and a vector of its values."""

CASES: dict[str, Build] = {
    "to_dense": lambda tf, s, v: tf.sparse_tensor_to_dense(s, -1.0),
    "to_dense_0d": lambda tf, s, v: tf.sparse_to_dense([1, 3], [5], v[0], validate_indices=False),
    "to_dense_1d": lambda tf, s, v: tf.sparse_to_dense([0, 1, 2, 4, 6], [7], v, v[0]),
    "reorder": lambda tf, s, v: tf.sparse_reorder(tf.SparseTensor(s.indices[::-1], v * v, s.dense_shape)),
    "retain": lambda tf, s, v: tf.sparse_retain(s, [True, False, True, False, True]),
    "reset_shape": lambda tf, s, v: tf.sparse_reset_shape(s),
    "reset_shape_larger": lambda tf, s, v: tf.sparse_reset_shape(s, [4, 5]),
    "fill_empty_rows": lambda tf, s, v: tf.sparse_fill_empty_rows(s, v[0]),
    "concat": lambda tf, s, v: tf.sparse_concat(1, [s, s]),
    "concat_expanded": lambda tf, s, v: tf.sparse_concat(
        0, [s, tf.sparse_reset_shape(s, [3, 6])], expand_nonconcat_dim=True
    ),
    "split": lambda tf, s, v: tf.sparse_split(sp_input=s, num_split=3, axis=1),
    "slice": lambda tf, s, v: tf.sparse_slice(s, [0, 1], [2, 9]),
    "reshape": lambda tf, s, v: tf.sparse_reshape(s, [2, -1]),
    "transpose": lambda tf, s, v: tf.sparse_transpose(s),
    "transpose_perm": lambda tf, s, v: tf.sparse_transpose(tf.sparse_reshape(s, [3, 2, 2]), [1, 2, 0]),
    "reduce_sum": lambda tf, s, v: tf.sparse_reduce_sum(s, 1),
    "reduce_sum_all": lambda tf, s, v: tf.sparse_reduce_sum(s),
    "reduce_sum_kept": lambda tf, s, v: tf.sparse_reduce_sum(s, [-2], keepdims=True),
    "reduce_sum_none": lambda tf, s, v: tf.sparse_reduce_sum(s, np.zeros(0, np.int32)),
    "reduce_sum_sparse": lambda tf, s, v: tf.sparse_reduce_sum_sparse(s, 1),
    "reduce_max": lambda tf, s, v: tf.sparse_reduce_max(s, 1),
    "reduce_max_sparse": lambda tf, s, v: tf.sparse_reduce_max_sparse(s, 0, keepdims=True),
    "add": lambda tf, s, v: tf.sparse_add(s, tf.sparse_transpose(tf.sparse_reshape(s, [4, 3])), 0.5),
    "add_dense": lambda tf, s, v: tf.sparse_add(s, tf.ones([3, 4]) * v[0]),
    "maximum": lambda tf, s, v: tf.sparse_maximum(s, tf.sparse_transpose(tf.sparse_reshape(s, [4, 3]))),
    "minimum": lambda tf, s, v: tf.sparse_minimum(s, tf.sparse_transpose(tf.sparse_reshape(s, [4, 3]))),
    "softmax": lambda tf, s, v: tf.sparse_softmax(s),
    "matmul": lambda tf, s, v: tf.sparse_tensor_dense_matmul(s, tf.reshape(v[:4] * v[1], [4, 1])),
    "matmul_adjoint": lambda tf, s, v: tf.sparse_tensor_dense_matmul(
        s, tf.reshape(v[:3] * v[1], [1, 3]), adjoint_a=True, adjoint_b=True
    ),
    "matmul_turned": lambda tf, s, v: tf.sparse_tensor_dense_matmul(tf.reshape(v[:3], [1, 3]), s),
    "sparse_matmul": lambda tf, s, v: tf.sparse_matmul(
        tf.reshape(v[:4], [2, 2]), tf.reshape(v[1:], [2, 2]), transpose_b=True, a_is_sparse=True
    ),
    "times": lambda tf, s, v: s * tf.constant([[2.0, 3.0, 4.0, 5.0]]),
    "divided": lambda tf, s, v: s / tf.constant([[2.0], [3.0], [4.0]]),
    "merge": lambda tf, s, v: tf.sparse_merge(tf.SparseTensor(s.indices, [3, 1, 0, 2, 1], s.dense_shape), s, 6),
    "to_indicator": lambda tf, s, v: tf.sparse_to_indicator(
        tf.SparseTensor(s.indices, tf.constant([3, 1, 0, 2, 1], tf.int64), s.dense_shape), 5
    ),
    "from_dense": lambda tf, s, v: tf.sparse.from_dense(tf.constant([[0, 1], [2, 0]])),
    "eye": lambda tf, s, v: tf.sparse.eye(2, 3),
    "expand_dims": lambda tf, s, v: tf.sparse.expand_dims(s, 1),
    "segment_sum": lambda tf, s, v: tf.sparse_segment_sum(tf.reshape(v[:4], [4, 1]), [0, 1, 1, 3], [0, 0, 2, 2]),
    "segment_mean": lambda tf, s, v: tf.sparse_segment_mean(tf.reshape(v[:4], [2, 2]), [0, 1, 1], [0, 0, 2]),
    "segment_sqrt_n": lambda tf, s, v: tf.sparse_segment_sqrt_n(v, [4, 1, 1], [0, 0, 2], num_segments=4),
    "lookup_mean": lambda tf, s, v: lookup(tf, v, None, "mean"),
    "lookup_sum": lambda tf, s, v: lookup(tf, v, [1.0, 2.0, 0.5, 3.0], "sum"),
    "lookup_weighted": lambda tf, s, v: lookup(tf, v, [1.0, 2.0, 0.5, 3.0], "mean"),
    "lookup_sqrtn": lambda tf, s, v: lookup(tf, v, [1.0, 2.0, 0.5, 3.0], "sqrtn"),
    "safe_lookup": lambda tf, s, v: safe_lookup(tf, v, None),
    "safe_lookup_default": lambda tf, s, v: safe_lookup(tf, v, 3),
}  # fmt: skip


def lookup(tf: Any, v: Any, weights: Any, combiner: str) -> Any:
    table = tf.reshape(tf.concat([v, v], 0), [5, 2])
    indices = [[0, 0], [0, 1], [1, 0], [2, 3]]
    ids = tf.SparseTensor(indices, tf.constant([1, 4, 1, 2], tf.int64), [3, 4])
    given = None if weights is None else tf.SparseTensor(indices, weights, [3, 4])
    return tf.nn.embedding_lookup_sparse(table, ids, given, combiner=combiner)


def safe_lookup(tf: Any, v: Any, default: Any) -> Any:
    table = tf.reshape(tf.concat([v, v], 0), [5, 2])
    indices = [[0, 0, 0], [0, 1, 1], [1, 0, 0], [1, 1, 0]]
    ids = tf.SparseTensor(indices, tf.constant([1, -1, 1, 2], tf.int64), [2, 2, 2])
    weights = tf.SparseTensor(indices, [1.0, 1.0, 0.0, 2.0], [2, 2, 2])
    return tf.nn.safe_embedding_lookup_sparse(table, ids, weights, default_id=default)


def results(tf: Any, build: Build) -> list[Any]:
    """Returns the arrays of what a function makes, their static shapes, and its gradient where it has one."""
    with tf.Graph().as_default(), tf.Session() as session:
        v = tf.constant([2.0, -1.0, 0.5, 3.0, -2.0])
        s = tf.SparseTensor([[0, 0], [0, 2], [2, 0], [2, 1], [2, 3]], v, [3, 4])
        made = build(tf, s, v)
        parts = [p for x in (made if isinstance(made, list | tuple) else [made]) for p in dense_parts(x)]
        scaled = [tf.reduce_sum(p * weights(tf, p)) for p in parts if p.dtype == tf.float32]
        try:
            grad = tf.gradients(scaled, v)[0] if scaled else None
        except (LookupError, TypeError, ValueError):  # TensorFlow's own gradient functions raise some of these
            assert tf is not ours
            grad = None
        found = [session.run(p) for p in parts]
        slope = None if grad is None else session.run(tf.convert_to_tensor(grad))
    return [*found, slope]


def weights(tf: Any, x: Any) -> Any:
    """Returns numbers that differ for each element of x."""
    return tf.cos(tf.cast(tf.reshape(tf.range(tf.size(x)), tf.shape(x)), x.dtype))


def dense_parts(x: Any) -> list[Any]:
    return [x.indices, x.values, x.dense_shape] if hasattr(x, "indices") else [x]


@pytest.mark.parametrize("name", CASES)
def test_function_is_tensorflows(tensorflow: Any, name: str) -> None:
    got, want = results(ours, CASES[name]), results(tensorflow, CASES[name])
    assert len(got) == len(want)
    for a, b in zip(got[:-1], want[:-1], strict=True):
        assert np.asarray(a).dtype == np.asarray(b).dtype
        assert np.asarray(a).shape == np.asarray(b).shape
        np.testing.assert_allclose(a, b, rtol=1e-6)
    if want[-1] is not None:
        np.testing.assert_allclose(got[-1], want[-1], rtol=1e-5, atol=1e-6)


def test_graphs_with_sparse_placeholders_have_the_same_names(tensorflow: Any) -> None:
    names = []
    for tf in (ours, tensorflow):
        with tf.Graph().as_default() as graph:
            tf.sparse_placeholder(tf.float32)
            tf.sparse_placeholder(tf.int64, [None, 3], name="given")
            names.append([(op.name, op.type) for op in graph.get_operations()])
    assert names[0] == names[1]


def test_feeds_and_fetches_of_sparse_tensors_are_the_same(tensorflow: Any) -> None:
    found = []
    for tf in (ours, tensorflow):
        with tf.Graph().as_default(), tf.Session() as session:
            x = tf.sparse_placeholder(tf.float32)
            value = tf.SparseTensorValue([[0, 1], [1, 0]], [1.0, 2.0], [2, 3])
            made = session.run([x, tf.sparse_reduce_sum(x, 0)], {x: value})
            found.append([np.asarray(p).tolist() for p in (*made[0], made[1])])
    assert found[0] == found[1]
