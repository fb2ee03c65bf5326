"""The pass `pads`: convolutions pad their inputs with zeros themselves."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import timberframe as tf

IMAGE = np.random.default_rng(0).standard_normal((2, 6, 5, 3), np.float32)
FILTERS = np.random.default_rng(1).standard_normal((3, 2, 3, 4), np.float32)
AMOUNTS = [[0, 0], [1, 2], [0, 3], [0, 0]]

Build = Callable[[Any], Any]


def plain(padded: Any, padding: Any = "VALID") -> Any:
    return tf.nn.conv2d(padded, FILTERS, [1, 2, 1, 1], padding)


def both(build: Build, image: np.ndarray = IMAGE) -> tuple[list[Any], tuple[str, ...]]:
    """Returns what `build` of an image gives with the pass, and what it rewrote; the bits must be those without it."""
    with tf.Graph().as_default(), tf.device("/device:CPU:0"):
        x = tf.placeholder(tf.float32, image.shape)
        fetches = build(x)
        fetches = fetches if isinstance(fetches, Sequence) else [fetches]
        with tf.Session() as session, tf.Session(config=tf.SessionConfig(optimizations={"pads": False})) as off:
            found = session.run(fetches, {x: image})
            for got, expected in zip(found, off.run(fetches, {x: image}), strict=True):
                np.testing.assert_array_equal(got, expected)
            return found, session.explain(fetches, {x: image}).rewritten("pads")


@pytest.mark.parametrize(
    "build",
    [
        lambda x: plain(tf.pad(x, AMOUNTS, name="pad")),
        lambda x: plain(tf.pad(x, AMOUNTS, name="pad"), [[0, 0], [2, 0], [1, 1], [0, 0]]),
        lambda x: tf.nn.depthwise_conv2d(tf.pad(x, AMOUNTS, name="pad"), FILTERS, [1, 1, 1, 1], "VALID"),
        lambda x: tf.nn.conv2d(tf.pad(x, AMOUNTS, name="pad"), FILTERS, [1, 1, 1, 1], "VALID", dilations=[1, 2, 2, 1]),
    ],
    ids=["convolution", "padded besides", "depthwise", "dilated"],
)
def test_zeros_around_the_input_are_the_convolutions_padding(build: Build) -> None:
    _, rewritten = both(build)
    assert "pad" in rewritten


def test_channels_may_come_first() -> None:
    amounts = [AMOUNTS[0], AMOUNTS[3], *AMOUNTS[1:3]]

    def build(x: Any) -> Any:
        return tf.nn.conv2d(tf.pad(x, amounts, name="pad"), FILTERS, [1, 1, 2, 1], "VALID", data_format="NCHW")

    _, rewritten = both(build, IMAGE.transpose(0, 3, 1, 2))
    assert "pad" in rewritten


def test_several_convolutions_may_read_what_is_padded() -> None:
    def build(x: Any) -> Any:
        padded = tf.pad(x, AMOUNTS, name="pad")
        return [plain(padded), tf.nn.conv2d(padded, -FILTERS, [1, 1, 1, 1], "VALID")]

    assert "pad" in both(build)[1]


def fetched(x: Any) -> Any:
    padded = tf.pad(x, AMOUNTS)
    return [padded, plain(padded)]


def read_besides(x: Any) -> Any:
    padded = tf.pad(x, AMOUNTS)
    return plain(padded), tf.reduce_max(padded)


@pytest.mark.parametrize(
    "build",
    [
        fetched,
        read_besides,
        lambda x: plain(tf.pad(x, AMOUNTS), "SAME"),
        lambda x: plain(tf.pad(x, [[1, 0], *AMOUNTS[1:]])),
        lambda x: tf.nn.conv2d(
            tf.pad(x, [*AMOUNTS[:3], [0, 1]]), np.ones((3, 2, 4, 4), np.float32), [1, 1, 1, 1], "VALID"
        ),
        lambda x: plain(tf.pad(x, tf.constant(AMOUNTS) + tf.cast(tf.reduce_max(x) > 1e9, tf.int32))),
        lambda x: plain(tf.pad(x, AMOUNTS, constant_values=1.0)),
        lambda x: plain(tf.pad(x, [[0, 0], [1, 2], [0, 3], [0, 0]], "REFLECT")),
        lambda x: tf.nn.max_pool(tf.pad(x - 10, AMOUNTS), [1, 2, 2, 1], [1, 1, 1, 1], "VALID"),
    ],
    ids=["fetched", "read besides", "same", "batch", "channels", "computed", "ones", "reflected", "maximum"],
)
def test_other_padding_stays(build: Build) -> None:
    assert both(build)[1] == ()


def test_filters_that_are_not_finite_give_the_same() -> None:
    filters = np.where(FILTERS > 1, np.float32(np.inf), FILTERS)
    (got,), rewritten = both(lambda x: tf.nn.conv2d(tf.pad(x, AMOUNTS), filters, [1, 1, 1, 1], "VALID"))
    assert np.isnan(got).any()
    assert rewritten
