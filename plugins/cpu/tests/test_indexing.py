"""Gather, scatter, search and ranking kernels."""

from typing import Any

import numpy as np
import pytest

from timberframe_core.errors import InvalidArgumentError
from timberframe_cpu.testing import run_op


def _strings(*values: bytes) -> np.ndarray:
    return np.array(values, object)


def _ids(*values: int) -> np.ndarray:
    return np.array(values, np.int32)


@pytest.mark.parametrize("dtype", [np.int8, np.float16, np.float32, np.float64, np.complex128])
@pytest.mark.parametrize("width", [1, 3])
def test_gather_copies_elements_of_every_size(dtype: Any, width: int) -> None:
    params = np.arange(7 * width).reshape(7, width).astype(dtype)
    (got,) = run_op("GatherV2", {}, [params, _ids(6, 0, 6), _ids(0)[0]])
    np.testing.assert_array_equal(got, params[[6, 0, 6]])


def test_gather_index_out_of_range_is_named() -> None:
    with pytest.raises(InvalidArgumentError, match=r"index 7 at position 2 is outside \[0, 7\)"):
        run_op("GatherV2", {}, [np.zeros(7, np.float32), _ids(0, 6, 7), _ids(0)[0]])


def test_gather_of_empty_slices_checks_no_index() -> None:
    (got,) = run_op("GatherV2", {}, [np.zeros((3, 0), np.float32), _ids(5), _ids(0)[0]])
    assert got.shape == (1, 0)


def test_gather_strings() -> None:
    (got,) = run_op("GatherV2", {}, [_strings(b"a", b"b", b"c"), _ids(2, 0), _ids(0)[0]])
    assert got.tolist() == [b"c", b"a"]


def test_string_index_out_of_range_is_named() -> None:
    with pytest.raises(InvalidArgumentError, match=r"GatherV2 'node': index -1 at position 0 is outside \[0, 1\)"):
        run_op("GatherV2", {}, [_strings(b"a"), _ids(-1), _ids(0)[0]])


def test_scatter_adds_what_meets() -> None:
    (got,) = run_op("ScatterNd", {}, [_ids(1, 3, 1)[:, None], np.array([1, 2, 4], np.float32), _ids(5)])
    np.testing.assert_array_equal(got, [0, 5, 0, 2, 0])


def test_scatter_joins_strings_that_meet() -> None:
    (got,) = run_op("ScatterNd", {}, [_ids(1, 1)[:, None], _strings(b"x", b"y"), _ids(2)])
    assert got.tolist() == [b"", b"xy"]


def test_half_precision_sum_is_rounded_once() -> None:
    updates = np.full(4096, 1 / 64, np.float16)
    (got,) = run_op("ScatterNd", {}, [np.zeros((4096, 1), np.int32), updates, _ids(1)])
    assert got.item() == 64.0


def test_last_update_wins() -> None:
    (got,) = run_op("TensorScatterUpdate", {}, [np.zeros(3, np.int64), _ids(1, 1)[:, None], np.array([5, 6])])
    np.testing.assert_array_equal(got, [0, 6, 0])


def test_ignored_tuples_are_left_out() -> None:
    attrs = {"bad_indices_policy": "IGNORE"}
    (got,) = run_op("TensorScatterAdd", attrs, [np.zeros(3, np.int64), _ids(9, 1)[:, None], np.array([5, 6])])
    np.testing.assert_array_equal(got, [0, 6, 0])


def test_scatter_does_not_depend_on_the_number_of_threads() -> None:
    rng = np.random.default_rng(3)
    indices, updates = rng.integers(0, 9, (500, 1)).astype(np.int32), rng.standard_normal((500, 257)).astype(np.float32)
    one, four = (run_op("ScatterNd", {}, [indices, updates, _ids(9, 257)], threads=n)[0] for n in (1, 4))
    np.testing.assert_array_equal(one, four)


def test_mean_of_many_small_integers_does_not_divide_by_zero() -> None:
    (got,) = run_op("SegmentMean", {}, [np.ones(256, np.int8), np.zeros(256, np.int32)])
    assert got.shape == (1,)


def test_segment_ids_of_another_length_are_refused() -> None:
    with pytest.raises(InvalidArgumentError, match="data has 4 rows and segment_ids 2 elements"):
        run_op("SegmentSum", {}, [np.zeros(4, np.float32), _ids(0, 0)])


def test_empty_unsorted_segment_holds_the_lowest_number() -> None:
    (got,) = run_op("UnsortedSegmentMax", {}, [np.array([3.0], np.float16), _ids(0), _ids(2)[0]])
    assert got.tolist() == [3.0, float(np.finfo(np.float16).min)]


@pytest.mark.parametrize("dtype", [np.bool_, np.uint16, np.float16, np.float32, np.complex64])
@pytest.mark.parametrize("shape", [(100,), (10, 10), (5, 2, 10)])
def test_where_lists_coordinates_in_order(dtype: Any, shape: tuple[int, ...]) -> None:
    x = (np.random.default_rng(5).integers(0, 2, shape)).astype(dtype)
    np.testing.assert_array_equal(run_op("Where", {}, [x])[0], np.argwhere(x))


