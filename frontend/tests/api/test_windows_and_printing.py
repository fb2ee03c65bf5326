"""Patches and boxes of images, tf.print, and sequence examples: what a program sees, and what is refused."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import timberframe as tf


def test_patches_are_what_a_window_sees(session: tf.Session) -> None:
    images = tf.reshape(tf.range(9), [1, 3, 3, 1])
    patches = tf.image.extract_image_patches(images, [1, 2, 2, 1], [1, 1, 1, 1], [1, 1, 1, 1], "VALID")
    assert patches.shape.as_list() == [1, 2, 2, 4]
    assert session.run(patches)[0, 0].tolist() == [[0, 1, 3, 4], [1, 2, 4, 5]]


def test_random_box_lies_in_the_image_and_shows_the_object(session: tf.Session) -> None:
    boxes = tf.constant([[[0.4, 0.4, 0.6, 0.6]]])
    made = tf.image.sample_distorted_bounding_box([50, 60, 3], boxes, min_object_covered=1.0)
    for _ in range(20):
        begin, size, (((y0, x0, y1, x1),),) = session.run(made)
        assert (begin >= 0).all()
        assert begin[0] + size[0] <= 50
        assert begin[1] + size[1] <= 60
        assert y0 <= 0.4 <= 0.6 <= y1
        assert x0 <= 0.4 <= 0.6 <= x1


def test_boxes_differ_from_run_to_run(session: tf.Session) -> None:
    made = tf.image.sample_distorted_bounding_box([50, 60, 3], tf.zeros([1, 0, 4]), use_image_if_no_bounding_boxes=True)
    assert len({tuple(session.run(made.begin)) for _ in range(10)}) > 1


def test_print_writes_values(session: tf.Session, capsys: pytest.CaptureFixture[str]) -> None:
    session.run(tf.print("step", tf.constant(3), {"loss": tf.constant([0.5, 1.0])}, output_stream=sys.stdout))
    assert capsys.readouterr().out == "step 3 {'loss': [0.5 1]}\n"


def test_print_writes_to_the_error_stream_by_default(session: tf.Session, capsys: pytest.CaptureFixture[str]) -> None:
    session.run(tf.print(tf.constant("text")))
    assert capsys.readouterr().err == "text\n"


def test_steps_of_a_sequence_are_rows(session: tf.Session) -> None:
    steps = [tf.train.Feature(float_list=tf.train.FloatList(value=[i, i])) for i in range(3)]
    text = tf.train.SequenceExample(
        feature_lists=tf.train.FeatureLists(feature_list={"x": tf.train.FeatureList(feature=steps)})
    ).SerializeToString()
    _, found = tf.parse_single_sequence_example(
        text, sequence_features={"x": tf.FixedLenSequenceFeature([2], tf.float32)}
    )
    assert found["x"].shape.as_list() == [None, 2]
    assert session.run(found["x"]).tolist() == [[0, 0], [1, 1], [2, 2]]


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: tf.extract_image_patches(np.zeros((1, 3, 3, 1)), [2, 2], [1, 1], [1, 1], "SAME"), "ksizes"),
        (
            lambda: tf.extract_image_patches(np.zeros((1, 3, 3, 1)), [1, 2, 2, 2], [1] * 4, [1] * 4, "SAME"),
            r"\[1, rows, columns, 1\]",
        ),
        (lambda: tf.image.sample_distorted_bounding_box([5, 5, 3], np.zeros((1, 0, 4))), "bounding_boxes is empty"),
        (
            lambda: tf.image.sample_distorted_bounding_box([5, 5, 3], [[[0.5, 0.0, 0.2, 1.0]]]),
            r"a box is \[0.5, 0.0, 0.2.* no area",
        ),
        (
            lambda: tf.image.sample_distorted_bounding_box([5, 5, 3], [[[0.0, 0.0, 1.0, 1.0]]], area_range=[0.5, 0.1]),
            "two positive numbers in order",
        ),
        (lambda: tf.print("x", output_stream="nowhere"), "output_stream is 'nowhere'"),
        (lambda: tf.strings.format("{} {}", [tf.constant(1)]), "2 placeholders for 1 inputs"),
        (lambda: tf.parse_sequence_example(["x"]), "no features are given"),
        (lambda: tf.parse_sequence_example(["x"], {"a": 3}), "a VarLenFeature or FixedLenFeature is required"),
        (
            lambda: tf.parse_single_sequence_example("", None, {"x": tf.FixedLenSequenceFeature([], tf.int64)})[1]["x"],
            "sequence 'x' is missing",
        ),
    ],
)
def test_wrong_arguments_are_refused(session: tf.Session, make: Callable[[], Any], said: str) -> None:
    with pytest.raises(tf.errors.InvalidArgumentError, match=said):
        session.run(make())
