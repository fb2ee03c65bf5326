"""Every op says how it is differentiated, or why it is not."""

from __future__ import annotations

from timberframe.ops import registry
from timberframe.ops.opdef import NotDifferentiable

OPEN = frozenset({
    "AvgPool", "BatchToSpace", "BatchToSpaceND", "BroadcastTo", "CheckNumerics", "CheckNumericsV2", "Cholesky",
    "Concat", "ConcatV2", "ConjugateTranspose", "DepthToSpace", "Diag", "DiagPart", "Digamma", "DynamicPartition",
    "DynamicStitch", "EnsureShape", "ExpandDims", "Fill", "FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3",
    "Gather", "GatherNd", "GatherV2", "Identity", "IdentityN", "LRN", "LinSpace", "MatrixBandPart",
    "MatrixDiag", "MatrixDiagPart", "MatrixDiagPartV2", "MatrixDiagPartV3", "MatrixDiagV2", "MatrixDiagV3",
    "MatrixSetDiag", "MatrixSetDiagV2", "MatrixSetDiagV3", "MaxPool", "MaxPoolV2", "MirrorPad", "NthElement",
    "Pack", "Pad", "PadV2", "ParallelDynamicStitch", "PlaceholderWithDefault", "PreventGradient", "Qr", "Reshape",
    "Reverse", "ReverseSequence", "ReverseV2", "Roll", "ScatterNd", "SegmentMax", "SegmentMean", "SegmentMin",
    "SegmentProd", "SegmentSum", "Slice", "Snapshot", "SpaceToBatch",
    "SpaceToBatchND", "SpaceToDepth", "Split", "SplitV", "Squeeze",
    "StridedSlice", "TensorScatterAdd", "TensorScatterMax", "TensorScatterMin", "TensorScatterSub",
    "TensorScatterUpdate", "Tile", "TopK", "TopKV2", "Transpose", "Unpack", "UnsortedSegmentMax",
    "UnsortedSegmentMin", "UnsortedSegmentProd", "UnsortedSegmentSum",
})  # fmt: skip
"""Ops that say neither yet."""


def test_every_op_has_a_gradient_or_a_reason() -> None:
    silent = {op.name for op in registry.all_ops() if op.gradient is None and ">" not in op.name}
    assert silent <= OPEN


def test_reasons_are_given() -> None:
    reasons = [op.gradient.reason for op in registry.all_ops() if isinstance(op.gradient, NotDifferentiable)]
    assert reasons
    assert all(len(r) > 10 for r in reasons)
