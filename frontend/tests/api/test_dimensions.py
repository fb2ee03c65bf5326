"""Dimension and TensorShape, as TensorFlow 1's programs use them."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import timberframe as tf
from timberframe import Dimension

UNKNOWN = Dimension(None)


def test_size_of_a_shape_is_a_dimension() -> None:
    shape = tf.placeholder(tf.float32, [None, 3]).get_shape()
    assert [shape[0].value, shape[1].value] == [None, 3]
    assert [d.value for d in shape.dims] == [None, 3]
    assert shape.as_list() == [None, 3]


@pytest.mark.parametrize(
    ("made", "value"),
    [
        (lambda: Dimension(3) + 2, 5), (lambda: 2 + Dimension(3), 5), (lambda: Dimension(3) - 1, 2),
        (lambda: 7 - Dimension(3), 4), (lambda: Dimension(3) * Dimension(4), 12), (lambda: 9 // Dimension(2), 4),
        (lambda: Dimension(9) // 2, 4), (lambda: Dimension(9) % 4, 1), (lambda: UNKNOWN + 1, None),
        (lambda: 4 * UNKNOWN, None), (lambda: Dimension(None).merge_with(3), 3), (lambda: Dimension(3.0), 3),
        (lambda: Dimension(np.int64(3)), 3),
    ],
)  # fmt: skip
def test_arithmetic_gives_dimensions(made: Callable[[], Dimension], value: int | None) -> None:
    result = made()
    assert isinstance(result, Dimension)
    assert result.value == value


def test_known_dimensions_compare_like_integers() -> None:
    assert Dimension(3) == 3
    assert Dimension(3) != 4
    assert 2 < Dimension(3) <= 3
    assert {Dimension(3): "x"}[3] == "x"


def test_comparison_with_an_unknown_dimension_is_none() -> None:
    assert [UNKNOWN == 3, UNKNOWN != 3, UNKNOWN < 3, UNKNOWN == UNKNOWN] == [None] * 4
    assert Dimension(3) != "text"


def test_dimension_serves_as_an_integer() -> None:
    assert list(range(Dimension(2))) == [0, 1]
    assert np.zeros((Dimension(2), 3)).shape == (2, 3)
    assert np.asarray([Dimension(2), 3]).tolist() == [2, 3]
    assert f"{Dimension(2)}" == "2"
    assert float(Dimension(2)) == 2.0


def test_dimension_goes_into_shapes_and_values() -> None:
    x = tf.placeholder(tf.float32, [None, 3])
    y = tf.reshape(tf.zeros([x.shape[1], 4]), [-1, x.shape[1] * 2])
    assert y.shape.as_list() == [2, 6]
    assert tf.placeholder(tf.float32, [x.shape[0], 2]).shape.as_list() == [None, 2]
    with tf.Session() as session:
        assert session.run(tf.constant(x.shape[1])) == 3
        assert session.run(tf.stack([tf.shape(x)[0], x.shape[1]]), {x: np.zeros((2, 3))}).tolist() == [2, 3]


def test_dimension_serves_as_a_number_of_parts_and_of_rows() -> None:
    size = tf.placeholder(tf.float32, [2, 3]).shape[0]
    x = tf.zeros([2, 3])
    assert [part.shape.as_list() for part in tf.split(x, size, 0)] == [[1, 3], [1, 3]]
    assert tf.train.batch([x[0]], size).shape.as_list() == [2, 3]
    assert tf.nn.rnn_cell.BasicRNNCell(4).zero_state(size, tf.float32).shape.as_list() == [2, 4]
    assert tf.image.resize_image_with_crop_or_pad(tf.zeros([4, 4, 1]), size, size).shape.as_list() == [2, 2, 1]


def test_dimension_survives_pickling() -> None:
    assert pickle.loads(pickle.dumps(Dimension(3))).value == 3


def test_dimension_value_takes_all_kinds() -> None:
    assert [tf.dimension_value(x) for x in (Dimension(3), 4, None)] == [3, 4, None]


def test_compat_gives_sizes_of_shapes() -> None:
    assert tf.compat.dimension_value(tf.compat.dimension_at_index([2, None], 0)) == 2
    assert tf.compat.dimension_at_index(None, 3).value is None


@pytest.mark.parametrize(
    ("wrong", "error", "said"),
    [
        (lambda: Dimension(-1), tf.errors.InvalidArgumentError, "it must not be negative"),
        (lambda: Dimension("x"), tf.errors.InvalidTypeError, "an integer, or None"),
        (lambda: Dimension(2.5), tf.errors.InvalidTypeError, "an integer, or None"),
        (lambda: Dimension(3) / 2, tf.errors.InvalidTypeError, "use // for sizes"),
        (lambda: 2 / Dimension(3), tf.errors.InvalidTypeError, "use // for sizes"),
        (lambda: int(UNKNOWN), tf.errors.InvalidTypeError, r"tf\.shape gives it in the run"),
        (lambda: Dimension(2).merge_with(3), tf.errors.InvalidArgumentError, "not compatible"),
        (lambda: tf.constant([UNKNOWN, 2]), tf.errors.InvalidTypeError, r"tf\.shape gives it in the run"),
        (lambda: tf.TensorShape([2]).assert_has_rank(1 + 1), tf.errors.InvalidArgumentError, "it must have rank 2"),
        (lambda: tf.TensorShape([2]).assert_same_rank([1, 2]), tf.errors.InvalidArgumentError, "it must have rank 2"),
        (lambda: tf.TensorShape([2, 2]).with_rank_at_most(1), tf.errors.InvalidArgumentError, "rank at most 1"),
    ],
)  # fmt: skip
def test_wrong_use_is_refused(wrong: Callable[[], Any], error: type[Exception], said: str) -> None:
    with pytest.raises(error, match=said):
        wrong()


def test_shapes_have_tensorflows_methods() -> None:
    shape = tf.TensorShape([None, 3])
    assert shape.most_specific_compatible_shape([2, 4]).as_list() == [None, None]
    assert ([2] + shape).as_list() == [2, None, 3]
    assert [d.size for d in shape.as_proto().dim] == [-1, 3]
    assert tf.TensorShape(None)[0].value is None
