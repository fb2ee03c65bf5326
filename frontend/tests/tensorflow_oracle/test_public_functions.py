"""Functions of tf.* that are called alike on both sides and must give the same."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import timberframe

RNG = np.random.default_rng(11)
IMAGES = RNG.uniform(0.1, 0.9, (2, 6, 5, 3)).astype(np.float32)
BYTES = RNG.integers(0, 256, (2, 6, 5, 3), np.uint8)
BOXES = np.array([[0.1, 0.2, 0.77, 0.9], [0.8, 0.9, 0.1, 0.05], [-0.4, 0.3, 1.3, 1.6]], np.float32)
LETTERS = [["a", "b", "c"], ["d", "e", "f"]]


def sparse(tf: Any, rows: Sequence[Sequence[int]], width: int) -> Any:
    indices = [(i, j) for i, row in enumerate(rows) for j in range(len(row))]
    values = np.array([x for row in rows for x in row], np.int64)
    return tf.SparseTensor(np.array(indices, np.int64), values, [len(rows), width])


def distances(tf: Any) -> list[Any]:
    hypothesis, truth = sparse(tf, [[1, 2, 3], [4]], 3), sparse(tf, [[1, 3], [4, 5]], 2)
    return [tf.edit_distance(hypothesis, truth), tf.edit_distance(hypothesis, truth, normalize=False)]


def resized(tf: Any) -> list[Any]:
    image = tf.image
    made = [f(IMAGES, [4, 9]) for f in (image.resize_bicubic, image.resize_area, image.resize_bilinear)]
    made += [f(IMAGES, [4, 9], align_corners=True) for f in (image.resize_bicubic, image.resize_area)]
    for method in ("BILINEAR", "NEAREST_NEIGHBOR", "BICUBIC", "AREA"):
        made += [
            image.resize_images(x, [7, 3], getattr(image.ResizeMethod, method)) for x in (IMAGES, BYTES, IMAGES[0])
        ]
    made.append(image.resize_images(BYTES, [6, 5]))
    return [*made, image.resize_images(IMAGES, tf.constant([12, 30]), preserve_aspect_ratio=True)]


def colors(tf: Any) -> list[Any]:
    made = [tf.image.rgb_to_hsv(IMAGES), tf.image.hsv_to_rgb(IMAGES)]
    for images in (IMAGES, BYTES):
        made += [tf.image.adjust_hue(images, 0.3), tf.image.adjust_saturation(images, 0.4)]
        made.append(tf.image.adjust_contrast(images, 1.7))
    return made


def dtypes(tf: Any) -> list[Any]:
    made = [tf.image.convert_image_dtype(IMAGES, d) for d in (tf.uint8, tf.int16, tf.float16)]
    made += [tf.image.convert_image_dtype(BYTES, d) for d in (tf.float32, tf.int16, tf.int8, tf.uint16, tf.uint8)]
    return [*made, tf.image.convert_image_dtype(IMAGES * 3 - 1, tf.uint8, saturate=True)]


def parts(tf: Any) -> list[Any]:
    which = np.array([0, 1, 0], np.int32)
    made = [tf.image.crop_and_resize(IMAGES, BOXES, which, [4, 3], method=m) for m in ("bilinear", "nearest")]
    made.append(tf.image.crop_and_resize(BYTES, BOXES, which, [1, 2], extrapolation_value=7.0))
    made.append(tf.image.extract_glimpse(IMAGES, [3, 2], [[0.1, 0.2], [-0.3, 0.1]]))
    return [*made, tf.image.draw_bounding_boxes(IMAGES, BOXES[None].repeat(2, 0))]


def crop_gradients(tf: Any) -> list[Any]:
    images, boxes = tf.constant(IMAGES), tf.constant(BOXES)
    weights = RNG.normal(size=(3, 4, 3, 3)).astype(np.float32)
    made = []
    for method in ("bilinear", "nearest"):
        crops = tf.image.crop_and_resize(images, boxes, [0, 1, 0], [4, 3], method=method)
        made += tf.gradients(crops * np.sign(weights), [images, boxes])
    return made


def strings(tf: Any) -> list[Any]:
    made = [tf.string_join([LETTERS, "-", LETTERS], "."), tf.strings.join(["a", "b"])]
    made += [tf.reduce_join(LETTERS, axis, separator="+") for axis in (None, 0, 1, [0, 1], [1, 0], [])]
    made.append(tf.strings.reduce_join(LETTERS, 1, keep_dims=True))
    return [*made, *(tf.strings.regex_full_match(LETTERS, p) for p in ("[a-c]", tf.constant("d|e")))]


def counts(tf: Any) -> list[Any]:
    values = np.array([-1.0, 0.0, 1.5, 2.0, 5.0, 15.0], np.float32)
    made = [tf.histogram_fixed_width(values, [0.0, 5.0], 5), tf.histogram_fixed_width_bins(values, [0.0, 5.0], 5)]
    return [*made, tf.histogram_fixed_width(np.array([[1, 9], [4, 4]], np.int32), [0, 10], 3, tf.int64)]


def pooled(tf: Any) -> list[Any]:
    ratio, drawn = [1.0, 1.5, 1.3, 1.0], {"deterministic": True, "seed": 3, "seed2": 5}
    made = []
    for pool in (tf.nn.fractional_max_pool, tf.nn.fractional_avg_pool):
        made += [*pool(IMAGES, ratio, **drawn), *pool(IMAGES, ratio, pseudo_random=True, overlapping=True, **drawn)]
    return made


def dequantized(tf: Any) -> list[Any]:
    made = []
    for name, kind in (("qint8", np.int8), ("quint8", np.uint8)):
        x = tf.bitcast(np.array([[0, 5, 100], [127, 1, 17]], kind), name)
        made += [tf.dequantize(x, -1.5, 3.25, mode) for mode in ("MIN_COMBINED", "MIN_FIRST", "SCALED")]
        made.append(tf.dequantize(x, [-1.0, -2.0], [1.0, 3.0], axis=0))
        made.append(tf.quantization.dequantize(x, 0.0, 1.0, dtype=tf.bfloat16))
    return made


def stacked(tf: Any) -> list[Any]:
    return [tf.parallel_stack([tf.constant([1, 2]), tf.constant([3, 4])])]


def branches(tf: Any) -> list[Any]:
    return [tf.switch_case(tf.constant(i), [lambda: 1.0, lambda: 2.0], default=lambda: 3.0) for i in (-1, 0, 1, 2)]


def run(tf: Any, build: Callable[[Any], list[Any]]) -> list[Any]:
    with tf.Graph().as_default(), tf.Session() as session:
        found: list[Any] = session.run(build(tf))
        return found


BUILDS = (
    branches, colors, counts, crop_gradients, dequantized, distances, dtypes, parts, pooled, resized, stacked, strings,
)  # fmt: skip


@pytest.mark.parametrize("build", BUILDS, ids=lambda build: build.__name__)
def test_functions_give_tensorflows_result(build: Callable[[Any], list[Any]], tensorflow: Any) -> None:
    state = RNG.bit_generator.state
    expected = run(tensorflow, build)
    RNG.bit_generator.state = state
    for i, (got, want) in enumerate(zip(run(timberframe, build), expected, strict=True)):
        got, want = np.asarray(got), np.asarray(want)
        assert (got.dtype, got.shape) == (want.dtype, want.shape), f"result {i}"
        if want.dtype.kind == "f":
            np.testing.assert_allclose(got, want, rtol=2e-5, atol=2e-5, err_msg=f"result {i}")
        elif want.dtype.kind in "iu":
            np.testing.assert_allclose(got.astype(np.int64), want, atol=want.dtype == np.uint8, err_msg=f"result {i}")
        else:
            assert (got == want).all(), f"result {i}"
