"""Functions made of several ops give TensorFlow's results and gradients."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import timberframe as ours

RANDOM = np.random.default_rng(0)


def values(*shape: int) -> np.ndarray:
    return RANDOM.uniform(0.1, 0.9, shape).astype(np.float32)


SERIES, IMAGES, VOLUMES = values(2, 9, 3), values(2, 9, 8, 3), values(2, 5, 6, 4, 3)
FILTERS = values(3, 3, 4), values(3, 2, 3, 4), values(2, 3, 2, 3, 4)
LARGE, OTHER = values(2, 40, 47, 3), values(2, 40, 47, 3)
BYTES = [RANDOM.integers(0, 256, (2, 16, 17, 3)).astype(np.uint8) for _ in range(2)]
SMALL_SCALES = [0.4, 0.6]
CENTRES = RANDOM.uniform(0, 1, (100, 2))
BOXES = np.concatenate([CENTRES, CENTRES + RANDOM.uniform(-0.4, 0.4, (100, 2))], 1).astype(np.float32)
SCORES = np.round(RANDOM.uniform(0, 1, 100), 2).astype(np.float32)  # some are equal

PICTURES = np.round(values(11, 13, 3) * 255).astype(np.uint8)
SQUARES = values(2, 4, 4) * np.array([0.01, 1.5], np.float32).reshape(2, 1, 1)
LOW_RANKS = np.matmul(values(3, 5, 2), values(3, 2, 4)) + np.float32(1)

CASES: dict[str, tuple[Callable[..., Any], Any]] = {
    "convolution of series": (lambda tf, x: tf.nn.convolution(x, FILTERS[0], "SAME", [2]), SERIES),
    "convolution of images": (lambda tf, x: tf.nn.convolution(x, FILTERS[1], "VALID", dilation_rate=[2, 1]), IMAGES),
    "convolution of volumes": (lambda tf, x: tf.nn.convolution(x, FILTERS[2], padding="SAME"), VOLUMES),
    "atrous_conv2d": (lambda tf, x: tf.nn.atrous_conv2d(x, FILTERS[1], 2, "SAME"), IMAGES),
    "atrous_conv2d_transpose": (
        lambda tf, x: tf.nn.atrous_conv2d_transpose(x, values(3, 3, 5, 3) * 0 + 0.5, [2, 9, 8, 5], 2, "SAME"), IMAGES,
    ),
    "pool of series": (lambda tf, x: tf.nn.pool(x, [3], "AVG", "SAME", strides=[2]), SERIES),
    "pool of images": (lambda tf, x: tf.nn.pool(x, [2, 3], "MAX", "VALID", strides=[2, 1]), IMAGES),
    "pool of volumes": (lambda tf, x: tf.nn.pool(x, [2, 2, 2], "MAX", "VALID"), VOLUMES),
    "max_pool1d": (lambda tf, x: tf.nn.max_pool1d(x, 3, 2, "VALID"), SERIES),
    "avg_pool1d": (lambda tf, x: tf.nn.avg_pool1d(x, 2, 1, "SAME"), SERIES),
    "sufficient_statistics": (lambda tf, x: tf.nn.sufficient_statistics(x, [0, 2], keep_dims=True)[:3], SERIES),
    "sufficient_statistics shifted": (lambda tf, x: tf.nn.sufficient_statistics(x, [0, 1], shift=0.5)[:3], SERIES),
    "normalize_moments": (
        lambda tf, x: tf.nn.normalize_moments(*tf.nn.sufficient_statistics(x, [0, 1], shift=0.25)), SERIES,
    ),
    "log_poisson_loss": (lambda tf, x: tf.nn.log_poisson_loss(8 * x, x), SERIES),
    "log_poisson_loss full": (lambda tf, x: tf.nn.log_poisson_loss(8 * tf.stop_gradient(x), x, True), SERIES),
    "psnr": (lambda tf, x: tf.image.psnr(x, IMAGES[::-1].copy(), 1.0), IMAGES),
    "ssim": (lambda tf, x: tf.image.ssim(x, OTHER, 1.0), LARGE),
    "ssim small": (lambda tf, x: tf.image.ssim(x, IMAGES[::-1].copy(), 2.0, 4, 1.0, 0.02, 0.05), IMAGES),
    "ssim_multiscale": (lambda tf, x: tf.image.ssim_multiscale(x, (LARGE + OTHER) / 2, 1.0, SMALL_SCALES), LARGE),
    "total_variation": (lambda tf, x: tf.image.total_variation(x), IMAGES),
    "total_variation of one": (lambda tf, x: tf.image.total_variation(x), IMAGES[0]),
    "image_gradients": (lambda tf, x: tf.image.image_gradients(x), IMAGES),
    "sobel_edges": (lambda tf, x: tf.image.sobel_edges(x), IMAGES),
    "rgb_to_yuv": (lambda tf, x: tf.image.rgb_to_yuv(x), IMAGES),
    "yuv_to_rgb": (lambda tf, x: tf.image.yuv_to_rgb(x), IMAGES),
    "rgb_to_yiq": (lambda tf, x: tf.image.rgb_to_yiq(x), IMAGES),
    "yiq_to_rgb": (lambda tf, x: tf.image.yiq_to_rgb(x), IMAGES),
    "image.transpose": (lambda tf, x: tf.image.transpose(x), IMAGES),
    "cosine_distance": (lambda tf, x: tf.losses.cosine_distance(OTHER, x, axis=2), LARGE),
    "mean_pairwise_squared_error": (
        lambda tf, x: [tf.losses.mean_pairwise_squared_error(OTHER, x, w) for w in (1.5, [[[[0.0]]], [[[2.0]]]])], LARGE
    ),
    "non_max_suppression": (
        lambda tf, x: [tf.image.non_max_suppression(x, SCORES, 20, t, s) for t, s in ((0.5, 0.2), (0.1, 0.0))], BOXES,
    ),
    "non_max_suppression of all": (lambda tf, x: tf.image.non_max_suppression(x, SCORES, 100), BOXES),
    "non_max_suppression_padded": (
        lambda tf, x: tf.raw_ops.NonMaxSuppressionV4(
            boxes=x, scores=SCORES, max_output_size=50, iou_threshold=0.2, score_threshold=0.0,
            pad_to_max_output_size=True,
        ),
        BOXES,
    ),
    "non_max_suppression_with_scores": (
        lambda tf, x: [
            tf.stop_gradient(part)
            for settings in ((0.3,), (1.0, 0.1, 0.5), (0.4, 0.3, 0.2))
            for part in tf.image.non_max_suppression_with_scores(x, SCORES, 30, *settings)
        ],
        BOXES,
    ),
    "bincount": (lambda tf, x: [tf.bincount([3, 1, 1, 0]), tf.bincount([3, 1, 1], minlength=6, maxlength=3),
                                tf.bincount([5, 1, 5], maxlength=4)], SERIES),
    "bincount of weights": (lambda tf, x: tf.stop_gradient(tf.bincount([3, 1, 1], x[0, :3, 0])), SERIES),
    "unsorted_segment_mean": (lambda tf, x: tf.unsorted_segment_mean(x, [3, 1], 5), SERIES),
    "unsorted_segment_sqrt_n": (
        lambda tf, x: tf.unsorted_segment_sqrt_n(x, np.arange(18).reshape(2, 9) % 4 - 1, 4), SERIES,
    ),
    "polyval": (lambda tf, x: tf.math.polyval([2.0, 3.0, x[0], -1.0], x), SERIES),
    "lbeta": (lambda tf, x: tf.lbeta(3 * x), SERIES),
    "unravel_index": (lambda tf, x: [tf.unravel_index([22, 41, 37], (7, 6)), tf.unravel_index(1621, (6, 7, 8, 9))],
                      SERIES),
    "is_non_decreasing": (lambda tf, x: [tf.is_non_decreasing([1, 2, 2]), tf.is_non_decreasing([2, 1]), x], SERIES),
    "is_strictly_increasing": (lambda tf, x: [tf.is_strictly_increasing([1, 2, 2]), tf.is_strictly_increasing([]), x],
                               SERIES),
    "incomplete gamma functions": (
        lambda tf, x: [tf.igamma(4 * x, 3 * x[:, ::-1]), tf.math.igammac(2 * x[0], 5 * x)], SERIES,
    ),
    "Bessel functions": (
        lambda tf, x: [
            tf.math.bessel_i0(3 * x), tf.math.bessel_i0e(9 * x), tf.math.bessel_i1(-x), tf.math.bessel_i1e(x)
        ],
        SERIES,
    ),
    "expm": (lambda tf, x: tf.linalg.expm(x), SQUARES),
    "expm of complex matrices": (lambda tf, x: tf.real(tf.linalg.expm(tf.complex(x, -x))), SQUARES / 2),
    "expm of one matrix": (lambda tf, x: tf.linalg.expm(x), SQUARES[1]),
    "pinv": (lambda tf, x: tf.linalg.pinv(x), values(2, 5, 3)),
    "pinv of less than full rank": (lambda tf, x: tf.stop_gradient(tf.linalg.pinv(x, 1e-3)), LOW_RANKS),
    "matrix_rank": (lambda tf, x: [tf.linalg.matrix_rank(x, 1e-3), tf.linalg.matrix_rank(tf.eye(3, 4))], LOW_RANKS),
    "conv_transpose of series": (
        lambda tf, x: tf.nn.conv_transpose(x, values(3, 4, 3) * 0 + 0.5, [2, 18, 4], 2), SERIES,
    ),
    "conv_transpose of images": (
        lambda tf, x: tf.nn.conv_transpose(x, values(3, 2, 4, 3) * 0 + 0.5, [2, 18, 16, 4], [2, 2]), IMAGES,
    ),
    "conv_transpose of volumes": (
        lambda tf, x: tf.nn.conv_transpose(x, values(2, 2, 2, 4, 3) * 0 + 0.5, [2, 10, 12, 8, 4], 2), VOLUMES,
    ),
    "conv1d_transpose": (
        lambda tf, x: tf.nn.conv1d_transpose(x, values(3, 4, 3) * 0 + 0.5, [2, 11, 4], [1, 1, 1], "VALID"), SERIES,
    ),
    "pools by rank": (
        lambda tf, x: [tf.nn.max_pool_v2(x, 2, 2, "VALID"), tf.nn.avg_pool_v2(x, [2, 3], [1, 2], "SAME")], IMAGES,
    ),
    "pools of volumes": (
        lambda tf, x: [tf.nn.max_pool_v2(x, 2, 1, "SAME"), tf.nn.avg_pool_v2(x, [2, 1, 2], 1, "VALID")], VOLUMES,
    ),
    "extract_patches": (
        lambda tf, x: tf.image.extract_patches(x, [1, 2, 3, 1], [1, 2, 1, 1], [1, 1, 1, 1], "VALID"), IMAGES,
    ),
    "is_jpeg": (
        lambda tf, x: [tf.image.is_jpeg(tf.image.encode_jpeg(PICTURES)), tf.io.is_jpeg("GIF89a"), tf.image.is_jpeg("")],
        SERIES,
    ),
    "ctc_loss_v2": (
        lambda tf, x: tf.nn.ctc_loss_v2([[1, 2, 2], [2, 1, 0]], 4 * x, [3, 2], [9, 7], False), SERIES,
    ),
    "ctc_loss_v2 with another blank": (
        lambda tf, x: [
            tf.nn.ctc_loss_v2([[0, 2], [2, 1]], 4 * tf.transpose(x, [1, 0, 2]), [1, 1], [9, 7], blank_index=b)
            for b in (1, -2)
        ],
        SERIES,
    ),
    "ctc_loss_v2 of sparse labels": (
        lambda tf, x: tf.nn.ctc_loss_v2(
            tf.SparseTensor([[0, 0], [0, 1], [1, 0]], [1, 0, 0], [2, 3]), 4 * x, None, [9, 7], False, blank_index=-1
        ),
        SERIES,
    ),
    "ctc_beam_search_decoder_v2": (
        lambda tf, x: [
            tf.sparse_tensor_to_dense(tf.nn.ctc_beam_search_decoder_v2(4 * tf.transpose(x, [1, 0, 2]), [9, 7])[0][0]), x
        ],
        SERIES,
    ),
    "collapse_repeated": (
        lambda tf, x: list(tf.nn.collapse_repeated([[1, 1, 2, 2, 1], [3, 3, 3, 0, 0]], [5, 3])), SERIES,
    ),
    "grad_pass_through": (lambda tf, x: tf.grad_pass_through(tf.floor)(x * 3), SERIES),
    "conversions": (
        lambda tf, x: [
            tf.convert_to_tensor_or_sparse_tensor(tf.SparseTensor([[0]], x[0, 0, :1], [2])).values,
            tf.convert_to_tensor_or_indexed_slices(tf.IndexedSlices(x, tf.constant([0, 1]))).values,
            tf.convert_to_tensor_or_sparse_tensor(x), tf.convert_to_tensor_or_indexed_slices(x),
        ],
        SERIES,
    ),
    "verify_tensor_all_finite": (lambda tf, x: tf.verify_tensor_all_finite(x, "wrong"), SERIES),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_results_and_gradients_are_the_same(tensorflow: Any, name: str) -> None:
    build, given = CASES[name]
    found = []
    for tf in (ours, tensorflow):
        with tf.Graph().as_default(), tf.Session() as session:
            x = tf.constant(given)
            made = build(tf, x)
            parts = list(made) if isinstance(made, list | tuple) else [made]
            smooth = [p for p in parts if p.dtype == tf.float32]
            grad = tf.gradients([tf.reduce_sum(tf.sin(p)) for p in smooth], x) if smooth else []
            found.append(
                (session.run([*parts, *(g for g in grad if g is not None)]), [p.shape.as_list() for p in parts])
            )
    (mine, shapes), (theirs, wanted_shapes) = found
    for one, two in zip(mine, theirs, strict=True):
        np.testing.assert_allclose(one, two, rtol=2e-4, atol=2e-5)
    assert [len(s) for s in shapes] == [len(s) for s in wanted_shapes]


@pytest.mark.parametrize("function", ["psnr", "ssim"])
def test_images_of_bytes_compare_the_same(tensorflow: Any, function: str) -> None:
    found = []
    for tf in (ours, tensorflow):
        with tf.Graph().as_default(), tf.Session() as session:
            found.append(session.run(getattr(tf.image, function)(*map(tf.constant, BYTES), 255)))
    np.testing.assert_allclose(found[0], found[1], rtol=1e-4)


@pytest.mark.parametrize(
    "build",
    [
        lambda tf, x: tf.assert_rank_in(x, [1, 2]), lambda tf, x: tf.assert_rank_at_least(x, 3),
        lambda tf, x: tf.assert_integer(x), lambda tf, x: tf.assert_type(x, tf.int32),
        lambda tf, x: tf.assert_scalar(x), lambda tf, x: tf.assert_near(x, x + 1.0),
        lambda tf, x: tf.assert_near(x, x + 1e-3), lambda tf, x: tf.assert_near(x, x + 1e-8),
        lambda tf, x: tf.assert_near(x, x + 1e-3, atol=1e-2), lambda tf, x: tf.assert_same_float_dtype([x], tf.float16),
        lambda tf, x: tf.assert_proper_iterable(x), lambda tf, x: tf.assert_proper_iterable([x]),
    ],
)  # fmt: skip
@pytest.mark.parametrize("shape", [(), (2,), (2, 3), (1, 2, 3)])
def test_assertions_hold_for_the_same_tensors(tensorflow: Any, build: Any, shape: tuple[int, ...]) -> None:
    found = []
    for tf in (ours, tensorflow):
        for known in (True, False):
            with tf.Graph().as_default(), tf.Session() as session:
                x = tf.placeholder(tf.float32, shape if known else None)
                try:
                    made = build(tf, x)
                    if made is not None:
                        session.run(made, {x: np.ones(shape, np.float32)})
                    found.append("holds")
                except (ValueError, TypeError, tf.errors.InvalidArgumentError) as e:
                    found.append(TypeError if isinstance(e, TypeError) else ValueError)
    assert found[:2] == found[2:]