def test_where_counts_nan_but_not_negative_zero() -> None:
    np.testing.assert_array_equal(run_op("Where", {}, [np.array([np.nan, -0.0, 0.0])])[0], [[0]])


def test_unique_keeps_the_order_of_first_occurrence() -> None:
    y, idx, count = run_op("UniqueWithCounts", {}, [np.array([7, 3, 7, 9, 3])])
    np.testing.assert_array_equal(y, [7, 3, 9])
    np.testing.assert_array_equal(idx, [0, 1, 0, 2, 1])
    np.testing.assert_array_equal(count, [2, 2, 1])


def test_nan_is_unique_each_time_and_zeros_are_one() -> None:
    y, idx = run_op("Unique", {}, [np.array([np.nan, -0.0, np.nan, 0.0], np.float32)])
    assert idx.tolist() == [0, 1, 2, 1]
    assert np.signbit(y[1])


def test_unique_columns() -> None:
    x = np.array([[1, 2, 1], [3, 4, 3]], np.float32)
    y, idx = run_op("UniqueV2", {}, [x, np.array([1])])
    np.testing.assert_array_equal(y, x[:, :2])
    assert idx.tolist() == [0, 1, 0]


def test_unique_strings() -> None:
    y, idx = run_op("Unique", {}, [_strings(b"b", b"a", b"b")])
    assert (y.tolist(), idx.tolist()) == ([b"b", b"a"], [0, 1, 0])


def test_top_k_gives_the_lower_position_first() -> None:
    values, indices = run_op("TopKV2", {}, [np.array([2, 5, 5, 1, 5]), _ids(4)[0]])
    assert (values.tolist(), indices.tolist()) == ([5, 5, 5, 2], [1, 2, 4, 0])


def test_top_k_puts_nan_first() -> None:
    x = np.array([1, -np.inf, np.nan, np.inf, -0.0, 0.0], np.float32)
    assert run_op("TopKV2", {}, [x, _ids(6)[0]])[1].tolist() == [2, 3, 0, 4, 5, 1]


@pytest.mark.parametrize("dtype", [np.int8, np.uint64, np.float16, np.float32, np.float64])
def test_top_k_agrees_with_a_sort(dtype: Any) -> None:
    x = np.random.default_rng(9).integers(-100 if dtype != np.uint64 else 0, 100, (7, 503)).astype(dtype)
    for k in (1, 5, 502, 503):
        np.testing.assert_array_equal(run_op("TopKV2", {}, [x, _ids(k)[0]])[0], -np.sort(-x.astype(np.float64))[:, :k])


def test_unsigned_extremes_are_ordered() -> None:
    x = np.array([0, 2**64 - 1, 2**63, 1], np.uint64)
    assert run_op("TopKV2", {}, [x, _ids(4)[0]])[1].tolist() == [1, 2, 3, 0]


def test_in_top_k_counts_ties_as_inside() -> None:
    predictions = np.array([[0.1, 0.3, 0.3, 0.2]] * 4, np.float32)
    assert run_op("InTopKV2", {}, [predictions, _ids(1, 2, 3, 4), _ids(1)[0]])[0].tolist() == [True, True, False, False]


def test_partition_reports_true_sizes() -> None:
    parts = run_op("DynamicPartition", {"num_partitions": 3}, [np.arange(4.0), _ids(2, 0, 2, 2)])
    assert [p.tolist() for p in parts] == [[1.0], [], [0.0, 2.0, 3.0]]


def test_partition_out_of_range_is_named() -> None:
    with pytest.raises(InvalidArgumentError, match=r"partition 3 at position 1 is outside \[0, 3\)"):
        run_op("DynamicPartition", {"num_partitions": 3}, [np.arange(2.0), _ids(0, 3)])


def test_stitch_fills_gaps_with_zeros() -> None:
    (got,) = run_op("DynamicStitch", {}, [[_ids(4), _ids(0, 0)], [np.array([9.0]), np.array([1.0, 2.0])]])
    assert got.tolist() == [2, 0, 0, 0, 9]


def test_reverse_sequence_reverses_each_by_its_length() -> None:
    (got,) = run_op("ReverseSequence", {"seq_dim": 0, "batch_dim": 1}, [np.arange(6).reshape(3, 2), _ids(3, 2)])
    assert got.tolist() == [[4, 3], [2, 1], [0, 5]]


def test_sequence_longer_than_its_dimension_is_named() -> None:
    with pytest.raises(InvalidArgumentError, match=r"length 4 of sequence 1 is outside \[0, 3\]"):
        run_op("ReverseSequence", {"seq_dim": 0, "batch_dim": 1}, [np.zeros((3, 2)), _ids(3, 4)])


def test_one_hot_index_out_of_range_gives_no_hot_value() -> None:
    (got,) = run_op("OneHot", {}, [_ids(-1, 1, 2), _ids(2)[0], np.float32(5), np.float32(1)])
    assert got.tolist() == [[1, 1], [1, 5], [1, 1]]
