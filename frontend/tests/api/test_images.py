"""tf.image: mirrored, cut, framed and lighter images."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import timberframe as tf

pytestmark = pytest.mark.usefixtures("session")

IMAGE = np.arange(24, dtype=np.float32).reshape(4, 3, 2)


@pytest.mark.parametrize(
    ("build", "wanted"),
    [
        (tf.image.flip_left_right, IMAGE[:, ::-1]),
        (tf.image.flip_up_down, IMAGE[::-1]),
        (tf.image.transpose_image, IMAGE.swapaxes(0, 1)),
        (tf.image.rot90, np.rot90(IMAGE)),
        (lambda x: tf.image.rot90(x, -1), np.rot90(IMAGE, -1)),
        (lambda x: tf.image.crop_to_bounding_box(x, 1, 0, 2, 2), IMAGE[1:3, :2]),
        (lambda x: tf.image.pad_to_bounding_box(x, 1, 0, 6, 4), np.pad(IMAGE, ((1, 1), (0, 1), (0, 0)))),
        (lambda x: tf.image.resize_image_with_crop_or_pad(x, 2, 5), np.pad(IMAGE[1:3], ((0, 0), (1, 1), (0, 0)))),
        (lambda x: tf.image.central_crop(x, 0.5), IMAGE[1:3, 0:3]),
        (lambda x: tf.image.adjust_brightness(x, 2.0), IMAGE + 2),
    ],
)
@pytest.mark.parametrize("known", [True, False], ids=["static", "dynamic"])
def test_pixels(session: tf.Session, build: Callable[[Any], Any], wanted: np.ndarray, known: bool) -> None:
    x = tf.placeholder(tf.float32, IMAGE.shape if known else [None, None, 2])
    assert session.run(build(x), {x: IMAGE}).tolist() == wanted.tolist()


def test_batches_are_mirrored_by_chance_one_by_one(session: tf.Session) -> None:
    batch = np.stack([IMAGE] * 64)
    got = session.run(tf.image.random_flip_left_right(batch, seed=1))
    mirrored = [x.tolist() == IMAGE[:, ::-1].tolist() for x in got]
    assert all(m or x.tolist() == IMAGE.tolist() for m, x in zip(mirrored, got, strict=True))
    assert 16 < sum(mirrored) < 48


def test_bytes_keep_their_range(session: tf.Session) -> None:
    got = session.run(tf.image.adjust_brightness(np.array([[[0], [250]]], np.uint8), 0.5))
    assert got.tolist() == [[[127], [255]]]


def test_standardized_images(session: tf.Session) -> None:
    got = session.run(tf.image.per_image_standardization(np.stack([IMAGE, np.ones_like(IMAGE)])))
    assert got[0].mean() == pytest.approx(0, abs=1e-6)
    assert got[0].std() == pytest.approx(1, rel=1e-5)
    assert not got[1].any()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: tf.image.flip_left_right(np.ones((2, 2))), r"image has shape \(2, 2\); \[height, width, channels\]"),
        (lambda: tf.image.crop_to_bounding_box(IMAGE, 3, 0, 2, 2), "height 2 from 3 on of 4; it must lie inside"),
        (lambda: tf.image.pad_to_bounding_box(IMAGE, 0, 2, 4, 4), "width 3 at 2 in 4; it must have room"),
        (lambda: tf.image.central_crop(IMAGE, 0), "central_fraction is 0"),
        (lambda: tf.image.random_contrast(IMAGE, 2.0, 1.0), "lower is 2.0 and upper 1.0"),
        (lambda: tf.image.random_hue(IMAGE, 2.0), "max_delta is 2.0"),
        (lambda: tf.image.adjust_gamma(IMAGE, -1), "gamma is -1"),
    ],
)
def test_wrong_arguments(call: Callable[[], Any], message: str) -> None:
    with pytest.raises(tf.errors.InvalidArgumentError, match=message):
        call()
