"""tf.gradients of the ops that move and select elements, and of linear algebra, gives what TensorFlow's own gives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

Compare = Callable[..., None]


def numbers(*shape: int) -> np.ndarray:
    return np.random.default_rng(list(shape)).uniform(0.5, 2, shape)


def whole(*values: Any) -> np.ndarray:
    return np.array(values, np.int32)


def square(*shape: int, complex_: bool = False) -> np.ndarray:
    x = numbers(*shape) / 4 + 2 * np.eye(shape[-1])
    return x + 1j * numbers(*shape)[..., ::-1, :] / 4 if complex_ else x


TABLE: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "Reshape": ({"tensor": numbers(2, 3), "shape": whole(3, 2)}, {}),
    "ExpandDims": ({"input": numbers(2, 3), "axis": np.int32(1)}, {}),
    "Squeeze": ({"input": numbers(2, 1, 3)}, {"axis": [1]}),
    "BroadcastTo": ({"input": numbers(2, 1), "shape": whole(3, 2, 4)}, {}),
    "Fill": ({"dims": whole(2, 3), "value": np.float64(1.5)}, {}),
    "Transpose": ({"x": numbers(2, 3, 4), "perm": whole(2, 0, 1)}, {}),
    "ReverseV2": ({"tensor": numbers(2, 3), "axis": whole(1)}, {}),
    "Roll": ({"input": numbers(5, 2), "shift": whole(2), "axis": whole(0)}, {}),
    "Tile": ({"input": numbers(2, 3, 1), "multiples": whole(2, 1, 4)}, {}),
    "ConcatV2": ({"values": [numbers(2, 3), numbers(2, 1)], "axis": np.int32(-1)}, {}),
    "Pack": ({"values": [numbers(2), numbers(2) * 2]}, {"axis": 1}),
    "Slice": ({"input": numbers(4, 5), "begin": whole(1, 2), "size": whole(2, -1)}, {}),
    "StridedSlice": (
        {"input": numbers(4, 5, 2), "begin": whole(3, 1), "end": whole(0, 5), "strides": whole(-1, 2)},
        {"shrink_axis_mask": 2, "end_mask": 1},
    ),
    "Pad": ({"input": numbers(2, 3), "paddings": whole([1, 2], [0, 1])}, {}),
    "MirrorPad": ({"input": numbers(3, 4), "paddings": whole([1, 2], [2, 1])}, {"mode": "REFLECT"}),
    "GatherNd": ({"params": numbers(3, 4), "indices": whole([0, 1], [2, 2], [0, 1])}, {}),
    "ReverseSequence": ({"input": numbers(2, 4), "seq_lengths": whole(2, 3)}, {"seq_dim": 1}),
    "ScatterNd": ({"indices": whole([1], [0], [1]), "updates": numbers(3, 2), "shape": whole(4, 2)}, {}),
    "TensorScatterMax": ({"tensor": numbers(4), "indices": whole([1], [3]), "updates": numbers(2)}, {}),
    "SegmentMean": ({"data": numbers(5, 2), "segment_ids": whole(0, 0, 1, 3, 3)}, {}),
    "SegmentProd": ({"data": numbers(5, 2), "segment_ids": whole(0, 0, 1, 3, 3)}, {}),
    "UnsortedSegmentMin": (
        {"data": numbers(5, 2), "segment_ids": whole(2, 0, -1, 0, 2), "num_segments": np.int32(3)},
        {},
    ),
    "MatrixSetDiagV3": (
        {"input": numbers(3, 4), "diagonal": numbers(2, 3), "k": whole(0, 1)},
        {"align": "LEFT_LEFT"},
    ),
    "MatrixBandPart": ({"input": numbers(3, 4), "num_lower": np.int64(1), "num_upper": np.int64(0)}, {}),
    "SpaceToBatchND": (
        {"input": numbers(1, 4, 3, 1), "block_shape": whole(2, 1), "paddings": whole([0, 0], [0, 1])},
        {},
    ),
    "TopKV2": ({"input": numbers(3, 5), "k": np.int32(2)}, {}),
    "MatrixInverse": ({"input": square(2, 3, 3)}, {"adjoint": True}),
    "MatrixSolve": ({"matrix": square(3, 3, complex_=True), "rhs": square(3, 3, complex_=True)}, {}),
    "MatrixTriangularSolve": ({"matrix": square(3, 3), "rhs": numbers(2, 3, 2)}, {"lower": False}),
    "MatrixDeterminant": ({"input": square(2, 3, 3)}, {}),
    "Cholesky": ({"input": square(3, 3) + square(3, 3).T}, {}),
    "SelfAdjointEigV2": ({"input": square(3, 3) + np.diag([1.0, 5.0, 9.0])}, {}),
    "MatrixSolveLs": ({"matrix": numbers(4, 2), "rhs": numbers(4, 3), "l2_regularizer": np.float64(0.5)}, {}),
}
STATIC_ONLY = ("SpaceToBatchND", "MatrixSolveLs")  # TensorFlow wants ranks, or compares with cond


@pytest.mark.parametrize("unknown", [False, True], ids=["known", "unknown"])
@pytest.mark.parametrize("op", TABLE)
def test_gradient_is_tensorflows(compare: Compare, op: str, unknown: bool) -> None:
    inputs, attrs = TABLE[op]
    compare(op, inputs, attrs, unknown=unknown and op not in STATIC_ONLY)


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_gradient_of_gather_is_tensorflows(compare: Compare, axis: int) -> None:
    compare("GatherV2", {"params": numbers(2, 4, 3), "indices": whole(0, 1, 1), "axis": np.int32(axis)})
