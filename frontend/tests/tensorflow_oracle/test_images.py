"""tf.image gives TensorFlow's pixels, also those drawn by chance."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import timberframe

RNG = np.random.default_rng(0)
FLOATS = RNG.random((6, 5, 3)).astype(np.float32)
BYTES = RNG.integers(0, 256, (6, 5, 3)).astype(np.uint8)

FUNCTIONS: dict[str, Callable[[Any, Any], Any]] = {
    "flip_left_right": lambda i, x: i.flip_left_right(x),
    "flip_up_down": lambda i, x: i.flip_up_down(x),
    "transpose_image": lambda i, x: (i.transpose_image if hasattr(i, "transpose_image") else i.transpose)(x),
    "rot90": lambda i, x: i.rot90(x, 3),
    "random_flip_left_right": lambda i, x: i.random_flip_left_right(x, seed=3),
    "random_flip_up_down": lambda i, x: i.random_flip_up_down(x, seed=4),
    "crop_to_bounding_box": lambda i, x: i.crop_to_bounding_box(x, 1, 2, 3, 2),
    "pad_to_bounding_box": lambda i, x: i.pad_to_bounding_box(x, 1, 2, 9, 8),
    "crop_or_pad": lambda i, x: i.resize_image_with_crop_or_pad(x, 3, 8),
    "central_crop": lambda i, x: i.central_crop(x, 0.5),
    "resize_image_with_pad": lambda i, x: i.resize_image_with_pad(x, 9, 20),
    "adjust_brightness": lambda i, x: i.adjust_brightness(x, 0.3),
    "adjust_gamma": lambda i, x: i.adjust_gamma(x, 2.0, 0.5),
    "rgb_to_grayscale": lambda i, x: i.rgb_to_grayscale(x),
    "grayscale_to_rgb": lambda i, x: i.grayscale_to_rgb(x[..., :1]),
    "per_image_standardization": lambda i, x: i.per_image_standardization(x),
    "random_brightness": lambda i, x: i.random_brightness(x, 0.3, seed=5),
    "random_contrast": lambda i, x: i.random_contrast(x, 0.5, 1.5, seed=6),
    "random_hue": lambda i, x: i.random_hue(x, 0.3, seed=7),
    "random_saturation": lambda i, x: i.random_saturation(x, 0.5, 1.5, seed=8),
}


@pytest.mark.parametrize("pixels", [FLOATS, BYTES], ids=["floats", "bytes"])
@pytest.mark.parametrize("batch", [False, True], ids=["image", "batch"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_pixels(name: str, batch: bool, pixels: np.ndarray) -> None:
    tensorflow = pytest.importorskip("tensorflow").compat.v1
    given = np.stack([pixels, pixels[::-1], pixels[:, ::-1]]) if batch else pixels
    made = []
    for tf in (tensorflow, timberframe):
        with tf.Graph().as_default() as graph, tf.Session(graph=graph) as session:
            x = tf.placeholder(given.dtype, given.shape)
            tensor = FUNCTIONS[name](tf.image, x)
            made.append((session.run(tensor, {x: given}), tensor.shape.as_list(), tensor.dtype.name))
    (wanted, shape, dtype), (got, our_shape, our_dtype) = made
    assert our_dtype == dtype
    assert all(b in (None, a) for a, b in zip(our_shape, shape, strict=True))
    if got.dtype == np.uint8:
        assert np.abs(got.astype(int) - wanted).max() <= 1
        assert (got != wanted).mean() < 0.02
    else:
        np.testing.assert_allclose(got, wanted, rtol=2e-5, atol=2e-6)
