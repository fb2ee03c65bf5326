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
    "MatrixInverse": ((np.stack([np.eye(2), np.ones((2, 2))]),), "matrix 1 is singular: its pivot 1 is zero"),
}


@pytest.mark.parametrize("op", WRONG)
def test_value_that_the_op_does_not_accept_is_refused(op: str) -> None:
    reference = registry.get(op).reference
    assert reference is not None
    inputs, words = WRONG[op]
    with pytest.raises(InvalidArgumentError, match=re.escape(words)):
        reference({"bad_indices_policy": "", "adjoint": False}, *inputs)


def test_counter_at_its_limit_is_out_of_range() -> None:
    reference = registry.get("ResourceCountUpTo").reference
    assert reference is not None
    with pytest.raises(OutOfRangeError, match="the counter has reached its limit 3"):
        reference({"limit": 3}, np.array(3))
