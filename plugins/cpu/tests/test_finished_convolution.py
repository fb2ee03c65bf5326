"""Convolutions that one kernel runs with what follows them: the same bits as the nodes by themselves."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import timberframe as tf
from timberframe_cpu.native import available_isas

F = np.float32
IMAGES = (2, 7, 5, 4)


def swish(x: Any) -> Any:
    return x * tf.sigmoid(x)


PARTS = {None: 0, tf.nn.relu: 1, tf.nn.relu6: 1, swish: 2}
"""The nodes of each activation."""


def random(*shape: int) -> np.ndarray:
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(F)


def layer(
    x: Any, channels: int, bias: bool, norm: bool, activation: Any, depth: int = 4, taps: int = 3, **how: Any
) -> Any:
    y = tf.nn.conv2d(x, tf.constant(random(taps, taps, depth, channels)), [1, 1, 1, 1], "SAME")
    if bias:
        y = tf.nn.bias_add(y, tf.constant(random(channels)))
    if norm:
        given = [tf.constant(abs(random(channels)) + i) for i in range(4)]
        y = tf.nn.fused_batch_norm(y, *given, 1e-3, **{"is_training": False, **how})[0]
    return activation(y) if activation else y


def covered(session: tf.Session, fetches: Any, feeds: Any) -> list[int]:
    """Returns how many nodes each kernel runs that runs several."""
    return [len(k.covers) for k in session.explain(fetches, feeds).kernels if k.covers]


def check_bits(
    y: Any, feeds: Any, parts: int, options: Any = None, activation: Any = None, **optimizations: bool
) -> None:
    """One kernel runs the parts of which `y` consists, and gives the same bits as the kernels of each.

    But for the sign of NaN after Swish: a product of two NaN has that of either.
    """
    results = []
    for cover in (True, False):
        config = tf.SessionConfig(device_options=options or {}, optimizations={"cover": cover, **optimizations})
        with tf.Session(config=config) as session:
            assert covered(session, y, feeds) == ([parts] if cover and parts > 1 else [])
            found = session.run(y, feeds)
            if activation is swish:
                found = np.where(np.isnan(found), F("nan"), found)
            results.append(found.tobytes())
    assert results[0] == results[1]


@pytest.mark.parametrize("isa", available_isas())
@pytest.mark.parametrize("channels", [3, 16, 70])
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("norm", [False, True])
@pytest.mark.parametrize("activation", PARTS)
@pytest.mark.parametrize("taps", [1, 3])
def test_the_bits_are_those_of_the_parts(
    isa: str, channels: int, bias: bool, norm: bool, activation: Any, taps: int
) -> None:
    x = random(*IMAGES)
    x[0, 0, 0, 0], x[1, 3, 3, 1], x[1, 2, 2] = np.nan, -np.inf, -0.0
    with tf.Graph().as_default(), tf.device("/cpu:0"):
        placeholder = tf.placeholder(tf.float32, IMAGES)
        y = layer(placeholder, channels, bias, norm, activation, taps=taps)
        check_bits(y, {placeholder: x}, 1 + bias + norm + PARTS[activation], {"CPU": {"isa": isa}}, activation)


@pytest.mark.parametrize("isa", available_isas())
@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize("channels", [128, 330])
@pytest.mark.parametrize("activation", [tf.nn.relu, swish])
@pytest.mark.parametrize("shape", [(1, 1, 1, 6), (1, 3, 3, 150)], ids=["one pixel", "nine pixels"])
def test_few_pixels_of_many_channels_are_finished(
    isa: str, groups: int, channels: int, activation: Any, shape: tuple[int, ...]
) -> None:
    with tf.Graph().as_default(), tf.device("/cpu:0"):
        placeholder = tf.placeholder(tf.float32, shape)
        y = layer(placeholder, channels, True, True, activation, depth=shape[3] // groups, taps=1)
        check_bits(y, {placeholder: random(*shape)}, 3 + PARTS[activation], {"CPU": {"isa": isa}}, activation)


@pytest.mark.parametrize("isa", available_isas())
@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize("channels", [64, 136])
@pytest.mark.parametrize("activation", [tf.nn.relu6, swish])
def test_deep_images_hardly_larger_than_the_window_are_finished(
    isa: str, groups: int, channels: int, activation: Any
) -> None:
    with tf.Graph().as_default(), tf.device("/cpu:0"):
        placeholder = tf.placeholder(tf.float32, [2, 4, 3, 128])
        y = layer(placeholder, channels, True, True, activation, depth=128 // groups)
        check_bits(
            y, {placeholder: random(2, 4, 3, 128)}, 3 + PARTS[activation], {"CPU": {"isa": isa}}, activation, fold=False
        )


@pytest.mark.parametrize("isa", available_isas())
@pytest.mark.parametrize("channels", [3, 16, 70])
@pytest.mark.parametrize("activation", PARTS)
def test_the_bits_of_a_depthwise_convolution_are_those_of_the_parts(isa: str, channels: int, activation: Any) -> None:
    x = random(*IMAGES[:3], channels)
    x[0, 0, 0, 0], x[1, 3, 3, 1] = np.nan, -np.inf
    with tf.Graph().as_default(), tf.device("/cpu:0"):
        placeholder = tf.placeholder(tf.float32, x.shape)
        y = tf.nn.depthwise_conv2d_native(placeholder, tf.constant(random(3, 3, channels, 1)), [1, 1, 1, 1], "SAME")
        given = [tf.constant(abs(random(channels)) + i) for i in range(4)]
        y = tf.nn.fused_batch_norm(y, *given, 1e-3, is_training=False)[0]
        y = activation(y) if activation else y
        check_bits(y, {placeholder: x}, 2 + PARTS[activation], {"CPU": {"isa": isa}}, activation)


def test_channels_in_groups_are_finished_by_their_own_numbers() -> None:
    with tf.Graph().as_default(), tf.device("/cpu:0"):
        y = layer(tf.constant(random(*IMAGES[:3], 6)), 10, True, True, tf.nn.relu, depth=3)
        check_bits(y, {}, 4, fold=False)


def test_statistics_of_a_normalisation_are_handed_on() -> None:
    with tf.Graph().as_default(), tf.device("/cpu:0"), tf.Session() as session:
        x, mean, variance = tf.placeholder(tf.float32, IMAGES), random(16), abs(random(16))
        conv = tf.nn.conv2d(x, tf.constant(random(1, 1, 4, 16)), [1, 1, 1, 1], "SAME")
        outputs = tf.nn.fused_batch_norm(conv, np.ones(16, F), np.zeros(16, F), mean, variance, is_training=False)
        feeds = {x: random(*IMAGES)}
        assert covered(session, outputs, feeds) == [2]
        _, *statistics = session.run(outputs, feeds)
    np.testing.assert_array_equal(statistics, [mean, variance])


def test_a_normalisation_by_the_batch_s_statistics_runs_by_itself() -> None:
    with tf.Graph().as_default(), tf.device("/cpu:0"), tf.Session() as session:
        x, w, ones = tf.placeholder(tf.float32, IMAGES), tf.constant(random(1, 1, 4, 16)), np.ones(16, F)
        y = tf.nn.fused_batch_norm(tf.nn.conv2d(x, w, [1, 1, 1, 1], "SAME"), ones, ones)[0]
        explained = session.explain(y, {x: random(*IMAGES)}).kernels
        assert [k.covers for k in explained] == [(), ()]
        assert "is_training of FusedBatchNorm" in str([k.declined for k in explained])


def test_a_normalisation_whose_statistics_are_fetched_is_the_last_part() -> None:
    with tf.Graph().as_default(), tf.device("/cpu:0"), tf.Session() as session:
        x, ones = tf.placeholder(tf.float32, IMAGES), np.ones(16, F)
        conv = tf.nn.conv2d(x, tf.constant(random(1, 1, 4, 16)), [1, 1, 1, 1], "SAME")
        y, mean, _ = tf.nn.fused_batch_norm(conv, ones, ones, ones, ones, is_training=False)
        assert covered(session, [tf.nn.relu(y), mean], {x: random(*IMAGES)}) == [2]


def test_variables_are_read_and_their_filter_is_packed_once() -> None:
    with tf.Graph().as_default(), tf.device("/cpu:0"), tf.Session() as session:
        x, w = tf.placeholder(tf.float32, IMAGES), tf.Variable(random(1, 1, 4, 70))
        bias = tf.Variable(random(70))
        y = tf.nn.relu(tf.nn.bias_add(tf.nn.conv2d(x, w, [1, 1, 1, 1], "SAME"), bias))
        session.run(tf.global_variables_initializer())
        feeds, packed = {x: random(*IMAGES)}, 0
        for _ in range(3):
            metadata = tf.RunMetadata()
            got = session.run(y, feeds, tf.RunOptions(trace=True), metadata)
            packed += sum("prepare input" in e["name"] for e in metadata.trace["traceEvents"])
        expected = np.maximum(feeds[x] @ random(1, 1, 4, 70)[0, 0] + random(70), 0)
        np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-5)
        assert packed == 1
