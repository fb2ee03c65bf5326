"""Kernels of broadcasting operands: values, edges, in-place work, threads and variants."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from timberframe_core.errors import InvalidArgumentError
from timberframe_core.ops.definition.shape_functions import BROADCAST_PAIRS
from timberframe_cpu import native
from timberframe_cpu.broadcast import broadcast_walk
from timberframe_cpu.testing import run_op

ISAS = native.available_isas()


def numbers(shape: tuple[int, ...], dtype: Any = np.float32, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).uniform(1, 9, shape).astype(dtype)


def one(op: str, *inputs: Any, isa: str | None = None, threads: int = 1, **attrs: Any) -> np.ndarray:
    return run_op(op, attrs, list(inputs), isa, threads=threads)[0]


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize(("a", "b"), BROADCAST_PAIRS)
def test_operands_of_all_shapes_broadcast(a: tuple[int, ...], b: tuple[int, ...], isa: str) -> None:
    x, y = numbers(a), numbers(b, seed=1)
    np.testing.assert_array_equal(one("Sub", x, y, isa=isa), x - y)


@pytest.mark.parametrize("size", [1, 2, 4, 8, 16])
def test_short_runs_are_gathered_for_every_element_size(size: int) -> None:
    dtype = {1: np.uint8, 2: np.uint16, 4: np.float32, 8: np.float64, 16: np.complex128}[size]
    for a, b in (((700, 3), (3,)), ((700, 3), (700, 1)), ((50, 7, 5), (50, 1, 5)), ((9, 1, 70, 2), (1, 8, 1, 2))):
        x, y = numbers(a, dtype), numbers(b, dtype, 1)
        np.testing.assert_array_equal(one("AddV2", x, y), x + y)


def test_result_does_not_depend_on_the_number_of_threads() -> None:
    x, y = numbers((700, 300)), numbers((700, 1), seed=1)
    np.testing.assert_array_equal(one("Pow", x, y, threads=2), one("Pow", x, y))


@pytest.mark.parametrize("threads", [2, 3, 7, 63, 64, 65, 100])
def test_threads_share_out_every_element(threads: int) -> None:
    for count in (1, 8_191, 8_193, 65_536, 300_007):
        x = np.arange(count, dtype=np.float32)
        np.testing.assert_array_equal(one("Sub", x, x[::-1].copy(), threads=threads), x - x[::-1])


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_operands_from_beyond_the_caches_are_added_whole(dtype: str, isa: str) -> None:
    x = np.arange((1 << 20) + 13, dtype=dtype)
    out = run_op("AddV2", {}, [x, x[::-1].copy()], isa)[0]
    np.testing.assert_array_equal(out, np.full_like(x, len(x) - 1))


def test_walk_merges_dimensions_that_operands_share() -> None:
    outer, inner = broadcast_walk([(4, 5, 6, 7), (6, 7)], (4, 5, 6, 7), (4, 4), 4)[:2]
    assert (outer, inner) == (1, 42)


def test_operand_may_be_the_output() -> None:
    x, y = numbers((1000,)), numbers((1000,), seed=1)
    expected = x - y
    words = broadcast_walk([x.shape, y.shape], x.shape, (4, 4), 4)
    native.call(native.native("subtract_float32", *words), [x, y], [y])
    np.testing.assert_array_equal(y, expected)


@pytest.mark.parametrize("op", ["Div", "FloorDiv", "FloorMod", "TruncateDiv", "TruncateMod"])
def test_integer_division_by_zero_tells_the_element(op: str) -> None:
    x = np.array([4, 5, 6], np.int32)
    with pytest.raises(InvalidArgumentError, match=f"{op} 'node': integer division by zero: element 1 of y is 0"):
        one(op, x, np.array([1, 0, 2], np.int32))


def test_nothing_is_divided_where_the_result_is_empty() -> None:
    assert one("FloorDiv", np.zeros((0, 1), np.int32), np.zeros((1, 3), np.int32)).shape == (0, 3)


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("dtype", ["int8", "int16", "int32", "int64"])
def test_least_integer_divided_by_minus_one_wraps_around(dtype: str, isa: str) -> None:
    least = np.iinfo(dtype).min
    x, y = np.full(37, least, dtype), np.full(37, -1, dtype)
    assert set(one("TruncateDiv", x, y, isa=isa)) == {least}
    assert set(one("FloorMod", x, y, isa=isa)) == {0}


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16"])
def test_every_quotient_of_small_integers_is_exact(dtype: str) -> None:
    info = np.iinfo(dtype)
    x = np.arange(info.min, info.max + 1, dtype=np.int64)[:, None].astype(dtype)
    some = (*range(-128, 128), 255, 1000, -1000, info.max, info.min)
    divisor = np.array([v for v in some if v and info.min <= v <= info.max], dtype)[None, :]
    wide = np.floor_divide(x.astype(np.int64), divisor.astype(np.int64)).astype(dtype)
    np.testing.assert_array_equal(one("FloorDiv", x, divisor), wide)


def test_negative_exponent_of_an_integer_is_refused() -> None:
    with pytest.raises(InvalidArgumentError, match="element 1 of y is -2; the exponent"):
        one("Pow", np.array([2, 2], np.int32), np.array([1, -2], np.int32))


@pytest.mark.parametrize("isa", ISAS)
def test_power_has_the_special_cases_of_c99(isa: str) -> None:
    specials = np.array([0.0, -0.0, 1.0, -1.0, 2.0, -2.0, 0.5, -0.5, 3.0, -3.0, np.inf, -np.inf, np.nan, 1e30, 2.5])
    for dtype in (np.float32, np.float64):
        x, y = specials.astype(dtype)[:, None], specials.astype(dtype)[None, :]
        with np.errstate(all="ignore"):
            expected = np.power(x, y)
        got = one("Pow", x, y, isa=isa)
        np.testing.assert_allclose(got, expected, rtol=1e-6)
        np.testing.assert_array_equal(np.signbit(got[~np.isnan(got)]), np.signbit(expected[~np.isnan(expected)]))


@pytest.mark.parametrize("isa", ISAS)
def test_float32_power_is_within_five_units_in_the_last_place(isa: str) -> None:
    rng = np.random.default_rng(0)
    x = rng.lognormal(0, 8, 20_000).astype(np.float32)
    y = rng.normal(0, 8, 20_000).astype(np.float32)
    with np.errstate(all="ignore"):
        true = np.power(x.astype(np.longdouble), y)
    usual = (true > 1.2e-38) & (true < 3.4e38)
    got = one("Pow", x, y, isa=isa)
    assert np.max(np.abs(got[usual] - true[usual]) / np.spacing(true[usual].astype(np.float32))) < 5


@pytest.mark.parametrize("isa", ISAS)
def test_float64_power_is_within_four_units_in_the_last_place(isa: str) -> None:
    rng = np.random.default_rng(0)
    x, y = rng.lognormal(0, 8, 20_000), rng.normal(0, 60, 20_000)
    with np.errstate(all="ignore"):
        true = np.power(x.astype(np.longdouble), y)
    usual = (true > 2.3e-308) & (true < 1.7e308)
    got = one("Pow", x, y, isa=isa)
    assert np.max(np.abs(got[usual] - true[usual]) / np.spacing(true[usual].astype(np.float64))) < 4


@pytest.mark.parametrize("isa", ISAS)
def test_remainder_of_far_apart_numbers_is_exact(isa: str) -> None:
    rng = np.random.default_rng(0)
    for dtype in (np.float32, np.float64):
        x, y = rng.lognormal(0, 20, 4_000).astype(dtype), (-rng.lognormal(0, 20, 4_000)).astype(dtype)
        np.testing.assert_array_equal(one("TruncateMod", x, y, isa=isa), np.fmod(x, y))


def test_maximum_passes_nan_on() -> None:
    x, y = np.array([np.nan, 1, 2], np.float32), np.array([1, np.nan, 3], np.float32)
    np.testing.assert_array_equal(one("Maximum", x, y), [np.nan, np.nan, 3])


def test_shift_counts_are_brought_into_range() -> None:
    x, y = np.array([-1, 1, -128, -5], np.int8), np.array([100, 8, 7, -3], np.int8)
    assert one("RightShift", x, y).tolist() == [-1, 0, -1, -5]
    assert one("LeftShift", x, y).tolist() == [-128, -128, 0, -5]


def test_sum_of_many_tensors_rounds_float16_once() -> None:
    terms = [np.array([2048], np.float16), np.array([1], np.float16), np.array([1], np.float16)]
    assert one("AddN", terms)[0] == 2050


def test_strings_are_joined_and_compared() -> None:
    x, y = np.array([b"a", b"b"], object), np.array(b"b", object)
    assert one("Add", x, y).tolist() == [b"ab", b"bb"]
    assert one("Equal", x, y).tolist() == [False, True]


def test_tensors_that_do_not_broadcast_are_unequal_when_asked_for() -> None:
    x, y = numbers((2,)), numbers((3,))
    assert one("Equal", x, y, incompatible_shape_error=False).tolist() is False
    assert one("NotEqual", x, y, incompatible_shape_error=False).tolist() is True


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("op", ["Less", "LessEqual", "Greater", "GreaterEqual", "Equal", "NotEqual"])
def test_comparisons_know_nan_and_signed_zeros(op: str, isa: str) -> None:
    x = np.tile(np.array([np.nan, 0.0, -0.0, 1.0, -np.inf, np.inf], np.float32), 7)
    function = {"Less": np.less, "LessEqual": np.less_equal, "Greater": np.greater, "GreaterEqual": np.greater_equal,
                "Equal": np.equal, "NotEqual": np.not_equal}[op]  # fmt: skip
    for dtype in (np.float32, np.float64, np.float16, ml_dtypes.bfloat16):
        a, b = x.astype(dtype)[:, None], x[::-1].astype(dtype)
        with np.errstate(invalid="ignore"):
            np.testing.assert_array_equal(one(op, a, b, isa=isa), function(a, b))


def test_select_takes_whole_rows_by_a_vector() -> None:
    t, e = np.zeros((3, 2), np.int64), np.ones((3, 2), np.int64)
    assert one("Select", np.array([True, False, True]), t, e).tolist() == [[0, 0], [1, 1], [0, 0]]


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("dtype", ["int8", "uint16", "int32", "uint32", "int64", "uint64"])
def test_float_to_integer_truncates_within_range(dtype: str, isa: str) -> None:
    info = np.iinfo(dtype)
    x = np.array([0.99, 1.5, 100.7, -0.5, float(info.min), float(info.max) * 0.99] * 5)
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(one("Cast", x, isa=isa, DstT=dtype), x.astype(dtype))


@pytest.mark.parametrize("isa", ISAS)
def test_float64_to_halves_rounds_once(isa: str) -> None:
    x = np.array([1 + 2**-11 + 2**-40, 1 + 2**-8 + 2**-40, 1e300, -np.inf, np.nan, 2**-25 + 2**-60] * 5)
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(one("Cast", x, isa=isa, DstT="float16"), x.astype(np.float16))
    assert float(one("Cast", x, isa=isa, DstT="bfloat16")[1]) == 1 + 2**-7


@pytest.mark.parametrize("isa", ISAS)
def test_truncating_cast_cuts_the_fraction(isa: str) -> None:
    x = np.full(19, 1.9999999, np.float32)
    x[-1] = np.nan
    out = one("Cast", x, isa=isa, DstT="bfloat16", Truncate=True).astype(np.float32)
    assert set(out[:-1].tolist()) == {1.9921875}
    assert np.isnan(out[-1])


def test_bitcast_keeps_the_bytes() -> None:
    x = numbers((3,))
    assert one("Bitcast", x, type="uint8").tobytes() == x.tobytes()


def test_unaligned_operands_are_read_correctly() -> None:
    raw = np.zeros(4 * 101 + 4, np.uint8)
    x = raw[4:].view(np.float32)[:100]
    x[:] = np.arange(100)
    np.testing.assert_array_equal(one("AddV2", x, x), 2 * np.arange(100))
