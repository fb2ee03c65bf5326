"""Indexing and search in strings, which are Python objects: the ops' own references, applied to object arrays."""

from __future__ import annotations

from timberframe_sdk import KernelDef
from timberframe_sdk.reference import reference_launcher

_BY_TYPE_ATTR = {
    "Tparams": ("Gather", "GatherV2", "GatherNd"),
    "dtype": ("ResourceGather", "ResourceGatherNd", "ResourceScatterUpdate"),
    "T": (
        "ScatterNd", "TensorScatterUpdate", "ResourceScatterNdUpdate", "OneHot", "ReverseSequence", "DynamicPartition",
        "DynamicStitch", "ParallelDynamicStitch", "Unique", "UniqueV2", "UniqueWithCounts", "UniqueWithCountsV2",
        "ListDiff",
    ),
}  # fmt: skip

KERNELS = [
    KernelDef(op, "CPU", reference_launcher, {attr: ("string",)}, fallback=True)
    for attr, ops in _BY_TYPE_ATTR.items()
    for op in ops
]
