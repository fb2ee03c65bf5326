"""Pooling, batch normalisation and cross entropy kernels."""

from typing import Any

import numpy as np
import pytest

from timberframe_core.errors import InvalidArgumentError
from timberframe_cpu.native import available_isas
from timberframe_cpu.testing import run_op

WINDOW: dict[str, Any] = {"ksize": (1, 2, 2, 1), "strides": (1, 1, 1, 1), "padding": "VALID"}
NONE = np.zeros(0, np.float32)


def _random(*shape: int) -> np.ndarray:
    return np.random.default_rng(sum(shape)).uniform(-2, 2, shape).astype(np.float32)


@pytest.mark.parametrize("isa", available_isas())
@pytest.mark.parametrize("channels", [1, 3, 16, 300])
def test_pooling_takes_maximum_and_mean_of_each_channel(isa: str, channels: int) -> None:
    x = _random(2, 4, 4, channels)
    blocks = x.reshape(2, 2, 2, 2, 2, channels)
    attrs = {"ksize": (1, 2, 2, 1), "strides": (1, 2, 2, 1), "padding": "VALID"}
    np.testing.assert_array_equal(run_op("MaxPool", attrs, [x], isa)[0], blocks.max(axis=(2, 4)))
    np.testing.assert_allclose(run_op("AvgPool", attrs, [x], isa)[0], blocks.mean(axis=(2, 4)), atol=1e-6)


def test_max_pool_passes_over_nan() -> None:
    x = np.array([[np.nan, 1], [2, np.nan]], np.float32).reshape(1, 2, 2, 1)
    assert run_op("MaxPool", WINDOW, [x])[0].item() == 2


def test_max_pool_of_nothing_but_nan_is_the_lowest_number() -> None:
    x = np.full((1, 2, 2, 1), np.nan, np.float32)
    assert run_op("MaxPool", WINDOW, [x])[0].item() == np.finfo(np.float32).min


def test_average_does_not_count_padding() -> None:
    x = np.ones((1, 3, 3, 1), np.float32)
    (got,) = run_op("AvgPool", {"ksize": (1, 3, 3, 1), "strides": (1, 1, 1, 1), "padding": "SAME"}, [x])
    np.testing.assert_array_equal(got, x)


def test_max_pool_over_channels() -> None:
    x = np.arange(12, dtype=np.float32).reshape(1, 1, 2, 6)
    (got,) = run_op("MaxPool", {"ksize": (1, 1, 1, 3), "strides": (1, 1, 1, 3), "padding": "VALID"}, [x])
    np.testing.assert_array_equal(got.ravel(), [2, 5, 8, 11])


def _moments(x: np.ndarray, isa: str) -> list[np.ndarray]:
    """Mean and variance that training saves, of tensors with their channels last."""
    channels = x.shape[-1]
    ones = np.ones(channels, np.float32)
    attrs = {"is_training": True, "epsilon": 1e-3, "data_format": "NHWC", "exponential_avg_factor": 1.0}
    return run_op("FusedBatchNormV3", attrs, [x, ones, ones, NONE, NONE], isa)[3:5]


@pytest.mark.parametrize("isa", available_isas())
@pytest.mark.parametrize("channels", [1, 7, 37, 200])
@pytest.mark.parametrize("first", [0.0, 3e4])
def test_moments_of_channels_far_from_zero_keep_their_digits(isa: str, channels: int, first: float) -> None:
    x = _random(6, 5, 9, channels) + np.float32(1e4)
    x[0, 0, 0] += np.float32(first)
    mean, variance = _moments(x, isa)
    wide = x.astype(np.float64).reshape(-1, channels)
    np.testing.assert_allclose(mean, wide.mean(0), rtol=1e-7)
    np.testing.assert_allclose(variance, wide.var(0), rtol=1e-6)


def test_a_constant_channel_has_no_variance_and_an_infinite_first_value_an_infinite_mean() -> None:
    x = np.full((2, 3, 3, 2), 123456.7, np.float32)
    x[0, 0, 0, 1] = np.inf
    mean, variance = _moments(x, available_isas()[-1])
    assert mean.tolist() == [np.float32(123456.7), np.inf]
    assert variance[0] == 0
    assert np.isnan(variance[1])


