"""Constants, placeholders, scopes, groups and collections."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import timberframe as tf

pytestmark = pytest.mark.usefixtures("graph")


@pytest.mark.parametrize(
    ("value", "dtype"),
    [(1, tf.int32), (2**40, tf.int64), (1.5, tf.float32), (True, tf.bool), ("a", tf.string), (1j, tf.complex128)],
)
def test_constant_chooses_the_dtype(value: object, dtype: tf.DType) -> None:
    assert tf.constant(value).dtype is dtype


def test_an_empty_graph_is_true() -> None:
    assert tf.Graph()


def test_constant_keeps_the_dtype_of_an_array() -> None:
    assert tf.constant(np.zeros(2)).dtype is tf.float64


@pytest.mark.parametrize(
    "make",
    [tf.constant, tf.convert_to_tensor, lambda x: tf.constant_initializer(x)(x.shape)],
    ids=["constant", "conversion", "initializer"],
)
def test_constant_stays_when_its_array_changes(make: Callable[[np.ndarray], tf.Tensor]) -> None:
    array = np.array([1.0, 2.0], np.float32)
    tensor = make(array)
    array[:] = 9.0
    with tf.Session() as session:
        assert session.run(tensor).tolist() == [1.0, 2.0]


@pytest.mark.parametrize("known", [lambda: tf.constant([1, 2]), lambda: tf.shape(tf.zeros([1, 2]))])
def test_constant_stays_when_its_static_value_changes(known: Callable[[], tf.Tensor]) -> None:
    tensor = known()
    tf.get_static_value(tensor)[:] = 9
    assert tf.get_static_value(tensor).tolist() == [1, 2]


def test_constant_repeats_the_last_value_into_its_shape() -> None:
    assert tf.get_static_value(tf.constant([1, 2], shape=[2, 2])).tolist() == [[1, 2], [2, 2]]


def test_constant_with_verified_shape_must_have_it() -> None:
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"value has shape \(2,\); it must have \(2, 2\)"):
        tf.constant([1, 2], shape=[2, 2], verify_shape=True)


def test_constant_with_too_many_values_is_refused() -> None:
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"value has 3 elements; 1 to 2 suit shape \(2,\)"):
        tf.constant([1, 2, 3], shape=[2])


def test_placeholder_with_default_takes_the_shape_it_is_given() -> None:
    assert tf.placeholder_with_default([1.0, 2.0], [None]).shape.as_list() == [None]


def test_static_value_of_shape_arithmetic_is_known() -> None:
    x = tf.placeholder(tf.float32, [2, None, 3])
    shape = tf.convert_to_tensor([tf.constant(2), 5])
    assert tf.get_static_value(shape).tolist() == [2, 5]
    assert tf.get_static_value(x) is None


def test_group_waits_for_all() -> None:
    a, b = tf.constant(1), tf.constant(2)
    assert tf.group(a, [b.op]).control_inputs == (a.op, b.op)


def test_tuple_gates_every_tensor() -> None:
    a, b = tf.constant(1), tf.constant(2)
    gated = tf.tuple([a, None, b])
    assert gated[1] is None
    assert gated[0].op.control_inputs[0].control_inputs == (a.op, b.op)


def test_name_scope_uses_its_default_name(graph: tf.Graph) -> None:
    with tf.name_scope(None, "layer"):
        assert tf.constant(1, name="c").name == "layer/c:0"


def test_name_scope_is_entered_again_with_a_slash() -> None:
    with tf.name_scope("a") as scope:
        pass
    with tf.name_scope(scope):
        assert tf.constant(1, name="c").name == "a/c:0"


def test_collections_filter_by_scope(graph: tf.Graph) -> None:
    a, b = tf.constant(1, name="x/a"), tf.constant(1, name="y/b")
    tf.add_to_collections(["k", "l"], a)
    tf.add_to_collection("k", b)
    assert tf.get_collection("k", "x/") == [a]
    assert tf.get_collection("k") == [a, b]


def test_indexed_slices_become_dense() -> None:
    slices = tf.IndexedSlices(tf.constant([[1.0, 2.0]]), tf.constant([3]), tf.constant([5, 2]))
    assert tf.convert_to_tensor(slices).shape.as_list() == [5, 2]
    assert slices.shape.as_list() == [5, 2]


def test_indexed_slices_without_dense_shape_stay_sparse() -> None:
    slices = tf.IndexedSlices(tf.constant([1.0]), tf.constant([3]))
    with pytest.raises(tf.errors.InvalidArgumentError, match="has no dense_shape"):
        tf.convert_to_tensor(slices)


def test_is_tensor() -> None:
    assert tf.is_tensor(tf.constant(1))
    assert tf.is_tensor(tf.Variable(1))
    assert not tf.is_tensor(1)


def test_default_graph_survives_a_second_entry_inside_another() -> None:
    outer, inner = tf.Graph(), tf.Graph()
    with outer.as_default(), inner.as_default():
        with outer.as_default():
            pass
        assert tf.get_default_graph() is inner
