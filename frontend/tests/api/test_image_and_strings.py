"""tf.image, tf.strings, sparse tensors and histograms: what the functions build and refuse."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import timberframe as tf

PIXELS = np.arange(12, dtype=np.uint8).reshape(1, 2, 2, 3)


def test_images_of_the_wanted_size_come_back_as_they_are(session: tf.Session) -> None:
    images = tf.constant(PIXELS)
    assert tf.image.resize_images(images, [2, 2]) is images


def test_one_image_stays_one_image(session: tf.Session) -> None:
    assert tf.image.resize_images(PIXELS[0], [4, 5]).shape == (4, 5, 3)


def test_size_may_be_fed(session: tf.Session) -> None:
    size = tf.placeholder(tf.int32, [2])
    assert session.run(tf.image.resize_images(PIXELS, size), {size: [1, 7]}).shape == (1, 1, 7, 3)


def test_aspect_ratio_is_preserved_on_request(session: tf.Session) -> None:
    found = session.run(tf.image.resize_images(PIXELS, [9, 4], preserve_aspect_ratio=True))
    assert found.shape == (1, 4, 4, 3)


@pytest.mark.parametrize(
    ("images", "size", "method", "message"),
    [
        (np.zeros((2, 2)), [1, 1], 0, r"images has shape \(2, 2\); its rank must be 3 or 4"),
        (PIXELS, [1, 2, 3], 0, r"size has shape \(3,\); it must be \(2,\)"),
        (PIXELS, [1, 2], 9, r"method is 9; it must be one of \[0, 1, 2, 3\]"),
    ],
)
def test_bad_arguments_of_resize_images(session: tf.Session, images: Any, size: Any, method: int, message: str) -> None:
    with pytest.raises(tf.errors.InvalidArgumentError, match=message):
        tf.image.resize_images(images, size, method)


def test_colours_of_integer_images_stay_integers(session: tf.Session) -> None:
    found = session.run(tf.image.adjust_hue(PIXELS * 20, 1.0))
    assert found.dtype == np.uint8
    assert found.tolist() == (PIXELS * 20).tolist()


def test_second_gradient_of_crops_by_the_image(session: tf.Session) -> None:
    image = tf.placeholder(tf.float32, [1, 3, 3, 1])
    crops = tf.image.crop_and_resize(image, [[0.1, 0.1, 0.8, 0.8]], [0], [2, 2])
    (first,) = tf.gradients(crops * crops, image)
    (second,) = tf.gradients(first, image)
    total = session.run([tf.reduce_sum(second), tf.reduce_sum(first)], {image: np.ones((1, 3, 3, 1))})
    np.testing.assert_allclose(total, [8, 8], rtol=1e-6)  # each of the four crops is a weighted mean


def test_gradient_of_boxes_is_the_slope(session: tf.Session) -> None:
    boxes = tf.placeholder(tf.float32, [1, 4])
    image = np.sin(np.arange(30.0)).reshape(1, 5, 6, 1).astype(np.float32)
    total = tf.reduce_sum(tf.image.crop_and_resize(image, boxes, [0], [3, 2]))
    at, step = np.array([[0.11, 0.17, 0.83, 0.71]], np.float32), 1e-3
    gradient = session.run(tf.gradients(total, boxes)[0], {boxes: at})
    for i in range(4):
        move = np.zeros((1, 4), np.float32)
        move[0, i] = step
        slope = (session.run(total, {boxes: at + move}) - session.run(total, {boxes: at - move})) / (2 * step)
        np.testing.assert_allclose(gradient[0, i], slope, rtol=2e-2)


def test_strings_are_joined_row_by_row_without_axes(session: tf.Session) -> None:
    letters = tf.placeholder(tf.string, None)
    assert session.run(tf.reduce_join(letters), {letters: [["a", "b"], ["c", "d"]]}) == b"abcd"


def test_pattern_may_be_fed(session: tf.Session) -> None:
    pattern = tf.placeholder(tf.string, [])
    assert session.run(tf.strings.regex_full_match(["ab", "b"], pattern), {pattern: "a."}).tolist() == [True, False]


def sparse(rows: list[list[int]]) -> tf.SparseTensorValue:
    indices = [(i, j) for i, row in enumerate(rows) for j in range(len(row))]
    values = np.array([x for row in rows for x in row], np.int64)
    return tf.SparseTensorValue(np.array(indices, np.int64), values, np.array([len(rows), 3], np.int64))


@pytest.mark.parametrize("kind", [lambda x: x, tf.SparseTensor.from_value])
def test_edit_distance_takes_sparse_tensors_and_their_values(session: tf.Session, kind: Any) -> None:
    distance = tf.edit_distance(kind(sparse([[1, 2], [3]])), kind(sparse([[1], [3]])), normalize=False)
    assert session.run(distance).tolist() == [1, 0]


def test_edit_distance_of_a_dense_tensor_is_a_type_error(session: tf.Session) -> None:
    with pytest.raises(
        TypeError, match=r"tf.edit_distance: truth is .*; a SparseTensor or SparseTensorValue is required"
    ):
        tf.edit_distance(sparse([[1]]), [[1]])


def test_sparse_tensor_is_fetched_as_its_arrays(session: tf.Session) -> None:
    found = session.run(tf.SparseTensor([[0, 1]], [2.5], [3, 4]))
    assert isinstance(found, tf.SparseTensorValue)
    assert (found.indices.tolist(), found.values.tolist(), found.dense_shape.tolist()) == ([[0, 1]], [2.5], [3, 4])


def test_sparse_tensor_has_a_static_shape(session: tf.Session) -> None:
    assert tf.SparseTensor([[0, 1]], [2.5], [3, 4]).shape == (3, 4)


def test_bins_of_integers_are_found(session: tf.Session) -> None:
    assert session.run(tf.histogram_fixed_width_bins([1, 9, 4, 12], [0, 10], 5)).tolist() == [0, 4, 2, 4]


def test_parallel_stack_puts_tensors_side_by_side(session: tf.Session) -> None:
    assert session.run(tf.parallel_stack([tf.constant([1, 2]), tf.constant([3, 4])])).tolist() == [[1, 2], [3, 4]]