@pytest.mark.parametrize("data_format", ["NHWC", "NCHW"])
def test_training_normalises_with_the_batch(data_format: str) -> None:
    x, scale, offset = _random(4, 5, 6, 3), _random(3), _random(3)
    given = x if data_format == "NHWC" else np.ascontiguousarray(np.moveaxis(x, 3, 1))
    y, mean, variance, saved_mean, saved_variance, reserved = run_op(
        "FusedBatchNormV3", {"data_format": data_format, "epsilon": 0.01}, [given, scale, offset, NONE, NONE]
    )
    wide = x.astype(np.float64)
    center, spread = wide.mean(axis=(0, 1, 2)), wide.var(axis=(0, 1, 2))
    expected = (wide - center) / np.sqrt(spread + 0.01) * scale + offset
    np.testing.assert_allclose(y if data_format == "NHWC" else np.moveaxis(y, 1, 3), expected, atol=1e-5)
    np.testing.assert_allclose(mean, center, atol=1e-6)
    np.testing.assert_allclose(variance, spread * 120 / 119, rtol=1e-6)
    np.testing.assert_array_equal(mean, saved_mean)
    np.testing.assert_allclose(saved_variance, spread, rtol=1e-6)
    assert reserved.shape == (0,)


def test_running_statistics_are_blended() -> None:
    x, one = _random(2, 2, 2, 1), np.ones(1, np.float32)
    plain = run_op("FusedBatchNormV3", {}, [x, one, one, NONE, NONE])
    blended = run_op("FusedBatchNormV3", {"exponential_avg_factor": 0.25}, [x, one, one, 2 * one, 3 * one])
    np.testing.assert_allclose(blended[1], 0.75 * 2 + 0.25 * plain[1], rtol=1e-6)
    np.testing.assert_allclose(blended[2], 0.75 * 3 + 0.25 * plain[2], rtol=1e-6)


def test_variance_of_large_values_is_not_lost() -> None:
    x = (1e4 + np.random.default_rng(1).uniform(-1, 1, (64, 8, 8, 2))).astype(np.float32)
    one = np.ones(2, np.float32)
    saved = run_op("FusedBatchNormV3", {}, [x, one, one, NONE, NONE])[4]
    np.testing.assert_allclose(saved, x.astype(np.float64).var(axis=(0, 1, 2)), rtol=1e-6)


def test_batch_statistics_do_not_depend_on_the_number_of_threads() -> None:
    x, one = _random(16, 33, 31, 5), np.ones(5, np.float32)
    runs = [run_op("FusedBatchNormV3", {}, [x, one, one, NONE, NONE], threads=n) for n in (1, 4)]
    for a, b in zip(*runs, strict=True):
        np.testing.assert_array_equal(a, b)


def test_empty_batch_has_nan_statistics() -> None:
    one = np.ones(2, np.float32)
    outputs = run_op("FusedBatchNormV3", {}, [np.zeros((0, 2, 2, 2), np.float32), one, one, NONE, NONE])
    assert np.isnan(outputs[1]).all()
    assert not outputs[3].any()


def test_cross_entropy_survives_large_logits() -> None:
    features = np.array([[1000.0, 0.0], [-1000.0, 0.0]], np.float32)
    loss, gradient = run_op("SoftmaxCrossEntropyWithLogits", {}, [features, np.array([[1, 0], [1, 0]], np.float32)])
    np.testing.assert_array_equal(loss, [0, 1000])
    np.testing.assert_array_equal(gradient, [[0, 0], [-1, 1]])


def test_sparse_cross_entropy_agrees_with_the_dense_one() -> None:
    features, labels = _random(5, 300), np.array([0, 299, 7, 150, 7])
    dense = run_op("SoftmaxCrossEntropyWithLogits", {}, [features, np.eye(300, dtype=np.float32)[labels]])
    sparse = run_op("SparseSoftmaxCrossEntropyWithLogits", {}, [features, labels])
    for a, b in zip(dense, sparse, strict=True):
        np.testing.assert_allclose(a, b, atol=1e-6)


def test_label_out_of_range_is_named() -> None:
    with pytest.raises(InvalidArgumentError, match=r"label 3 of row 1 is outside \[0, 3\)"):
        run_op("SparseSoftmaxCrossEntropyWithLogits", {}, [_random(2, 3), np.array([0, 3])])
