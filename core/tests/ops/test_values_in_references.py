"""References refuse values that NumPy would take for something else, in the words of the kernels."""

from __future__ import annotations

import re

import numpy as np
import pytest

from timberframe_core.errors import InvalidArgumentError, OutOfRangeError
from timberframe_core.ops.definition import registry

X = np.arange(6.0).reshape(3, 2)
WRONG = {
    "Gather": ((X, np.array([0, -1])), "index -1 at position 1 is outside [0, 3)"),
    "GatherNd": ((X, np.array([[0, 0], [1, 2]])), "index tuple 1 has 2 in dimension 1; it must lie in [0, 2)"),
    "TensorScatterAdd": ((X, np.array([[-1]]), X[:1]), "index tuple 0 has -1 in dimension 0"),
    "ResourceScatterAdd": ((X, np.array([3]), X[:1]), "index 3 at position 0 is outside [0, 3)"),
    "UnsortedSegmentSum": ((X, np.array([0, -1, 5]), np.array(2)), "segment id 5 at position 2 is outside [0, 2)"),
    "Div": ((np.array([4, 3]), np.array([2, 0])), "integer division by zero: element 1 of y is 0; divisors of"),
    "Pow": ((np.array([4, 3]), np.array([2, -3])), "element 1 of y is -3; the exponent of an integer power must be"),
    "SegmentSum": ((X, np.array([0, 2, 1])), "segment id 1 follows 2 at position 2; ids must not decrease"),
    "SegmentMax": ((X, np.array([0, 1])), "data has 3 rows and segment_ids 2 elements; they must agree"),
    "DynamicPartition": ((X, np.array([0, 2, 0])), "partition 2 at position 1 is outside [0, 2); it must be below"),
    "ReverseSequence": ((X, np.array([1, 3, 1])), "length 3 of sequence 1 is outside [0, 2]; it must not be above"),
    "SparseSoftmaxCrossEntropyWithLogits": ((X, np.array([0, 1, -1])), "label -1 of row 2 is outside [0, 2)"),
    "MatrixBandPart": ((X, np.array(1), np.array(3)), "num_upper is 3 for 2 columns; it must be negative or at most"),
    "Slice": ((X, np.array([0, 1]), np.array([1, 2])), "begin[1] is 1; with this size it must lie in [0, 0]"),
    "BroadcastArgs": ((np.array([4, 1]), np.array([3, 2])), "sizes 4 and 3, dimension 1 from the last, do not"),
    "ResourceScatterDiv": ((np.ones((2, 2), int), np.array([1]), np.array([[1, 0]])), "update 1 is 0; integers must"),
    "StatelessShuffle": ((X, *(np.array(n) for n in ([1], [2, 3], 2))), "alg is 2; 1 (Philox) or 3"),
    "Cholesky": ((np.diag([1.0, 1, -1]),), "matrix 0 is not positive definite: it has no factor at row 2"),
    "SelfAdjointEigV2": (
        (np.full((2, 2, 2), [[[1.0]], [[np.inf]]]),),
        "matrix 1 has no eigenvalues that could be",
    ),
    "MatrixSolveLs": ((np.ones((2, 2)), X[:2], np.array(0.0)), "matrix 0 has dependent columns or rows, or nearly so"),
    "MatrixInverse": ((np.stack([np.eye(2), np.ones((2, 2))]),), "matrix 1 is singular: its pivot 1 is zero"),
}


ATTRS = {
    "bad_indices_policy": "", "adjoint": False, "num_partitions": 2, "seq_dim": 1, "batch_dim": 0, "fast": True,
    "compute_v": True,
}  # fmt: skip


@pytest.mark.parametrize("op", WRONG)
def test_value_that_the_op_does_not_accept_is_refused(op: str) -> None:
    reference = registry.get(op).reference
    assert reference is not None
    inputs, message = WRONG[op]
    with np.errstate(all="ignore"), pytest.raises(InvalidArgumentError, match=re.escape(message)):
        reference(ATTRS, *inputs)


def test_both_dimensions_of_reverse_sequence_must_differ() -> None:
    reference = registry.get("ReverseSequence").reference
    assert reference is not None
    with pytest.raises(InvalidArgumentError, match="seq_dim and batch_dim are both 0; they must differ"):
        reference({"seq_dim": 0, "batch_dim": 0}, X, np.array([1, 1, 1]))


@pytest.mark.parametrize("op", ["Div", "FloorMod"])
def test_floats_are_divided_by_zero(op: str) -> None:
    reference = registry.get(op).reference
    assert reference is not None
    with np.errstate(all="ignore"):
        assert not np.isfinite(reference({}, np.array([1.0]), np.array([0.0])))


def test_lgamma_of_a_tiny_negative_number_is_minus_its_logarithm() -> None:
    reference = registry.get("Lgamma").reference
    assert reference is not None
    tiny = np.array([-1.5e-323, -3e-200])
    np.testing.assert_allclose(reference({}, tiny), -np.log(-tiny), rtol=1e-15)


def test_singular_values_of_a_matrix_that_is_not_finite_are_nan() -> None:
    reference = registry.get("Svd").reference
    assert reference is not None
    values, _, _ = reference({"full_matrices": False, "compute_uv": True}, np.stack([X, np.full(X.shape, np.inf)]))
    assert np.isfinite(values).tolist() == [[True, True], [False, False]]


def test_counter_at_its_limit_is_out_of_range() -> None:
    reference = registry.get("ResourceCountUpTo").reference
    assert reference is not None
    with pytest.raises(OutOfRangeError, match="the counter has reached its limit 3"):
        reference({"limit": 3}, np.array(3))
