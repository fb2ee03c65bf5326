"""Sparse tensors: what they are made of, feeds and fetches, and what is refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import timberframe as tf

VALUE = tf.SparseTensorValue([[0, 1], [1, 0]], [5.0, 6.0], [2, 3])


def matrix() -> tf.SparseTensor:
    """Returns a matrix of 2x3 with 5 at [0, 1] and 6 at [1, 0]."""
    return tf.SparseTensor.from_value(VALUE)


# The class


def test_static_shape_is_that_of_the_dense_tensor(session: tf.Session) -> None:
    assert matrix().shape.as_list() == [2, 3]


def test_eval_gives_the_three_arrays(session: tf.Session) -> None:
    with session.as_default():
        found = matrix().eval()
    assert [np.asarray(x).tolist() for x in found] == [list(x) for x in VALUE]


def test_consumers_are_those_of_its_parts(session: tf.Session) -> None:
    sparse = matrix()
    dense = tf.sparse_tensor_to_dense(sparse)
    assert sparse.consumers() == [dense.op]


def test_a_sparse_tensor_is_no_tensor(session: tf.Session) -> None:
    with pytest.raises(tf.errors.InvalidTypeError, match=r"tf\.sparse_tensor_to_dense makes one"):
        tf.identity(matrix())


def test_product_with_a_dense_tensor_is_sparse(session: tf.Session) -> None:
    assert session.run(matrix() * tf.constant([[1.0, 2.0, 3.0]])).values.tolist() == [10, 6]


# Feeds


@pytest.mark.parametrize("value", [VALUE, tuple(VALUE), [np.asarray(x) for x in VALUE]])
def test_placeholder_takes_three_arrays(session: tf.Session, value: Any) -> None:
    x = tf.sparse_placeholder(tf.float32)
    assert session.run(tf.sparse_tensor_to_dense(x), {x: value}).tolist() == [[0, 5, 0], [6, 0, 0]]


def test_what_a_session_returns_can_be_fed_again(session: tf.Session) -> None:
    x, y = tf.sparse_placeholder(tf.float32), tf.placeholder(tf.float32)
    total = tf.sparse_reduce_sum(x) * y
    assert session.run(total, {y: 2.0, x: session.run(matrix())}) == 22


def test_any_sparse_tensor_can_be_fed(session: tf.Session) -> None:
    sparse = matrix()
    dense = tf.sparse_tensor_to_dense(sparse)
    assert session.run(dense, {sparse: ([[0, 0], [1, 1]], [1.0, 2.0], [2, 2])}).tolist() == [[1, 0], [0, 2]]


def test_rows_of_a_tensor_can_be_fed(session: tf.Session) -> None:
    rows = tf.IndexedSlices(tf.placeholder(tf.float32, [None, 1]), tf.placeholder(tf.int32, [None]))
    found = session.run(rows, {rows: ([[1.0], [2.0]], [4, 7])})
    assert (found.values.tolist(), found.indices.tolist()) == ([[1], [2]], [4, 7])


def test_callables_take_sparse_tensors(session: tf.Session) -> None:
    x = tf.sparse_placeholder(tf.float32)
    total = session.make_callable(tf.sparse_reduce_sum(x), [x])
    assert [total(VALUE), total(VALUE)] == [11, 11]


def test_explain_takes_sparse_tensors(session: tf.Session) -> None:
    x = tf.sparse_placeholder(tf.float32)
    assert "SparseReduceSum" in str(session.explain(tf.sparse_reduce_sum(x), {x: VALUE}))


def test_shape_of_a_placeholder_is_a_default(session: tf.Session) -> None:
    x = tf.sparse_placeholder(tf.float32, [2, 2])
    assert x.shape.as_list() == [2, 2]
    found = session.run(tf.sparse_tensor_to_dense(x), {x.indices: [[0, 0]], x.values: [1.0]})
    assert found.tolist() == [[1, 0], [0, 0]]


def test_unknown_sizes_of_a_placeholder_stay_unknown(session: tf.Session) -> None:
    assert tf.sparse_placeholder(tf.float32, [None, 3]).shape.as_list() == [None, 3]


@pytest.mark.parametrize("value", [1.0, ([[0]], [1.0])])
def test_feed_of_another_kind_is_refused(session: tf.Session, value: Any) -> None:
    x = tf.sparse_placeholder(tf.float32)
    with pytest.raises(tf.errors.InvalidTypeError, match="a SparseTensorValue, or a tuple of 3 arrays, is required"):
        session.run(x, {x: value})


# Gradients


def test_training_changes_the_rows_that_ids_name(session: tf.Session) -> None:
    table = tf.Variable(np.ones((4, 2), np.float32))
    ids = tf.SparseTensor([[0, 0], [1, 0]], tf.constant([1, 3], tf.int64), [2, 1])
    loss = tf.reduce_sum(tf.nn.embedding_lookup_sparse(table, ids, None, combiner="sum"))
    step = tf.train.GradientDescentOptimizer(0.5).minimize(loss)
    session.run(tf.global_variables_initializer())
    session.run(step)
    assert session.run(table).tolist() == [[1, 1], [0.5, 0.5], [1, 1], [0.5, 0.5]]


def test_weights_of_a_sparse_product_are_trained(session: tf.Session) -> None:
    w = tf.Variable(np.zeros((3, 1), np.float32))
    loss = tf.reduce_sum(tf.sparse_tensor_dense_matmul(matrix(), w))
    session.run(tf.global_variables_initializer())
    assert session.run(tf.gradients(loss, w)[0]).ravel().tolist() == [6, 5, 0]


@pytest.mark.parametrize(("a", "b"), [(False, False), (True, False), (False, True), (True, True)])
def test_gradients_of_complex_products_are_conjugates(session: tf.Session, a: bool, b: bool) -> None:
    values = tf.constant([1 + 2j, 3 - 1j, 2j], tf.complex128)
    sparse = tf.SparseTensor([[0, 0], [0, 1], [1, 1]], values, [2, 2])
    dense = tf.constant([[1j, 2.0], [3 + 1j, 1.0]], tf.complex128)
    product = tf.sparse_tensor_dense_matmul(sparse, dense, adjoint_a=a, adjoint_b=b)
    whole = tf.sparse_tensor_to_dense(sparse)
    same = tf.matmul(whole, dense, adjoint_a=a, adjoint_b=b)
    weights = tf.constant([[1.0, 2j], [3.0, 1 - 1j]], tf.complex128)
    mine, theirs = (tf.gradients(x, [values, dense], grad_ys=weights) for x in (product, same))
    for x, y in zip(session.run([product, *mine]), session.run([same, *theirs]), strict=True):
        np.testing.assert_allclose(x, y)


# In other functions


def test_parsed_features_of_varying_length_become_dense(session: tf.Session) -> None:
    feature = tf.train.Feature(int64_list=tf.train.Int64List(value=[3, 4]))
    one = tf.train.Example(features=tf.train.Features(feature={"n": feature})).SerializeToString()
    parsed = tf.parse_example([one, tf.train.Example().SerializeToString()], {"n": tf.VarLenFeature(tf.int64)})
    assert session.run(tf.sparse_tensor_to_dense(parsed["n"], default_value=-1)).tolist() == [[3, 4], [-1, -1]]


def test_split_strings_become_dense(session: tf.Session) -> None:
    found = session.run(tf.sparse_tensor_to_dense(tf.string_split(["a b", "c"]), default_value=""))
    assert found.tolist() == [[b"a", b"b"], [b"c", b""]]


def test_mask_leaves_out_rows(session: tf.Session) -> None:
    slices = tf.IndexedSlices(tf.constant([[1.0], [2.0], [3.0]]), tf.constant([4, 7, 9]))
    found = session.run(tf.sparse_mask(slices, [7]))
    assert (found.values.tolist(), found.indices.tolist()) == ([[1], [3]], [4, 9])


def test_merge_of_several_ids_has_as_many_dimensions(session: tf.Session) -> None:
    ids = [tf.SparseTensor([[0, 0], [1, 0]], x, [2, 1]) for x in ([1, 0], [2, 3])]
    merged = tf.sparse_merge(ids, tf.SparseTensor([[0, 0], [1, 0]], [5.0, 6.0], [2, 1]), [2, 4])
    assert session.run(tf.sparse_tensor_to_dense(merged))[[0, 1], [1, 0], [2, 3]].tolist() == [5, 6]


def test_empty_sparse_tensors(session: tf.Session) -> None:
    empty = tf.SparseTensor(np.zeros((0, 2), np.int64), np.zeros(0, np.float32), [2, 2])
    made = [
        tf.sparse_tensor_to_dense(empty), tf.sparse_reduce_sum(empty), tf.sparse_reorder(empty),
        tf.sparse_softmax(empty), tf.sparse_tensor_dense_matmul(empty, tf.ones([2, 2])), tf.sparse_add(empty, empty),
        tf.sparse_concat(0, [empty, empty]), tf.sparse_reshape(empty, [4, 1]), tf.sparse_fill_empty_rows(empty, 1.0)[0],
        tf.sparse_reduce_max_sparse(empty, 0), tf.sparse_maximum(empty, empty), tf.sparse_slice(empty, [0, 0], [1, 1]),
    ]  # fmt: skip
    found = session.run(made)
    assert found[0].tolist() == [[0, 0], [0, 0]]
    assert found[8].indices.tolist() == [[0, 0], [1, 0]]


# What is refused


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: tf.sparse_to_dense([[1], [0]], [3], [1, 2]), r"sparse_indices\[1\] is \[0\] after \[1\]"),
        (lambda: tf.sparse_to_dense([[1], [1]], [3], [1, 2]), "each once"),
        (lambda: tf.sparse_to_dense([[3]], [3], [1]), r"sparse_indices\[0\] is \[3\], outside the shape \[3\]"),
        (lambda: tf.sparse_to_dense([[0]], [-1], [1]), "sizes must not be negative"),
        (lambda: tf.sparse_reshape(matrix(), [4, 2]), "has 8 elements; 6, of"),
        (lambda: tf.sparse_reshape(matrix(), [-1, -1]), "one size at most may be -1"),
        (lambda: tf.sparse_concat(0, [matrix(), tf.sparse_reshape(matrix(), [3, 2])]), "they must agree but for"),
        (lambda: tf.sparse_concat(2, [matrix(), matrix()]), "concat_dim is 2 for tensors of rank 2"),
        (lambda: tf.sparse_split(sp_input=matrix(), num_split=3, axis=0), "num_split is 3 for a dimension of size 2"),
        (lambda: tf.sparse_slice(matrix(), [0], [1]), "2, the rank, are required"),
        (lambda: tf.sparse_reduce_sum(matrix(), [2]), "reduction_axes has 2"),
        (lambda: tf.sparse_add(matrix(), tf.sparse_reshape(matrix(), [3, 2])), "they must be equal"),
        (lambda: tf.sparse_tensor_dense_matmul(matrix(), tf.ones([2, 2])), "a has 3 columns and b 2 rows"),
        (lambda: matrix() * tf.ones([3, 3]), "does not broadcast"),
        (lambda: tf.sparse_reset_shape(matrix(), [2, 2]), "no size may be smaller"),
        (lambda: tf.sparse_segment_sum([1.0], [1], [0]), "indices has 1 for 1 rows"),
        (lambda: tf.sparse_segment_sum([1.0], [0, 0], [1, 0]), "not in order"),
        (lambda: tf.SparseTensor([[0, 1, 2]], [1.0], [2, 3]) * 2.0, "columns"),
        (lambda: tf.sparse_split(matrix(), num_split=1), "each by its name"),
        (lambda: tf.nn.embedding_lookup_sparse(tf.ones([2, 2]), matrix(), None, combiner="max"), "combiner is 'max'"),
        (lambda: tf.sparse_merge([matrix()], matrix(), [1, 2]), "equally many are required"),
    ],
)  # fmt: skip
def test_wrong_arguments_are_refused(session: tf.Session, make: Callable[[], Any], said: str) -> None:
    with pytest.raises(tf.errors.InvalidArgumentError, match=said):
        session.run(make())


@pytest.mark.parametrize(
    "make",
    [
        lambda: tf.sparse_reorder(tf.constant(1)),
        lambda: tf.sparse_add(tf.constant(1), tf.constant(2)),
        lambda: tf.sparse_tensor_to_dense([1]),
        lambda: tf.sparse_minimum(matrix(), [1]),
    ],
)
def test_dense_tensors_are_refused(session: tf.Session, make: Callable[[], Any]) -> None:
    with pytest.raises(tf.errors.InvalidTypeError, match="SparseTensor"):
        make()


def test_shape_size_and_rank_are_those_of_the_dense_tensor(session: tf.Session) -> None:
    assert session.run(tf.shape(matrix())).tolist() == [2, 3]
    assert session.run([tf.size(matrix()), tf.rank(matrix())]) == [6, 2]
    assert tf.size(matrix(), out_type=tf.int64).dtype is tf.int64
    unknown = tf.sparse_placeholder(tf.float32)
    assert session.run([tf.size(unknown), tf.rank(unknown)], {unknown: VALUE}) == [6, 2]
