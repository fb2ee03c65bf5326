"""Sums, extremes, norms, places and running values."""

from __future__ import annotations

import numpy as np
import pytest

from timberframe_core.errors import InvalidArgumentError
from timberframe_cpu.native import available_isas
from timberframe_cpu.testing import run_op

F = np.float32


def axes(*values):
    return np.array(values, np.int32)


def reduce(op, x, *over, **options):
    return run_op(op, options.pop("attrs", None), [np.asarray(x), axes(*over)], **options)[0]


@pytest.fixture
def values():
    return np.random.default_rng(0).standard_normal((40, 50, 60)).astype(F)


@pytest.mark.parametrize("over", [(), (0,), (1,), (2,), (0, 1), (0, 2), (1, 2), (0, 1, 2)])
@pytest.mark.parametrize("isa", available_isas())
def test_sum_over_any_axes(values, over, isa):
    result = reduce("Sum", values, *over, isa=isa)
    np.testing.assert_allclose(result, values.astype(np.float64).sum(axis=over), rtol=1e-5, atol=1e-3)


def test_long_sum_keeps_its_digits():
    """Ten million equal numbers added one after the other in float32 would be off by 1e-2."""
    assert reduce("Sum", np.full(10**7, 0.1, F), 0) == pytest.approx(1e6, rel=1e-5)


@pytest.mark.parametrize("shape", [(300_001,), (70_001, 5), (3, 200_003)])
@pytest.mark.parametrize("op", ["Sum", "Mean", "EuclideanNorm"])
def test_result_does_not_depend_on_threads(op, shape):
    x = np.random.default_rng(1).standard_normal(shape).astype(F)
    for axis in range(len(shape)):
        results = [reduce(op, x, axis, threads=n) for n in (1, 2, 5)]
        assert all(r.tobytes() == results[0].tobytes() for r in results)


def test_half_sums_are_rounded_once():
    assert reduce("Sum", np.ones(5000, np.float16), 0) == 5000


def test_integer_sums_wrap():
    assert reduce("Sum", np.full(3, 100, np.int8), 0) == 44


def test_integer_mean_does_not_overflow_and_goes_towards_zero():
    assert reduce("Mean", np.array([-100, -101, -101], np.int8), 0) == -100


def test_mean_of_nothing_is_nan():
    assert np.isnan(reduce("Mean", np.zeros((0, 2), F), 0)).all()


@pytest.mark.parametrize(("op", "expected"), [("Sum", 0), ("Prod", 1), ("Max", -np.inf), ("Min", np.inf)])
def test_reduction_of_nothing_is_the_identity(op, expected):
    np.testing.assert_array_equal(reduce(op, np.zeros((0, 3), F), 0), np.full(3, expected, F))


@pytest.mark.parametrize("place", [0, 1, 63, 64, 998])
@pytest.mark.parametrize("isa", available_isas())
@pytest.mark.parametrize("op", ["Max", "Min"])
def test_extreme_with_a_nan_anywhere_is_nan(op, place, isa):
    x = np.arange(999, dtype=F)
    x[place] = np.nan
    assert np.isnan(reduce(op, x, 0, isa=isa))
    assert np.isnan(reduce(op, np.stack([x] * 3, axis=1), 0, isa=isa)).all()


def test_argmax_passes_over_nan():
    x = np.array([[np.nan, 1, 2], [3, np.nan, 1], [np.nan, np.nan, np.nan]], F)
    assert run_op("ArgMax", {}, [x, np.int32(1)])[0].tolist() == [2, 0, 0]


@pytest.mark.parametrize("shape", [(5000,), (3000, 7), (7, 3000)])
@pytest.mark.parametrize("op", ["ArgMax", "ArgMin"])
def test_first_of_equal_extremes_is_found(op, shape):
    x = np.random.default_rng(2).integers(0, 9, shape).astype(F)
    for axis in range(len(shape)):
        expected = (np.argmax if op == "ArgMax" else np.argmin)(x, axis=axis)
        np.testing.assert_array_equal(run_op(op, {}, [x, np.int32(axis)])[0], expected)


def test_duplicate_axes_are_refused():
    with pytest.raises(InvalidArgumentError, match=r"Sum 'node': reduction_indices \[1, -1\] name dimension 1 twice"):
        reduce("Sum", np.zeros((2, 2), F), 1, -1)


@pytest.mark.parametrize("exclusive", [False, True])
@pytest.mark.parametrize("reverse", [False, True])
def test_running_sum_in_each_direction(exclusive, reverse):
    x = np.arange(1, 12, dtype=np.int64)
    out = run_op("Cumsum", {"exclusive": exclusive, "reverse": reverse}, [x, np.int32(0)])[0]
    ordered = x[::-1] if reverse else x
    expected = np.cumsum(ordered) - (ordered if exclusive else 0)
    assert out.tolist() == (expected[::-1] if reverse else expected).tolist()
