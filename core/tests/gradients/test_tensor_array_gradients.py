"""Gradients of tf.TensorArray: elements of different lengths, growing arrays, indices that come twice."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import timberframe as tf
from timberframe_core.graph.apply import apply_op

ROWS = np.linspace(-0.8, 1.2, 12).reshape(6, 2)
LENGTHS = [[1, 2, 3], [0, 2, 4], [2, 2, 2]]
SHAPES = [[6, 2], [None, 2], [None, None]]

Check = Callable[..., None]


def pieces(x: Any, lengths: Any, **options: Any) -> tf.TensorArray:
    return tf.TensorArray(tf.float64, 3, **options).split(x * x, lengths)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("lengths", LENGTHS)
def test_pieces_that_are_read(check_gradients: Check, lengths: list[int], shape: list[int | None]) -> None:
    def build(x: Any) -> Any:
        array = pieces(x, lengths)
        return sum((i + 1) * tf.reduce_sum(array.read(i) ** 3) for i in range(3))

    check_gradients(build, ROWS, shape)


@pytest.mark.parametrize("lengths", LENGTHS)
def test_one_piece_alone(check_gradients: Check, lengths: list[int]) -> None:
    check_gradients(lambda x: pieces(x, lengths).read(1) ** 3, ROWS)


@pytest.mark.parametrize("options", [{"dynamic_size": True}, {"infer_shape": False}], ids=str)
def test_pieces_whose_lengths_are_fed(check_gradients: Check, options: dict[str, bool]) -> None:
    def build(x: Any) -> Any:
        lengths = tf.placeholder_with_default(np.array([3, 1, 2]), [None])
        array = pieces(x, lengths, **options)
        return array.concat() * tf.reduce_sum(array.read(2))

    check_gradients(build, ROWS, [None, 2])


def test_pieces_read_in_a_loop(check_gradients: Check) -> None:
    def build(x: Any) -> Any:
        array = pieces(x, [1, 2, 3])
        start = (0, tf.constant(0.5, tf.float64))
        return tf.while_loop(
            lambda i, _: i < 3, lambda i, v: (i + 1, v + v * tf.reduce_sum(tf.sin(array.read(i)))), start
        )[1]

    check_gradients(build, ROWS)


@pytest.mark.parametrize("limit", [-99.0, 99.0], ids=["then", "else"])
def test_pieces_read_in_a_branch(check_gradients: Check, limit: float) -> None:
    def build(x: Any) -> Any:
        array = pieces(x, [1, 2, 3])
        return tf.cond(
            tf.reduce_sum(x) > limit,
            lambda: tf.reduce_sum(tf.sin(array.read(1))),
            lambda: tf.reduce_sum(array.concat() ** 2),
        )

    check_gradients(build, ROWS)


def test_elements_of_different_lengths_written_in_a_loop(check_gradients: Check) -> None:
    def build(x: Any) -> Any:
        array = tf.TensorArray(tf.float64, 3, infer_shape=False)
        array = tf.while_loop(lambda i, _: i < 3, lambda i, a: (i + 1, a.write(i, tf.sin(x[: i + 1]))), (0, array))[1]
        return tf.sin(array.concat()) * array.read(0)

    check_gradients(build, ROWS)


@pytest.mark.parametrize("element_shape", [None, [2]])
def test_array_that_is_read_while_it_is_written(check_gradients: Check, element_shape: list[int] | None) -> None:
    def build(x: Any) -> Any:
        def body(i: Any, v: Any, array: tf.TensorArray) -> Any:
            new = tf.tanh(v * x[i]) * tf.cond(i > 0, lambda: array.read(i - 1), lambda: x[2])
            new.set_shape([2])
            return i + 1, new, array.write(i, new)

        start = (0, x[0], tf.TensorArray(tf.float64, 0, dynamic_size=True, element_shape=element_shape))
        _, last, array = tf.while_loop(lambda i, *_: i < 3, body, start)
        return array.read(1) * last

    check_gradients(build, ROWS)


def test_array_that_each_iteration_replaces(check_gradients: Check) -> None:
    def body(x: Any) -> Callable[..., Any]:
        def one(i: Any, array: tf.TensorArray) -> Any:
            new = tf.TensorArray(tf.float64, i + 1, dynamic_size=True, element_shape=[2])
            return i + 1, new.write(i, tf.sin(array.read(0) * x[i])).write(0, x[i] * x[i])

        return one

    def build(x: Any) -> Any:
        array = tf.TensorArray(tf.float64, 6, dynamic_size=True).unstack(x)
        return tf.while_loop(lambda i, _: i < 3, body(x), (0, array))[1].stack() ** 2

    check_gradients(build, ROWS)


def test_value_of_another_shape_that_the_first_iteration_replaces(check_gradients: Check) -> None:
    def build(x: Any) -> Any:
        shapes = (tf.TensorShape([]), tf.TensorShape([None, 2]))
        start = (0, x * 2)
        return tf.while_loop(lambda i, _: i < 3, lambda i, _: (i + 1, tf.sin(x[: i + 1])), start, shapes)[1]

    check_gradients(build, ROWS)


def test_element_gathered_twice_gets_both_gradients(check_gradients: Check) -> None:
    check_gradients(lambda x: tf.TensorArray(tf.float64, 6).unstack(x).gather([1, 1, 3]) ** 3, ROWS)


def test_array_that_is_stacked_twice_gets_both_gradients(check_gradients: Check) -> None:
    """Both gradients are one node when equal nodes are merged, and one list is added to itself."""

    def build(x: Any) -> Any:
        array = tf.TensorArray(tf.float64, 6).unstack(x * x)
        return array.stack() + array.stack()

    check_gradients(build, ROWS)


def test_row_that_another_one_overwrites_has_no_gradient(check_gradients: Check) -> None:
    check_gradients(lambda x: tf.TensorArray(tf.float64, 4).unstack(x[2:]).scatter([1, 1], x[:2]).stack() ** 3, ROWS)


@pytest.mark.parametrize("shape", SHAPES)
def test_rows_scattered_into_an_array_that_grows(check_gradients: Check, shape: list[int | None]) -> None:
    def build(x: Any) -> Any:
        return tf.TensorArray(tf.float64, 0, dynamic_size=True).scatter([5, 2], x[:2] * x[1:3]).stack() ** 3

    check_gradients(build, ROWS, shape)


def test_elements_that_were_never_written_do_not_stop_a_gradient(check_gradients: Check) -> None:
    def build(x: Any) -> Any:
        array = tf.TensorArray(tf.float64, 3, element_shape=[2, 2])
        return tf.sin(array.write(0, x[:2] * x[:2]).write(2, x[3:5] ** 3).concat()) + 0.1

    check_gradients(build, ROWS)


def element_shape(array: tf.TensorArray) -> Any:
    return apply_op("TensorListElementShape", [array.flow], {"shape_type": "int32"})


def test_shape_of_elements_is_what_the_list_was_declared_with() -> None:
    array = tf.TensorArray(tf.float64, 2, infer_shape=False, element_shape=[None]).write(0, [1.0, 2.0])
    with tf.Session() as session:
        assert session.run(element_shape(array)).tolist() == [-1]


def test_shape_of_elements_may_be_a_scalar_whatever_is_known_of_them() -> None:
    """-1, where the list was declared with nothing."""
    assert element_shape(tf.TensorArray(tf.float64, 2, element_shape=[None])).static_shape is None
    with tf.Session() as session:
        assert session.run(element_shape(tf.TensorArray(tf.float64, 2))).shape == ()
