"""Embeddings of sparse ids, several of which make one row."""

from __future__ import annotations

from typing import Any

from timberframe.api.arithmetic import div_no_nan
from timberframe.api.arrays import reshape, tile
from timberframe.api.arrays import shape as shape_of
from timberframe.api.comparison import greater, greater_equal
from timberframe.api.composites import embedding_lookup
from timberframe.api.constants import zeros_like
from timberframe.api.framework import name_scope
from timberframe.api.indexing import gather, segment_sum
from timberframe.api.search import unique
from timberframe.api.selection import cast, where
from timberframe.api.sparse import sparse_fill_empty_rows, sparse_reshape, sparse_retain, sparse_tensor
from timberframe.api.sparse_math import sparse_segment_mean, sparse_segment_sqrt_n, sparse_segment_sum
from timberframe_core.dtypes import float32, int32
from timberframe_core.errors import InvalidArgumentError
from timberframe_core.graph.apply import apply_op
from timberframe_core.graph.operation import Tensor
from timberframe_core.graph.sparse_tensor import SparseTensor

__all__: list[str] = []

NAMESPACES = {"nn": ("embedding_lookup_sparse", "safe_embedding_lookup_sparse")}

_SEGMENTS = {"sum": sparse_segment_sum, "mean": sparse_segment_mean, "sqrtn": sparse_segment_sqrt_n}


def embedding_lookup_sparse(
    params: Any,
    sp_ids: Any,
    sp_weights: Any,
    partition_strategy: str = "mod",
    name: str | None = None,
    combiner: str | None = None,
    max_norm: float | None = None,
) -> Tensor:
    """For each row of a sparse tensor of ids, a combination of the rows of params that they name.

    params: a table of embeddings, or its parts. sp_ids: SparseTensor of integers, no row without one. sp_weights: of
    the same indices, or None. combiner: "sum" of weighted rows; "mean" (if None), divided by the sum of the weights;
    "sqrtn", divided by the root of the sum of their squares. max_norm: each row is clipped to that norm first.
    """
    combiner = "mean" if combiner is None else combiner
    if combiner not in _SEGMENTS:
        raise InvalidArgumentError(
            f"tf.nn.embedding_lookup_sparse: combiner is {combiner!r}; 'mean', 'sqrtn' or 'sum' is required"
        )
    given = sparse_tensor(sp_ids, "tf.nn.embedding_lookup_sparse: sp_ids")
    with name_scope(name, "embedding_lookup_sparse", [given.indices]) as scope:
        segments = cast(given.indices[:, 0], int32)
        ids, places = unique(given.values)
        rows = embedding_lookup(params, ids, partition_strategy, max_norm=max_norm)
        if sp_weights is None:
            return _SEGMENTS[combiner](rows, places, segments, name=scope)
        weights = sparse_tensor(sp_weights, "tf.nn.embedding_lookup_sparse: sp_weights").values
        weights.shape.assert_is_compatible_with(given.values.shape)
        return _weighted(gather(rows, places), weights, segments, combiner, scope)


def _weighted(rows: Tensor, weights: Tensor, segments: Tensor, combiner: str, name: str) -> Tensor:
    kind = rows.dtype
    wide = cast(rows, float32) if kind.size < 4 else rows
    scale = cast(weights, wide.dtype)
    count = wide.shape.ndims
    if count is None:
        raise InvalidArgumentError("tf.nn.embedding_lookup_sparse: the rank of params is unknown; it must be known")
    scale = reshape(scale, [-1, *[1] * (count - 1)])
    total = segment_sum(apply_op("Mul", [wide, scale]), segments)
    if combiner == "mean":
        total = div_no_nan(total, segment_sum(scale, segments))
    elif combiner == "sqrtn":
        squares = segment_sum(apply_op("Square", [scale]), segments)
        total = div_no_nan(total, apply_op("Sqrt", [squares]))
    made: Tensor = apply_op("Identity", [total if wide is rows else cast(total, kind)], name=name)
    return made


def safe_embedding_lookup_sparse(
    embedding_weights: Any,
    sparse_ids: Any,
    sparse_weights: Any = None,
    combiner: str = "mean",
    default_id: int | None = None,
    name: str | None = None,
    partition_strategy: str = "div",
    max_norm: float | None = None,
) -> Tensor:
    """`embedding_lookup_sparse` that leaves out negative ids and weights that are not positive.

    Rows without ids are zeros, or the row default_id of the table. sparse_ids may have any rank; all dimensions but
    the last are kept.
    """
    given = sparse_tensor(sparse_ids, "tf.nn.safe_embedding_lookup_sparse: sparse_ids")
    with name_scope(name, "embedding_lookup", [given.indices]) as scope:
        outer = given.dense_shape[:-1]
        ids = sparse_reshape(given, [apply_op("Prod", [outer, 0]), given.dense_shape[-1]])
        weights = None
        if sparse_weights is not None:
            held = sparse_tensor(sparse_weights, "tf.nn.safe_embedding_lookup_sparse: sparse_weights").values
            weights = SparseTensor(ids.indices, held, ids.dense_shape)
        ids, weights = _retained(ids, weights, greater_equal(ids.values, 0))
        if weights is not None and combiner != "sum":
            ids, weights = _retained(ids, weights, greater(weights.values, 0))
        ids, empty = sparse_fill_empty_rows(ids, default_id or 0)
        if weights is not None:
            weights, _ = sparse_fill_empty_rows(weights, 1.0)
        label = None if default_id is None else scope
        found = embedding_lookup_sparse(embedding_weights, ids, weights, partition_strategy, label, combiner, max_norm)
        if default_id is None:
            missing = tile(reshape(empty, [-1, 1]), apply_op("Pack", [[1, shape_of(found)[1]]]))
            found = where(missing, zeros_like(found), found, name=scope)
        sizes = apply_op("ConcatV2", [[cast(outer, int32), shape_of(found)[1:]], 0])
        return reshape(found, sizes)


def _retained(
    ids: SparseTensor, weights: SparseTensor | None, wanted: Tensor
) -> tuple[SparseTensor, SparseTensor | None]:
    return sparse_retain(ids, wanted), None if weights is None else sparse_retain(weights, wanted)
