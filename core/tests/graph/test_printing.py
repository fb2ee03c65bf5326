"""How tensors and shapes are printed: as TensorFlow 1 prints them."""

from __future__ import annotations

import pytest

import timberframe as tf


@pytest.mark.parametrize(
    ("dims", "text"),
    [((), "()"), ((4,), "(4,)"), ((None, 3), "(?, 3)"), ((None,), "(?,)"), (None, "<unknown>")],
)
def test_shape_is_printed_as_a_tuple(dims: tuple[int | None, ...] | None, text: str) -> None:
    assert str(tf.TensorShape(dims)) == text


def test_shape_shows_how_to_make_it() -> None:
    assert repr(tf.TensorShape([None, 3])) == "TensorShape([None, 3])"


@pytest.mark.parametrize(
    ("shape", "text"),
    [
        ([None, 3], 'Tensor("x:0", shape=(?, 3), dtype=float32)'),
        ([], 'Tensor("x:0", shape=(), dtype=float32)'),
        (None, 'Tensor("x:0", dtype=float32)'),
    ],
)
def test_tensor_is_printed_with_its_shape(shape: list[int | None] | None, text: str) -> None:
    with tf.Graph().as_default():
        assert str(tf.placeholder(tf.float32, shape, "x")) == text


def test_tensor_is_printed_with_its_device() -> None:
    with tf.Graph().as_default(), tf.device("/device:CPU:0"):
        text = 'Tensor("x:0", shape=(2,), dtype=int32, device=/device:CPU:0)'
        assert str(tf.constant([1, 2], name="x")) == text


def test_unknown_rank_is_named_in_errors() -> None:
    with tf.Graph().as_default():
        x = tf.placeholder(tf.float32, None, "x")
        assert repr(x) == "<tf.Tensor 'x:0' shape=<unknown> dtype=float32>"
