"""Backward kernels of convolution, pooling and normalisation, in every variant and whatever the number of threads."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest

from timberframe_core.errors import InvalidArgumentError
from timberframe_core.ops.definition import registry
from timberframe_cpu.native import available_isas
from timberframe_cpu.testing import infer_attrs, run_op

EVEN: dict[str, Any] = {"strides": (1, 1, 1, 1), "padding": "SAME"}
WINDOW: dict[str, Any] = {"ksize": (1, 2, 2, 1), "strides": (1, 1, 1, 1), "padding": "VALID"}
CONVOLUTIONS = ("Conv2D", "DepthwiseConv2dNative")


def _random(shape: Sequence[int], dtype: Any = np.float32) -> np.ndarray:
    return np.random.default_rng(sum(shape)).uniform(-1, 1, shape).astype(dtype)


def _check(op: str, attrs: Mapping[str, Any], inputs: Sequence[np.ndarray], isa: str | None = None) -> None:
    """Against the reference in float64; a sum of n products of numbers below one is off by n 2^-24 at most, twice."""
    definition = registry.get(op)
    assert definition.reference is not None
    wide = [a if a.dtype.kind == "i" else a.astype(np.float64) for a in inputs]
    expected = definition.reference(infer_attrs(definition, dict(attrs), wide), *wide)
    (got,) = run_op(op, attrs, inputs, isa)
    np.testing.assert_allclose(got, expected, rtol=0, atol=2.0**-23 * max(a.size for a in inputs))


def _check_both(op: str, attrs: Mapping[str, Any], x: np.ndarray, w: np.ndarray, isa: str | None = None) -> None:
    """Both gradients of a convolution of x by w."""
    dy = _random(run_op(op, attrs, [x, w])[0].shape, x.dtype)
    _check(f"{op}BackpropInput", attrs, [np.array(x.shape, np.int32), w, dy], isa)
    _check(f"{op}BackpropFilter", attrs, [x, np.array(w.shape, np.int32), dy], isa)


@pytest.mark.parametrize("isa", available_isas())
@pytest.mark.parametrize("channels", [1, 3, 16, 33, 64, 130])
def test_every_number_of_channels_is_right(isa: str, channels: int) -> None:
    _check_both("Conv2D", EVEN, _random((2, 7, 9, 5)), _random((3, 3, 5, channels)), isa)
    _check_both("Conv2D", EVEN, _random((1, 5, 4, channels)), _random((2, 3, channels, 4)), isa)
    _check_both("DepthwiseConv2dNative", EVEN, _random((1, 5, 4, channels)), _random((3, 3, channels, 1)), isa)


@pytest.mark.parametrize("op", CONVOLUTIONS)
@pytest.mark.parametrize("stride", [1, 2, 3, 5])
@pytest.mark.parametrize("dilation", [1, 2, 3])
def test_taps_of_strided_and_dilated_windows_meet_their_pixels(op: str, stride: int, dilation: int) -> None:
    attrs = {"strides": (1, stride, 2, 1), "dilations": (1, dilation, 1, 1), "padding": "SAME"}
    _check_both(op, attrs, _random((2, 11, 13, 3)), _random((3, 4, 3, 2)))


def test_pixels_under_no_tap_have_no_gradient() -> None:
    dy, sizes = np.ones((1, 2, 2, 1), np.float32), np.array([1, 4, 4, 1], np.int32)
    attrs = {"strides": (1, 2, 2, 1), "padding": "VALID"}
    (got,) = run_op("Conv2DBackpropInput", attrs, [sizes, np.ones((1, 1, 1, 1), np.float32), dy])
    np.testing.assert_array_equal(got[0, :, :, 0], np.kron(np.ones((2, 2)), [[1, 0], [0, 0]]))


@pytest.mark.parametrize("isa", available_isas())
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("depth", "groups"), [(3, 1), (24, 1), (32, 2)])
@pytest.mark.parametrize("batch", [5, 50, 97])
def test_gradients_by_the_filter_of_many_images_are_right(
    isa: str, dtype: Any, depth: int, groups: int, batch: int
) -> None:
    beyond = {"strides": (1, 1, 1, 1), "padding": "EXPLICIT", "explicit_paddings": (0, 0, 4, 3, 3, 4, 0, 0)}
    spread = EVEN | {"strides": (1, 1, 2, 1), "dilations": (1, 2, 1, 1)}
    for attrs in (EVEN, beyond, spread):
        x, w = _random((batch, 4, 5, depth), dtype), _random((5, 3, depth // groups, 34), dtype)
        dy = _random(run_op("Conv2D", attrs, [x, w])[0].shape, dtype)
        _check("Conv2DBackpropFilter", attrs, [x, np.array(w.shape, np.int32), dy], isa)


@pytest.mark.parametrize("isa", available_isas())
@pytest.mark.parametrize("batch", [3, 70])
def test_gradients_that_are_not_finite_meet_the_zeros_outside_the_image(isa: str, batch: int) -> None:
    x, w = _random((batch, 5, 4, 20)), np.array((3, 3, 20, 34), np.int32)
    dy = _random((batch, 5, 4, 34))
    dy[1, 0, 0, 7] = np.inf
    around = np.pad(x, ((0, 0), (1, 1), (1, 1), (0, 0)))
    (padded,) = run_op("Conv2DBackpropFilter", EVEN | {"padding": "VALID"}, [around, w, dy], isa)
    (got,) = run_op("Conv2DBackpropFilter", EVEN, [x, w, dy], isa)
    assert np.isnan(got[0, 0, :, 7]).all()
    np.testing.assert_allclose(got, padded, rtol=0, atol=1e-3)


@pytest.mark.parametrize("isa", available_isas())
@pytest.mark.parametrize("strides", [(1, 1, 1, 1), (1, 2, 2, 1), (1, 1, 3, 1)])
@pytest.mark.parametrize(("depth", "channels"), [(2, 3), (20, 34), (70, 66)])
@pytest.mark.parametrize("op", CONVOLUTIONS)
def test_infinite_weights_reach_the_pixels_under_them_alone(
    op: str, depth: int, channels: int, strides: tuple[int, ...], isa: str
) -> None:
    channels = channels if op == "Conv2D" else channels % 4
    for attrs in (EVEN, EVEN | {"dilations": (1, 2, 1, 1)}, EVEN | {"padding": "VALID"}):
        attrs = attrs | {"strides": strides}
        x, w = _random((3, 9, 30, depth)), _random((3, 5, depth, channels))
        dy = _random(run_op(op, attrs, [x, w])[0].shape)
        w[0, 0, 1, 1], w[2, 4, 0, 0] = np.inf, np.nan
        inputs = [np.array(x.shape, np.int32), w, dy]
        _check(f"{op}BackpropInput", attrs, inputs, isa)
        (prepared,) = run_op(f"{op}BackpropInput", attrs, inputs, isa, constants=(1,))
        np.testing.assert_array_equal(prepared, run_op(f"{op}BackpropInput", attrs, inputs, isa)[0])


@pytest.mark.parametrize("isa", available_isas())
def test_infinite_weights_reach_the_pixels_of_a_volume_under_them_alone(isa: str) -> None:
    attrs = {"strides": (1, 2, 1, 2, 1), "padding": "SAME"}
    x, w = _random((2, 5, 6, 7, 3)), _random((3, 3, 3, 3, 5))
    dy = _random(run_op("Conv3D", attrs, [x, w])[0].shape)
    w[0, 0, 0, 1, 1] = np.inf
    _check("Conv3DBackpropInputV2", attrs, [np.array(x.shape, np.int32), w, dy], isa)


@pytest.mark.parametrize("op", CONVOLUTIONS)
def test_an_empty_batch_gives_a_filter_gradient_of_zeros(op: str) -> None:
    sizes, x, dy = (
        np.array([3, 3, 2, 2], np.int32),
        _random((0, 5, 5, 2)),
        _random((0, 5, 5, 2 if op == "Conv2D" else 4)),
    )
    np.testing.assert_array_equal(run_op(f"{op}BackpropFilter", EVEN, [x, sizes, dy])[0], 0)


def test_groups_get_gradients_of_their_own_channels_only() -> None:
    _check_both("Conv2D", EVEN, _random((2, 5, 5, 12)), _random((3, 3, 3, 20)))


def test_windows_of_more_taps_than_are_held_at_a_time_are_right() -> None:
    _check_both("Conv2D", EVEN, _random((1, 20, 21, 2)), _random((11, 9, 2, 5)))
    _check_both("DepthwiseConv2dNative", EVEN, _random((1, 20, 21, 17)), _random((11, 9, 17, 1)))


@pytest.mark.parametrize("op", CONVOLUTIONS)
def test_gradients_of_convolution_do_not_depend_on_the_number_of_threads(op: str) -> None:
    x, w = _random((3, 31, 29, 48)), _random((3, 3, 48, 20 if op == "Conv2D" else 1))
    dy = _random((3, 31, 29, 20 if op == "Conv2D" else 48))
    for name, inputs in (
        (f"{op}BackpropInput", [np.array(x.shape, np.int32), w, dy]),
        (f"{op}BackpropFilter", [x, np.array(w.shape, np.int32), dy]),
    ):
        one, four = (run_op(name, EVEN, inputs, threads=n)[0] for n in (1, 4))
        np.testing.assert_array_equal(one, four)


@pytest.mark.parametrize("isa", available_isas())
@pytest.mark.parametrize("data_format", ["NDHWC", "NCDHW"])
def test_convolution_of_volumes_and_its_gradients_are_right(isa: str, data_format: str) -> None:
    strides, shape = (
        ((1, 2, 1, 1, 1), (2, 5, 4, 6, 3)) if data_format == "NDHWC" else ((1, 1, 2, 1, 1), (2, 3, 5, 4, 6))
    )
    attrs = {"strides": strides, "padding": "SAME", "data_format": data_format}
    x, w = _random(shape), _random((3, 2, 3, 3, 20))
    _check("Conv3D", attrs, [x, w], isa)
    dy = _random(run_op("Conv3D", attrs, [x, w])[0].shape)
    _check("Conv3DBackpropInputV2", attrs, [np.array(x.shape, np.int32), w, dy], isa)
    _check("Conv3DBackpropFilterV2", attrs, [x, np.array(w.shape, np.int32), dy], isa)


def test_half_precision_sums_are_rounded_once() -> None:
    x = np.full((1, 64, 64, 1), 1 / 64, np.float16)  # a running float16 sum would stop growing at 32
    sizes, dy = np.array([1, 1, 1, 1], np.int32), np.ones((1, 64, 64, 1), np.float16)
    assert run_op("Conv2DBackpropFilter", EVEN, [x, sizes, dy])[0].item() == 64.0


@pytest.mark.parametrize("isa", available_isas())
@pytest.mark.parametrize("channels", [1, 3, 32, 67])
def test_each_window_gives_its_gradient_to_its_maximum(isa: str, channels: int) -> None:
    x = np.random.default_rng(0).permutation(2 * 5 * 6 * channels).reshape(2, 5, 6, channels).astype(np.float32)
    attrs = {"ksize": (1, 3, 2, 1), "strides": (1, 1, 2, 1), "padding": "SAME"}
    (y,) = run_op("MaxPool", attrs, [x])
    _check("MaxPoolGrad", attrs, [x, y, _random(y.shape)], isa)
    _check("MaxPoolGradGrad", attrs, [x, y, _random(x.shape)], isa)
    _check("AvgPoolGrad", attrs, [np.array(x.shape, np.int32), _random(y.shape)], isa)


@pytest.mark.parametrize("isa", available_isas())
@pytest.mark.parametrize("channels", [1, 3, 67])
@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.int32, np.uint8])
@pytest.mark.parametrize("padding", ["SAME", "VALID"])
@pytest.mark.parametrize("window", [(2, 2), (3, 2), (1, 2), (2, 1)])
def test_windows_that_do_not_overlap_give_each_pixel_its_gradient(
    isa: str, channels: int, dtype: Any, padding: str, window: tuple[int, int]
) -> None:
    x = np.random.default_rng(1).integers(0, 5, (3, 7, 5, channels)).astype(dtype)
    attrs = {"ksize": (1, *window, 1), "strides": (1, 3, 2, 1), "padding": padding}
    (y,) = run_op("MaxPool", attrs, [x])
    _check("MaxPoolGrad", attrs, [x, y, np.arange(y.size).reshape(y.shape).astype(dtype)], isa)


def test_the_first_of_equal_maxima_gets_the_gradient() -> None:
    x, dy = np.zeros((1, 2, 2, 1), np.float32), np.ones((1, 1, 1, 1), np.float32)
    (got,) = run_op("MaxPoolGrad", WINDOW, [x, dy * 0, dy])
    np.testing.assert_array_equal(got.ravel(), [1, 0, 0, 0])


def test_places_of_maxima_lead_back_to_them() -> None:
    x = _random((2, 4, 6, 3))
    y, places = run_op("MaxPoolWithArgmax", WINDOW | {"include_batch_in_index": True}, [x])
    np.testing.assert_array_equal(x.ravel()[places], y)


def test_a_place_outside_the_image_is_an_error() -> None:
    x, dy = np.zeros((1, 2, 2, 1), np.float32), np.ones((1, 1, 1, 1), np.float32)
    with pytest.raises(InvalidArgumentError, match=r"argmax has 4 in image 0; it must lie in \[0, 4\)"):
        run_op("MaxPoolGradWithArgmax", WINDOW, [x, dy, np.full((1, 1, 1, 1), 4)])


@pytest.mark.parametrize("op", ["FusedBatchNormGradV3", "MaxPoolGrad", "BiasAddGrad"])
def test_other_gradients_do_not_depend_on_the_number_of_threads(op: str) -> None:
    x, one = _random((8, 40, 40, 24)), np.ones(24, np.float32)
    cases: dict[str, tuple[dict[str, Any], list[np.ndarray]]] = {
        "FusedBatchNormGradV3": ({}, [x, x, one, one, one, np.zeros(0, np.float32)]),
        "MaxPoolGrad": (EVEN | {"ksize": (1, 3, 3, 1)}, [x, x, x]),
        "BiasAddGrad": ({}, [x]),
    }
    attrs, inputs = cases[op]
    for one_thread, four in zip(*(run_op(op, attrs, inputs, threads=n) for n in (1, 4)), strict=True):
        np.testing.assert_array_equal(one_thread, four)
