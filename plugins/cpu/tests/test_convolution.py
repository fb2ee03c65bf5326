"""Convolution kernels against their references, in every variant and whatever the number of threads."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import timberframe as tf
from timberframe_core.ops.definition import registry
from timberframe_cpu.native import available_isas
from timberframe_cpu.testing import infer_attrs, run_op

UNIT: dict[Any, float] = {np.float32: 1e-5, np.float64: 1e-13, np.float16: 2e-3, ml_dtypes.bfloat16: 2e-2, np.int32: 0}
EVEN: dict[str, Any] = {"strides": (1, 1, 1, 1), "padding": "SAME"}


def _random(shape: tuple[int, ...], dtype: Any = np.float32) -> np.ndarray:
    rng = np.random.default_rng(len(shape) + sum(shape))
    return rng.integers(-9, 9, shape).astype(dtype) if dtype is np.int32 else rng.uniform(-1, 1, shape).astype(dtype)


def _check(op: str, attrs: Mapping[str, Any], x: np.ndarray, w: np.ndarray, isa: str | None = None) -> None:
    definition = registry.get(op)
    assert definition.reference is not None
    wide = [a if a.dtype.kind == "i" else a.astype(np.float64) for a in (x, w)]
    expected = definition.reference(infer_attrs(definition, dict(attrs), wide), *wide)
    (got,) = run_op(op, attrs, [x, w], isa)
    assert got.dtype == x.dtype
    limit = UNIT[x.dtype.type] * max(1.0, float(np.abs(expected).max(initial=0.0)))
    np.testing.assert_allclose(got.astype(np.float64), expected.astype(np.float64), rtol=0, atol=limit)


@pytest.mark.parametrize("isa", available_isas())
@pytest.mark.parametrize("channels", [1, 3, 16, 33, 64, 130])
def test_every_number_of_output_channels_is_right(isa: str, channels: int) -> None:
    _check("Conv2D", EVEN, _random((2, 7, 9, 5)), _random((3, 3, 5, channels)), isa)


@pytest.mark.parametrize("dtype", UNIT)
@pytest.mark.parametrize("isa", available_isas())
def test_every_dtype_is_right(dtype: Any, isa: str) -> None:
    _check("Conv2D", EVEN, _random((1, 6, 5, 4), dtype), _random((3, 2, 4, 19), dtype), isa)


@pytest.mark.parametrize(
    "attrs",
    [
        {"strides": (1, 2, 3, 1), "padding": "SAME"},
        {"strides": (1, 2, 1, 1), "padding": "VALID"},
        {"strides": (1, 1, 1, 1), "padding": "SAME", "dilations": (1, 2, 3, 1)},
        {"strides": (1, 1, 2, 1), "padding": "EXPLICIT", "explicit_paddings": (0, 0, 2, 1, 0, 3, 0, 0)},
    ],
    ids=["strides", "valid", "dilations", "explicit"],
)
@pytest.mark.parametrize("op", ["Conv2D", "DepthwiseConv2dNative"])
def test_windows_are_placed_as_the_attrs_say(op: str, attrs: Mapping[str, Any]) -> None:
    _check(op, attrs, _random((2, 11, 13, 6)), _random((3, 3, 6, 2)))


@pytest.mark.parametrize("isa", available_isas())
@pytest.mark.parametrize("channels", [3, 8, 20, 56, 70])
@pytest.mark.parametrize("taps", [3, 5, 7])
@pytest.mark.parametrize("width", [43, 18])
@pytest.mark.parametrize(("stride", "dilation"), [(1, 1), (2, 1), (1, 2)])
def test_depthwise_windows_are_right_in_wide_rows(
    isa: str, channels: int, taps: int, width: int, stride: int, dilation: int
) -> None:
    attrs = EVEN | {"strides": (1, stride, stride, 1), "dilations": (1, dilation, dilation, 1)}
    _check("DepthwiseConv2dNative", attrs, _random((2, 7, width, channels)), _random((taps, taps, channels, 1)), isa)


@pytest.mark.parametrize("isa", available_isas())
@pytest.mark.parametrize("size", [(1, 4), (2, 6), (3, 5)])
def test_depthwise_windows_are_right_where_most_taps_are_outside(isa: str, size: tuple[int, int]) -> None:
    _check("DepthwiseConv2dNative", EVEN, _random((2, *size, 24)), _random((5, 5, 24, 1)), isa)


@pytest.mark.parametrize("isa", available_isas())
@pytest.mark.parametrize("taps", [3, 5, 7])
@pytest.mark.parametrize("channels", [3, 12, 16, 22, 44])
@pytest.mark.parametrize("width", [3, 5, 6, 9])
def test_depthwise_windows_are_right_in_narrow_images(isa: str, taps: int, channels: int, width: int) -> None:
    _check("DepthwiseConv2dNative", EVEN, _random((2, 4, width, channels)), _random((taps, taps, channels, 1)), isa)


@pytest.mark.parametrize("isa", available_isas())
@pytest.mark.parametrize("strides", [(1, 1), (2, 2), (1, 3)])
@pytest.mark.parametrize("channels", [3, 11, 16, 24, 72])
@pytest.mark.parametrize("width", [5, 13, 31])
def test_pixels_by_themselves_are_right_in_rows_of_any_width(
    isa: str, strides: tuple[int, int], channels: int, width: int
) -> None:
    attrs = EVEN | {"strides": (1, *strides, 1)}
    for depth in (4, 2):  # the latter in two groups
        _check("Conv2D", attrs, _random((3, 17, width, 4)), _random((1, 1, depth, channels - channels % 2)), isa)
        _check("Conv2D", attrs, _random((3, 17, width, depth)), _random((1, 1, depth, channels)), isa)


@pytest.mark.parametrize("attrs", [EVEN, EVEN | {"strides": (1, 2, 1, 1)}, EVEN | {"padding": "VALID"}], ids=str)
@pytest.mark.parametrize("isa", available_isas())
@pytest.mark.parametrize("depth", [6, 3])
def test_windows_of_one_tap_are_right(attrs: Mapping[str, Any], isa: str, depth: int) -> None:
    _check("Conv2D", attrs, _random((3, 5, 7, 6)), _random((1, 1, depth, 70)), isa)


_BEYOND = {"strides": (1, 1, 1, 1), "padding": "EXPLICIT", "explicit_paddings": (0, 0, 6, 7, 5, 8, 0, 0)}
_SPREAD = {"strides": (1, 1, 2, 1), "padding": "SAME", "dilations": (1, 2, 3, 1)}


@pytest.mark.parametrize("isa", available_isas())
@pytest.mark.parametrize("attrs", [EVEN, _BEYOND, _SPREAD], ids=["same", "beyond", "spread"])
@pytest.mark.parametrize(("depth", "groups"), [(3, 1), (24, 1), (40, 2)])
@pytest.mark.parametrize("batch", [5, 6, 13])
def test_images_of_a_batch_are_convolved_as_each_by_itself(
    isa: str, attrs: Mapping[str, Any], depth: int, groups: int, batch: int
) -> None:
    x, w = _random((batch, 4, 5, depth)), _random((5, 3, depth // groups, 34))
    (whole,) = run_op("Conv2D", attrs, [x, w], isa)
    each = [run_op("Conv2D", attrs, [x[i : i + 1], w], isa)[0] for i in range(batch)]
    np.testing.assert_array_equal(whole, np.concatenate(each))
    _check("Conv2D", attrs, x[:1], w, isa)
    sizes = np.array(x.shape, np.int32)
    (back,) = run_op("Conv2DBackpropInput", attrs, [sizes, w, whole], isa)
    sizes[0] = 1
    parts = [run_op("Conv2DBackpropInput", attrs, [sizes, w, y], isa)[0] for y in each]
    np.testing.assert_array_equal(back, np.concatenate(parts))


@pytest.mark.parametrize("isa", available_isas())
@pytest.mark.parametrize(
    "attrs", [EVEN, EVEN | {"strides": (1, 2, 2, 1)}, _BEYOND, _SPREAD], ids=["same", "apart", "beyond", "spread"]
)
@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize("batch", [1, 3, 8])
def test_deep_images_hardly_larger_than_the_window_are_right(
    isa: str, attrs: Mapping[str, Any], groups: int, batch: int
) -> None:
    x, w = _random((batch, 5, 4, 64 * groups)), _random((5, 3, 64, 104 * groups))
    _check("Conv2D", attrs, x, w, isa)
    (plain,) = run_op("Conv2D", attrs, [x, w], isa)
    for threads in (1, 3):
        (packed,) = run_op("Conv2D", attrs, [x, w], isa, constants=(1,), threads=threads)
        np.testing.assert_array_equal(packed, plain)
    sizes = np.array(x.shape, np.int32)
    backs = [
        run_op("Conv2DBackpropInput", attrs, [sizes, w, plain], isa, constants=constants)[0] for constants in ((), (1,))
    ]
    np.testing.assert_array_equal(*backs)


@pytest.mark.parametrize("isa", available_isas())
@pytest.mark.parametrize(
    "attrs", [EVEN, EVEN | {"strides": (1, 2, 2, 1)}, EVEN | {"strides": (1, 4, 1, 1)}, _BEYOND], ids=str
)
@pytest.mark.parametrize(("depth", "channels"), [(1, 32), (3, 70), (32, 5), (70, 27)])
@pytest.mark.parametrize("value", [1, np.nan])
def test_lines_of_an_image_are_convolved_as_if_padded(
    isa: str, attrs: Mapping[str, Any], depth: int, channels: int, value: float
) -> None:
    x, w = _random((3, 9, 29, depth)), _random((3, 5, depth, channels))
    if np.isfinite(value):
        _check("Conv2D", attrs, x, w, isa)
    w[2, 0, 0, 3] = value
    sides = attrs.get("explicit_paddings")
    if sides is None:
        above, left = (
            max((-(-n // s) - 1) * s + k - n, 0) for n, s, k in zip((9, 29), attrs["strides"][1:3], (3, 5), strict=True)
        )
        sides = (0, 0, above // 2, above - above // 2, left // 2, left - left // 2, 0, 0)
    around = np.pad(x, [(sides[2 * i], sides[2 * i + 1]) for i in range(4)])
    plain = {"strides": attrs["strides"], "padding": "VALID"}
    (expected,) = run_op("Conv2D", plain, [around, w], isa)
    for threads in (1, 3):
        for constants in ((), (1,)):
            (got,) = run_op("Conv2D", attrs, [x, w], isa, threads=threads, constants=constants)
            np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize("isa", available_isas())
@pytest.mark.parametrize("value", [np.inf, np.nan])
def test_a_filter_that_is_not_finite_meets_the_zeros_outside_the_image(isa: str, value: float) -> None:
    x, w = _random((13, 6, 5, 20)), _random((3, 3, 20, 34))
    w[0, 0, 3, 5] = value
    (padded,) = run_op("Conv2D", EVEN | {"padding": "VALID"}, [np.pad(x, ((0, 0), (1, 1), (1, 1), (0, 0))), w], isa)
    assert np.isnan(padded[:, 0, 0, 5]).all()
    for constants in ((), (1,)):
        for threads in (1, 3):
            (got,) = run_op("Conv2D", EVEN, [x, w], isa, threads=threads, constants=constants)
            np.testing.assert_array_equal(got, padded)
    sizes = np.array(x.shape, np.int32)
    found = [
        run_op("Conv2DBackpropInput", EVEN, [sizes, w, padded], isa, threads=threads, constants=constants)[0]
        for threads in (1, 3)
        for constants in ((), (1,))
    ]
    for other in found[1:]:
        np.testing.assert_array_equal(other, found[0])


@pytest.mark.parametrize("op", ["Conv2D", "DepthwiseConv2dNative"])
def test_channels_first_gives_the_same_values(op: str) -> None:
    x, w = _random((2, 5, 6, 3)), _random((3, 3, 3, 4))
    (last,) = run_op(op, EVEN, [x, w])
    (first,) = run_op(op, EVEN | {"data_format": "NCHW"}, [np.ascontiguousarray(np.moveaxis(x, 3, 1)), w])
    np.testing.assert_array_equal(np.moveaxis(first, 1, 3), last)


def test_groups_see_their_own_channels_only() -> None:
    _check("Conv2D", EVEN, _random((2, 5, 5, 12)), _random((3, 3, 3, 20)))


@pytest.mark.parametrize("isa", available_isas())
@pytest.mark.parametrize("dtype", UNIT)
@pytest.mark.parametrize("channels", [144, 322])
def test_one_pixel_has_the_bits_of_many(isa: str, dtype: Any, channels: int) -> None:
    x, w = _random((1, 1, 2, 26), dtype), _random((1, 1, 13, channels), dtype)
    two, one = (run_op("Conv2D", EVEN, [np.ascontiguousarray(v), w], isa, constants=(1,))[0] for v in (x, x[:, :, :1]))
    assert one.tobytes() == np.ascontiguousarray(two[:, :, :1]).tobytes()


@pytest.mark.parametrize("isa", available_isas())
@pytest.mark.parametrize("dtype", UNIT)
@pytest.mark.parametrize("depth", [5, 64, 150])
@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize(("shape", "stride"), [((1, 2), 1), ((3, 1), 1), ((3, 3), 1), ((6, 5), 2)], ids=str)
def test_few_pixels_have_the_same_bits_whether_the_filter_is_packed(
    isa: str, dtype: Any, depth: int, groups: int, shape: tuple[int, int], stride: int
) -> None:
    attrs = {**EVEN, "strides": (1, stride, stride, 1)}
    x, w = _random((1, *shape, groups * depth), dtype), _random((1, 1, depth, groups * 104), dtype)
    (packed,) = run_op("Conv2D", attrs, [x, w], isa, constants=(1,))
    (plain,) = run_op("Conv2D", attrs, [x, w], isa)
    assert packed.tobytes() == plain.tobytes()


def test_a_window_of_more_taps_than_are_held_at_a_time_is_right() -> None:
    _check("Conv2D", EVEN, _random((1, 20, 21, 2)), _random((11, 9, 2, 5)))
    _check("DepthwiseConv2dNative", EVEN, _random((1, 20, 21, 3)), _random((11, 9, 3, 2)))
    _check("DepthwiseConv2dNative", EVEN, _random((1, 20, 21, 67)), _random((11, 9, 67, 1)))


@pytest.mark.parametrize("op", ["Conv2D", "DepthwiseConv2dNative"])
def test_result_does_not_depend_on_the_number_of_threads(op: str) -> None:
    x, w = _random((3, 31, 29, 48)), _random((3, 3, 48, 70 if op == "Conv2D" else 1))
    one, four = (run_op(op, EVEN, [x, w], threads=n)[0] for n in (1, 4))
    np.testing.assert_array_equal(one, four)


def test_padding_is_zero_also_beside_infinity() -> None:
    x = np.full((1, 2, 2, 1), np.inf, np.float32)
    (got,) = run_op("Conv2D", EVEN, [x, np.ones((3, 3, 1, 1), np.float32)])
    assert np.isinf(got).all()


def test_half_precision_is_rounded_once() -> None:
    x = np.full((1, 1, 1, 4096), 1 / 64, np.float16)  # a running float16 sum would stop growing at 32
    (got,) = run_op("Conv2D", EVEN, [x, np.ones((1, 1, 4096, 1), np.float16)])
    assert got.item() == 64.0


@pytest.mark.parametrize("data_format", ["NHWC", "NCHW"])
def test_bias_is_added_along_the_channels(data_format: str) -> None:
    x, bias = _random((2, 3, 4, 3)), _random((3,))
    (got,) = run_op("BiasAdd", {"data_format": data_format}, [x, bias])
    np.testing.assert_array_equal(got, x + (bias if data_format == "NHWC" else bias[:, None, None]))


def test_integer_bias_wraps_around() -> None:
    (got,) = run_op("BiasAdd", {}, [np.full((1, 1), 127, np.int8), np.array([1], np.int8)])
    assert got.item() == -128


@pytest.mark.parametrize("dtype", UNIT)
@pytest.mark.parametrize("isa", available_isas())
@pytest.mark.parametrize("attrs", [EVEN, {**EVEN, "data_format": "NCHW"}], ids=["NHWC", "NCHW"])
@pytest.mark.parametrize(("depth", "channels"), [(4, 16), (4, 19), (4, 64), (2, 12), (1, 68)])
def test_a_filter_packed_in_advance_changes_no_bit(
    dtype: Any, isa: str, attrs: Mapping[str, Any], depth: int, channels: int
) -> None:
    x, w = _random((1, 6, 5, 4), dtype), _random((3, 2, depth, channels), dtype)
    if attrs is not EVEN:
        x = np.ascontiguousarray(x.transpose(0, 3, 1, 2))
    (packed,) = run_op("Conv2D", attrs, [x, w], isa, constants=(1,))
    (plain,) = run_op("Conv2D", attrs, [x, w], isa)
    assert packed.tobytes() == plain.tobytes()


@pytest.mark.parametrize("dtype", UNIT)
@pytest.mark.parametrize("isa", available_isas())
@pytest.mark.parametrize("strides", [(1, 1), (2, 2), (3, 2), (5, 1)])
@pytest.mark.parametrize(("depth", "channels"), [(16, 4), (70, 3)])
def test_a_filter_packed_in_advance_changes_no_bit_of_a_transposed_convolution(
    dtype: Any, isa: str, strides: tuple[int, int], depth: int, channels: int
) -> None:
    attrs = {"strides": (1, *strides, 1), "padding": "SAME"}
    out = [-(-7 // strides[0]), -(-6 // strides[1])]
    inputs = [np.array([2, 7, 6, depth], np.int32), _random((3, 2, depth, channels), dtype)]
    inputs.append(_random((2, *out, channels), dtype))
    (packed,) = run_op("Conv2DBackpropInput", attrs, inputs, isa, constants=(1,))
    (plain,) = run_op("Conv2DBackpropInput", attrs, inputs, isa)
    assert packed.tobytes() == plain.tobytes()


@pytest.mark.parametrize("dtype", [t for t in UNIT if t is not np.int32])
@pytest.mark.parametrize("isa", available_isas())
@pytest.mark.parametrize("first", [False, True])
def test_a_filter_packed_in_advance_changes_no_bit_of_a_convolution_of_volumes(
    dtype: Any, isa: str, first: bool
) -> None:
    attrs = {"strides": (1, 1, 1, 1, 1), "padding": "SAME", "data_format": "NCDHW" if first else "NDHWC"}
    x, w = _random((2, 5, 4, 6, 3), dtype), _random((2, 3, 2, 3, 70), dtype)
    x = np.ascontiguousarray(np.moveaxis(x, 4, 1)) if first else x
    (packed,) = run_op("Conv3D", attrs, [x, w], isa, constants=(1,))
    (plain,) = run_op("Conv3D", attrs, [x, w], isa)
    assert packed.tobytes() == plain.tobytes()


@pytest.mark.parametrize("isa", available_isas())
@pytest.mark.parametrize("pixels", [*range(1, 15), 18, 19])
@pytest.mark.parametrize("channels", [16, 64, 160])
def test_every_number_of_pixels_is_right(isa: str, pixels: int, channels: int) -> None:
    _check("Conv2D", EVEN, _random((1, 1, pixels, 5)), _random((1, 3, 5, channels)), isa)


@pytest.mark.parametrize("isa", available_isas())
@pytest.mark.parametrize("channels", [5, 64, 300])
@pytest.mark.parametrize("dilation", [1, 2])
@pytest.mark.parametrize("depth", [3, 40])
def test_a_single_pixel_of_several_taps_is_right(isa: str, channels: int, dilation: int, depth: int) -> None:
    attrs = {**EVEN, "padding": "VALID", "dilations": (1, dilation, 1, 1), "strides": (1, 2, 2, 1)}
    x, w = _random((1, 2 * dilation + 2, 4, depth)), _random((3, 3, depth, channels))
    (packed,) = run_op("Conv2D", attrs, [x, w], isa, constants=(1,))
    assert packed.shape == (1, 1, 1, channels)
    _check("Conv2D", attrs, x, w, isa)
    (plain,) = run_op("Conv2D", attrs, [x, w], isa)
    assert packed.tobytes() == plain.tobytes()


def test_filters_of_a_saved_model_are_packed_once(tmp_path: Path) -> None:
    folder = str(tmp_path / "model")
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.float32, [None, 6, 6, 4], name="x")
        y = tf.nn.conv2d(x, tf.Variable(_random((3, 3, 4, 70))), [1, 1, 1, 1], "SAME", name="y")
        session.run(tf.global_variables_initializer())
        tf.saved_model.simple_save(session, folder, {"x": x}, {"y": y})
    packed = 0
    with tf.Graph().as_default(), tf.Session() as session:
        tf.saved_model.load(session, ["serve"], folder)
        for batch in (1, 2, 1):
            metadata = tf.RunMetadata()
            session.run("y:0", {"x:0": _random((batch, 6, 6, 4))}, tf.RunOptions(trace=True), metadata)
            packed += sum("prepare input 1" in e["name"] for e in metadata.trace["traceEvents"])
    assert packed == 1
