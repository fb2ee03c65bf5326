"""Kernels for tensors of strings: the native kernels move numbers in their place."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import timberframe as tf
from timberframe_core.errors import InvalidArgumentError
from timberframe_cpu import timberframe_kernels
from timberframe_cpu.testing import run_op


def words(*values: Any) -> np.ndarray:
    return np.array(values, object)


def test_no_kernel_of_strings_is_computed_by_a_reference() -> None:
    assert [k.op for k in timberframe_kernels() if k.fallback and "string" in str(k.types)] == []


def test_strings_are_gathered() -> None:
    (found,) = run_op("GatherV2", {}, [words(b"a", b"", b"\0b"), np.int32([2, 0, 2]), np.int32(0)])
    assert found.tolist() == [b"\0b", b"a", b"\0b"]


def test_what_is_not_given_is_empty() -> None:
    (found,) = run_op("PadV2", {}, [words(b"a"), np.int32([[1, 2]]), words(b"x")[0:1].reshape(())])
    assert found.tolist() == [b"x", b"a", b"x", b"x"]
    (found,) = run_op("SpaceToBatch", {"block_size": 2}, [words([[[b"a"]]]), np.int32([[1, 0], [0, 1]])])
    assert found.reshape(-1).tolist() == [b"", b"", b"a", b""]


def test_distinct_strings_come_in_order_with_their_counts() -> None:
    found = run_op("UniqueWithCounts", {}, [words(b"b", b"", b"b", b"a")])
    assert [x.tolist() for x in found] == [[b"b", b"", b"a"], [0, 1, 0, 2], [2, 1, 1]]


def test_strings_that_are_scattered_to_one_element_are_joined() -> None:
    inputs = [np.int32([[1], [0], [1]]), words(b"a", b"b", b"c"), np.int32([3])]
    assert run_op("ScatterNd", {}, inputs)[0].tolist() == [b"b", b"ac", b""]


def test_an_index_outside_is_refused_or_ignored_as_for_numbers() -> None:
    inputs = [np.int32([[1], [7]]), words(b"a", b"b"), np.int32([2])]
    with pytest.raises(InvalidArgumentError, match=r"ScatterNd 'node': .* 7 "):
        run_op("ScatterNd", {}, inputs)
    ignored = run_op("ScatterNd", {"bad_indices_policy": "IGNORE"}, inputs)
    assert ignored[0].tolist() == [b"", b"a"]


@pytest.mark.parametrize("seed", [7, 3])  # 7 is the number of tf.string, which equals that dtype
def test_strings_are_shuffled_whatever_the_seed(seed: int) -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        shuffled = tf.raw_ops.RandomShuffle(value=tf.constant(["a", "b", "c"]), seed=seed, seed2=1)
        assert sorted(session.run(shuffled)) == [b"a", b"b", b"c"]
