"""Products of numbers rounded to bfloat16, where the device is asked for them or the tensors hold such numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import timberframe as tf
from timberframe_core.errors import InvalidArgumentError
from timberframe_cpu.device import devices
from timberframe_cpu.native import multiplies_bfloat16
from timberframe_cpu.testing import run_op

F = np.float32
BFLOAT16 = np.dtype(ml_dtypes.bfloat16)
HALVED = {"CPU": {"matmul_precision": "bfloat16"}}
EPSILON = 2.0**-24  # half a unit in the last place of 1: how far a float32 sum may be from the exact one

needs_instruction = pytest.mark.skipif(
    not multiplies_bfloat16("avx512"), reason="the processor, or this build, has no products of bfloat16"
)


def random(*shape: int) -> np.ndarray:
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(F)


def rounded(x: np.ndarray) -> np.ndarray:
    return x.astype(BFLOAT16).astype(F)


def run(build: Any, *feeds: np.ndarray, options: Any = HALVED) -> np.ndarray:
    """Returns what `build` makes of placeholders for the feeds."""
    with tf.Graph().as_default(), tf.device("/cpu:0"):
        inputs = [tf.placeholder(tf.as_dtype(f.dtype), f.shape) for f in feeds]
        y = build(*inputs)
        with tf.Session(config=tf.SessionConfig(device_options=options)) as session:
            session.run(tf.global_variables_initializer())
            result: np.ndarray = session.run(y, dict(zip(inputs, feeds, strict=True)))
            return result


def convolve(x: np.ndarray, filter: np.ndarray, stride: int, padding: str) -> np.ndarray:
    """Returns the convolution in float64."""

    def build(x: Any) -> Any:
        return tf.nn.conv2d(x, tf.constant(filter.astype(np.float64)), [1, stride, stride, 1], padding)

    return run(build, x.astype(np.float64))


def check_sums(got: np.ndarray, exact: np.ndarray, magnitudes: np.ndarray, terms: int) -> None:
    """got lies as near to the exact sums as any sum in float32 of so many products does (Higham, ASNA, 3.1)."""
    assert got.dtype == F
    assert np.all(abs(got - exact) <= (terms + 2) * EPSILON * magnitudes)


SHAPES = [
    ((1, 6, 6, 4), (3, 3, 4, 5), 1, "SAME"),
    ((2, 9, 7, 6), (3, 2, 6, 64), 2, "VALID"),
    ((1, 5, 5, 32), (3, 3, 32, 80), 1, "SAME"),
    ((1, 1, 1, 200), (1, 1, 200, 300), 1, "SAME"),
    ((3, 8, 8, 16), (1, 1, 16, 130), 1, "SAME"),
    ((2, 6, 6, 8), (3, 3, 4, 6), 1, "SAME"),  # in two groups
]


@needs_instruction
@pytest.mark.parametrize(("image", "filter", "stride", "padding"), SHAPES)
@pytest.mark.parametrize("variable", [False, True])
def test_a_convolution_is_the_float32_sum_of_rounded_numbers(
    image: Sequence[int], filter: Sequence[int], stride: int, padding: str, variable: bool
) -> None:
    x, w = random(*image), random(*filter)

    def build(x: Any) -> Any:
        return tf.nn.conv2d(x, tf.Variable(w) if variable else tf.constant(w), [1, stride, stride, 1], padding)

    got, exact = run(build, x), convolve(rounded(x), rounded(w), stride, padding)
    check_sums(got, exact, convolve(abs(rounded(x)), abs(rounded(w)), stride, padding), w[..., 0].size)
    assert not np.array_equal(got, run(build, x, options={}))


@needs_instruction
@pytest.mark.parametrize("rows", [1, 7, 700])
@pytest.mark.parametrize("transposed", [False, True])
def test_a_product_is_the_float32_sum_of_rounded_numbers(rows: int, transposed: bool) -> None:
    x, w = random(rows, 300), random(300, 256)

    def build(x: Any) -> Any:
        weights = tf.constant(np.ascontiguousarray(w.T) if transposed else w)
        return tf.matmul(x, weights, transpose_b=transposed)

    exact, magnitudes = rounded(x).astype(np.float64) @ rounded(w), abs(rounded(x)).astype(np.float64) @ abs(rounded(w))
    check_sums(run(build, x), exact, magnitudes, 300)


@needs_instruction
def test_what_follows_in_a_layer_is_computed_in_float32() -> None:
    x, w, bias = random(2, 6, 6, 8), random(3, 3, 8, 20), random(20)
    statistics = [abs(random(20)) + i for i in range(4)]

    def build(x: Any) -> Any:
        y = tf.nn.bias_add(tf.nn.conv2d(x, tf.constant(w), [1, 1, 1, 1], "SAME"), tf.constant(bias))
        y = tf.nn.fused_batch_norm(y, *map(tf.constant, statistics), 1e-3, is_training=False)[0]
        return tf.nn.relu6(y)

    def apart(x: Any) -> Any:
        y = tf.nn.conv2d(x, tf.constant(w), [1, 1, 1, 1], "SAME")
        with tf.control_dependencies([y]):  # so that no kernel runs both
            y = tf.identity(y)
        y = tf.nn.bias_add(y, tf.constant(bias))
        y = tf.nn.fused_batch_norm(y, *map(tf.constant, statistics), 1e-3, is_training=False)[0]
        return tf.nn.relu6(y)

    np.testing.assert_array_equal(run(build, x), run(apart, x))


@needs_instruction
def test_a_variable_that_changed_is_rounded_again() -> None:
    x, w = random(1, 4, 4, 8), random(1, 1, 8, 32)
    with tf.Graph().as_default(), tf.Session(config=tf.SessionConfig(device_options=HALVED)) as session:
        weights = tf.Variable(w)
        y = tf.nn.conv2d(tf.constant(x), weights, [1, 1, 1, 1], "SAME")
        session.run(weights.initializer)
        before = session.run(y)
        session.run(weights.assign(2 * w))
        np.testing.assert_array_equal(session.run(y), 2 * before)


@needs_instruction
@pytest.mark.parametrize("wrong", [np.inf, np.nan])
@pytest.mark.parametrize("channel", [0, 1])
def test_taps_outside_the_image_meet_numbers_that_are_not_finite(wrong: float, channel: int) -> None:
    w = random(3, 3, 2, 16)
    w[0, 0, channel, 3] = wrong
    got = run(lambda x: tf.nn.conv2d(x, tf.constant(w), [1, 1, 1, 1], "SAME"), np.ones((1, 20, 20, 2), F))
    assert np.isnan(got[0, 0, :, 3]).all()
    assert np.isfinite(got[..., :3]).all()


@pytest.mark.parametrize("fence", ["start", "end"])
@pytest.mark.parametrize(("depth", "channels"), [(2, 3), (6, 16), (34, 70), (3, 16)])
def test_sums_of_bfloat16_tensors_are_rounded_once(depth: int, channels: int, fence: str) -> None:
    x, w = random(2, 5, 6, depth).astype(BFLOAT16), random(3, 3, depth, channels).astype(BFLOAT16)
    attrs = {"strides": (1, 1, 1, 1), "padding": "SAME"}
    (got,) = run_op("Conv2D", attrs, [x, w], constants=(1,), fence=fence)
    exact = convolve(x.astype(F), w.astype(F), 1, "SAME")
    magnitudes = convolve(abs(x.astype(F)), abs(w.astype(F)), 1, "SAME")
    assert got.dtype == BFLOAT16
    sums = (9 * depth + 2) * EPSILON * magnitudes
    assert np.all(abs(got.astype(np.float64) - exact) <= 2.0**-8 * (abs(exact) + sums) + sums)


@needs_instruction
def test_an_odd_number_of_channels_is_computed_in_float32() -> None:
    x, w = random(1, 5, 5, 3), random(3, 3, 3, 16)

    def build(x: Any) -> Any:
        return tf.nn.conv2d(x, tf.constant(w), [1, 1, 1, 1], "SAME")

    np.testing.assert_array_equal(run(build, x), run(build, x, options={}))


def test_another_instruction_set_computes_in_float32() -> None:
    x, w = random(1, 5, 5, 4), random(3, 3, 4, 16)

    def build(x: Any) -> Any:
        return tf.nn.conv2d(x, tf.constant(w), [1, 1, 1, 1], "SAME")

    given = {"CPU": {"matmul_precision": "bfloat16", "isa": "scalar"}}
    np.testing.assert_array_equal(run(build, x, options=given), run(build, x, options={"CPU": {"isa": "scalar"}}))


def test_an_unknown_precision_names_its_option() -> None:
    known = "CPU: device option matmul_precision is 'half'; one of 'float32', 'bfloat16' is required"
    with pytest.raises(InvalidArgumentError, match=known):
        devices({"options": {"CPU": {"matmul_precision": "half"}}, "count": {}, "threads": 1, "memory_limit": {}})
