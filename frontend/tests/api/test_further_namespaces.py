"""tf.io, tf.dtypes, tf.debugging and their like: other names of what is elsewhere; and what their functions refuse."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import timberframe as tf

pytestmark = pytest.mark.usefixtures("session")


def test_names_of_namespaces_are_the_public_ones() -> None:
    assert tf.io.FixedLenFeature is tf.FixedLenFeature
    assert tf.io.TFRecordWriter is tf.python_io.TFRecordWriter
    assert tf.io.write_graph is tf.train.write_graph
    assert tf.dtypes.bool is tf.bool
    assert tf.debugging.assert_equal is tf.assert_equal
    assert tf.debugging.assert_all_finite is tf.verify_tensor_all_finite
    assert tf.manip.roll is tf.roll
    assert tf.queue.FIFOQueue is tf.FIFOQueue


def test_versions_and_errors_are_found_in_both_places() -> None:
    assert tf.VERSION == tf.version.VERSION == tf.__version__
    assert tf.GIT_VERSION == tf.version.GIT_VERSION == tf.__git_version__
    assert tf.OpError is tf.errors.OpError


def test_files_and_folders_by_their_newer_names(tmp_path: Path) -> None:
    files, inner = tf.io.gfile, tmp_path / "a" / "b"
    files.makedirs(inner)
    with files.GFile(inner / "x", "w") as file:
        file.write("text")
    files.copy(inner / "x", tmp_path / "y")
    files.rename(inner / "x", tmp_path / "z")
    with pytest.raises(tf.errors.AlreadyExistsError):
        files.copy(tmp_path / "y", tmp_path / "z")
    assert sorted(files.listdir(tmp_path)) == ["a", "y", "z"]
    assert files.glob(f"{tmp_path}/[yz]") == [str(tmp_path / "y"), str(tmp_path / "z")]
    assert (files.isdir(inner), files.exists(inner / "x"), files.stat(tmp_path / "y").length) == (True, False, 4)
    assert [f for f, _, _ in files.walk(tmp_path, topdown=False)] == [
        str(inner),
        str(inner.parent),
        str(tmp_path),
    ]
    files.rmtree(tmp_path / "a")
    files.remove(tmp_path / "y")
    assert files.listdir(tmp_path) == ["z"]


def test_walk_reports_errors_to_a_function(tmp_path: Path) -> None:
    seen: list[OSError] = []
    assert list(tf.io.gfile.walk(tmp_path / "no", onerror=seen.append)) == []
    assert [type(e) for e in seen] == [FileNotFoundError]


def test_equal_images_are_as_similar_as_can_be(session: tf.Session) -> None:
    image = np.random.default_rng(0).uniform(size=(1, 12, 12, 3)).astype(np.float32)
    assert session.run(tf.image.ssim(image, image, 1.0)) == pytest.approx([1.0])
    assert session.run(tf.image.psnr(image, image + 0.1, 1.0)) == pytest.approx([20.0], rel=1e-4)


def test_holes_in_a_filter_are_zeros_in_a_larger_one(session: tf.Session) -> None:
    random = np.random.default_rng(0)
    x, small = random.normal(size=(1, 7, 7, 2)), random.normal(size=(2, 2, 2, 3))
    large = np.zeros((3, 3, 2, 3))
    large[::2, ::2] = small
    one, two = session.run([tf.nn.atrous_conv2d(x, small, 2, "VALID"), tf.nn.conv2d(x, large, 1, "VALID")])
    np.testing.assert_allclose(one, two)


def test_moments_in_two_steps(session: tf.Session) -> None:
    x = np.random.default_rng(0).normal(5, 2, (4, 6))
    found = session.run(tf.nn.normalize_moments(*tf.nn.sufficient_statistics(x, [0], shift=5.0)))
    np.testing.assert_allclose(found, [x.mean(0), x.var(0)])


def test_close_values_pass_and_others_fail(session: tf.Session) -> None:
    x = tf.placeholder(tf.float32, [])
    check = tf.assert_near(x, 1.0, message="far away")
    session.run(check, {x: 1 + 5e-7})
    with pytest.raises(tf.errors.InvalidArgumentError, match="far away"):
        session.run(check, {x: 1.001})


BOXES = np.array([[0, 0, 1, 1], [0, 0.1, 1, 1.1], [1, 1, 0, 0.9], [0, 10, 1, 11]], np.float32)


def test_the_best_of_boxes_that_cover_each_other_stay(session: tf.Session) -> None:
    scores = [0.8, 0.9, 0.7, 0.1]
    assert session.run(tf.image.non_max_suppression(BOXES, scores, 4)).tolist() == [1, 2, 3]
    assert session.run(tf.image.non_max_suppression(BOXES, scores, 4, score_threshold=0.1)).tolist() == [1, 2]
    assert session.run(tf.image.non_max_suppression(BOXES, scores, 1)).tolist() == [1]
    found, count = session.run(tf.image.non_max_suppression_padded(BOXES, scores, 5, pad_to_max_output_size=True))
    assert (found.tolist(), count) == ([1, 2, 3, 0, 0], 3)


def test_soft_suppression_makes_scores_smaller(session: tf.Session) -> None:
    made = tf.image.non_max_suppression_with_scores(BOXES, [0.8, 0.9, 0.7, 0.1], 4, 1.0, 0.05, soft_nms_sigma=0.5)
    found, kept = session.run(made)
    assert sorted(found.tolist()) == [0, 1, 2, 3]
    assert kept[0] == np.float32(0.9)
    assert kept[found.tolist().index(0)] < 0.5


def test_counts_of_numbers(session: tf.Session) -> None:
    assert session.run(tf.bincount([3, 1, 1])).tolist() == [0, 2, 0, 1]
    assert session.run(tf.bincount([3, 1, 1], [0.5, 1.0, 2.0])).tolist() == [0, 3, 0, 0.5]
    with pytest.raises(tf.errors.InvalidArgumentError, match="arr has negative numbers"):
        session.run(tf.bincount([-1]))
    with pytest.raises(TypeError, match="arr is of float32; integers are required"):
        tf.bincount([1.5])


X = np.zeros((1, 4, 4, 1), np.float32)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: tf.nn.convolution(X, X[0, 0], "SAME"), "0 spatial dimensions are asked for"),
        (lambda: tf.nn.convolution(X, np.zeros((2, 2, 1, 1)), "SAME", [2], [2]), r"strides is \[2\]; 2 positive"),
        (lambda: tf.nn.convolution(X, np.zeros((2, 2, 1, 1)), "SAME", 2, 2), "one of them must be all 1"),
        (lambda: tf.nn.pool(X, [2, 2], "MIN", "SAME"), "pooling_type is 'MIN'"),
        (lambda: tf.nn.pool(X, [2, 2], "MAX", "SAME", [2, 2]), r"dilation_rate is \[2, 2\]; it must be all 1"),
        (lambda: tf.nn.pool(X, [2, 2], "MAX", "SAME", data_format="NCW"), "'NCHW' is required"),
        (lambda: tf.image.ssim(X, X, 1.0), r"height and width \[4, 4\]; 11, the filter's, is the least"),
        (lambda: tf.image.psnr(X, X[:, :3], 1.0), "height, width and channels must be equal"),
        (lambda: tf.image.image_gradients(X[0]), "rank 4 is required"),
        (lambda: tf.losses.cosine_distance([1.0], [1.0]), "axis is None"),
        (
            lambda: tf.assert_rank_in(X, [1, 2], message="x"),
            r"x; '.*' has shape \(1, 4, 4, 1\); its rank must",
        ),
        (lambda: tf.assert_rank_at_least(X, 5), "its rank must be 5 or more"),
        (lambda: tf.assert_integer(X), "has dtype float32; an integer dtype is required"),
        (lambda: tf.assert_type(X, tf.int8), "has dtype float32; int8 is required"),
        (lambda: tf.assert_scalar(X), "a scalar is required"),
        (lambda: tf.assert_same_float_dtype([tf.constant(X)], tf.float16), "has dtype float32; float16 is required"),
        (lambda: tf.assert_proper_iterable("ab"), "values is 'ab'; a list or tuple is required"),
        (lambda: tf.image.non_max_suppression(BOXES, [1.0], 3), "4 boxes and 1 scores; each box needs one"),
        (lambda: tf.image.non_max_suppression(BOXES[:, :3], [1.0] * 4, 3), r"\(4, 3\); \[boxes, 4\] is required"),
        (lambda: tf.Session().run(tf.image.non_max_suppression(BOXES, [1.0] * 4, 3, 1.5)), "iou_threshold is 1.5"),
        (lambda: tf.Session().run(tf.image.non_max_suppression(BOXES, [1.0] * 4, -3)), "max_output_size is -3"),
        (lambda: tf.math.polyval(3, X), "coeffs is 3; a list is required"),
        (lambda: tf.assert_proper_iterable(3), "something to iterate over is required"),
    ],
)
def test_wrong_arguments_are_refused(make: Callable[[], Any], said: str) -> None:
    with pytest.raises(tf.errors.OpError, match=said):
        make()
