"""Sparse tensors, and the one op that takes them."""

from __future__ import annotations

from typing import Any

from timberframe_core.arguments import instance
from timberframe_core.graph.apply import apply_op
from timberframe_core.graph.operation import Tensor
from timberframe_core.graph.sparse_tensor import SparseTensor, SparseTensorValue

__all__ = ["SparseTensor", "SparseTensorValue", "edit_distance"]


def edit_distance(hypothesis: Any, truth: Any, normalize: bool = True, name: str | None = "edit_distance") -> Tensor:
    """Levenshtein's distance between the sequences along the last dimension of two sparse tensors.

    hypothesis, truth: SparseTensor or SparseTensorValue of one rank and dtype. normalize: divided by the length of the
    truth (infinite where that is empty). Returns float32, of the shape without the last dimension.
    """
    kinds = (SparseTensor, SparseTensorValue)
    parts = []
    for given, what in ((hypothesis, "hypothesis"), (truth, "truth")):
        sparse = instance(given, kinds, f"tf.edit_distance: {what}", "a SparseTensor or SparseTensorValue")
        parts += [sparse.indices, sparse.values, sparse.dense_shape]
    result: Tensor = apply_op("EditDistance", parts, {"normalize": normalize}, name)
    return result
