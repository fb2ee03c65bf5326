"""Sums, products and other arithmetic of sparse tensors, and segments of rows that indices choose."""

from __future__ import annotations

from typing import Any

import numpy as np

from timberframe.api.arrays import shape as shape_of
from timberframe.api.arrays import transpose
from timberframe.api.framework import name_scope
from timberframe.api.reduction import renamed
from timberframe.api.sparse import parts, sparse_tensor
from timberframe_core.dtypes import int32
from timberframe_core.errors import InvalidArgumentError, InvalidTypeError
from timberframe_core.graph.apply import apply_op, convert_to_tensor
from timberframe_core.graph.operation import Tensor
from timberframe_core.graph.sparse_tensor import SparseTensor, SparseTensorValue

__all__ = [
    "sparse_add", "sparse_matmul", "sparse_maximum", "sparse_minimum", "sparse_reduce_max", "sparse_reduce_max_sparse",
    "sparse_reduce_sum", "sparse_reduce_sum_sparse", "sparse_segment_mean", "sparse_segment_sqrt_n",
    "sparse_segment_sum", "sparse_softmax", "sparse_tensor_dense_matmul",
]  # fmt: skip

_SPARSE = (SparseTensor, SparseTensorValue)


def sparse_add(a: Any, b: Any, threshold: Any = None, thresh: Any = None) -> Any:
    """Returns the sum of two sparse tensors of one shape, or the tensor that is the sum of one and a dense tensor.

    threshold (thresh is its older name): elements of a sparse sum with a smaller magnitude are left out; 0 if None.
    """
    least = renamed("threshold", threshold, "thresh", thresh)
    if not isinstance(a, _SPARSE) and not isinstance(b, _SPARSE):
        raise InvalidTypeError("tf.sparse_add: neither a nor b is a SparseTensor; one must be, tf.add adds others")
    if isinstance(a, _SPARSE) and isinstance(b, _SPARSE):
        first, second = sparse_tensor(a, "tf.sparse_add: a"), sparse_tensor(b, "tf.sparse_add: b")
        limit = convert_to_tensor(0 if least is None else least, first.dtype.real_dtype)
        return SparseTensor(*apply_op("SparseAdd", [*parts(first), *parts(second), limit]))
    sparse, dense = (a, b) if isinstance(a, _SPARSE) else (b, a)
    given = sparse_tensor(sparse, "tf.sparse_add: a")
    return apply_op("SparseTensorDenseAdd", [*parts(given), convert_to_tensor(dense, given.dtype)])


def _extreme(op: str, sp_a: Any, sp_b: Any, name: str | None) -> SparseTensor:
    function = f"tf.sparse_{op.removeprefix('SparseSparse').lower()}"
    a, b = sparse_tensor(sp_a, f"{function}: sp_a"), sparse_tensor(sp_b, f"{function}: sp_b")
    with name_scope(name, op, [a.indices, b.indices]) as scope:
        indices, values = apply_op(op, [*parts(a), *parts(b)], name=scope)
    return SparseTensor(indices, values, a.dense_shape)


def sparse_maximum(sp_a: Any, sp_b: Any, name: str | None = None) -> SparseTensor:
    """Returns the larger of two sparse tensors of one shape by element, what one lacks being 0."""
    return _extreme("SparseSparseMaximum", sp_a, sp_b, name)


def sparse_minimum(sp_a: Any, sp_b: Any, name: str | None = None) -> SparseTensor:
    """Returns the smaller of two sparse tensors of one shape by element, what one lacks being 0."""
    return _extreme("SparseSparseMinimum", sp_a, sp_b, name)


def sparse_softmax(sp_input: Any, name: str | None = None) -> SparseTensor:
    """Returns the softmax along the last dimension, of the elements that are there."""
    sp = sparse_tensor(sp_input, "tf.sparse_softmax: sp_input")
    with name_scope(name, "SparseSoftmax", [sp.indices]):
        return SparseTensor(sp.indices, apply_op("SparseSoftmax", parts(sp)), sp.dense_shape)


def _reduced(op: str, sp_input: Any, axis: Any, keepdims: Any, old_axes: Any, old_keep: Any) -> Any:
    sp = sparse_tensor(sp_input, f"tf.{op}: sp_input")
    axes = renamed("axis", axis, "reduction_axes", old_axes)
    if axes is None:
        count = sp.shape.ndims
        axes = np.arange(count) if count is not None else apply_op("Range", [0, shape_of(sp.dense_shape)[0], 1])
    keep = bool(renamed("keepdims", keepdims, "keep_dims", old_keep))
    return apply_op(op, [*parts(sp), convert_to_tensor(axes, int32)], {"keep_dims": keep})


def sparse_reduce_sum(
    sp_input: Any, axis: Any = None, keepdims: Any = None, reduction_axes: Any = None, keep_dims: Any = None
) -> Tensor:
    """Returns the sums along dimensions, all if axis is None, as a tensor. The last two arguments are older names."""
    made: Tensor = _reduced("SparseReduceSum", sp_input, axis, keepdims, reduction_axes, keep_dims)
    return made


def sparse_reduce_sum_sparse(
    sp_input: Any, axis: Any = None, keepdims: Any = None, reduction_axes: Any = None, keep_dims: Any = None
) -> SparseTensor:
    """Returns the sums along dimensions, all if axis is None, as a sparse tensor."""
    return SparseTensor(*_reduced("SparseReduceSumSparse", sp_input, axis, keepdims, reduction_axes, keep_dims))


def sparse_reduce_max(
    sp_input: Any, axis: Any = None, keepdims: Any = None, reduction_axes: Any = None, keep_dims: Any = None
) -> Tensor:
    """Returns the largest elements along dimensions, all if axis is None, as a tensor; 0 where there are none."""
    made: Tensor = _reduced("SparseReduceMax", sp_input, axis, keepdims, reduction_axes, keep_dims)
    return made


def sparse_reduce_max_sparse(
    sp_input: Any, axis: Any = None, keepdims: Any = None, reduction_axes: Any = None, keep_dims: Any = None
) -> SparseTensor:
    """Returns the largest elements along dimensions, all if axis is None, as a sparse tensor."""
    return SparseTensor(*_reduced("SparseReduceMaxSparse", sp_input, axis, keepdims, reduction_axes, keep_dims))


def sparse_tensor_dense_matmul(
    sp_a: Any, b: Any, adjoint_a: bool = False, adjoint_b: bool = False, name: str | None = None
) -> Tensor:
    """Returns the product of a sparse matrix and a dense one, which may also come in the other order.

    adjoint_a, adjoint_b: that one is transposed and conjugated before.
    """
    if isinstance(b, _SPARSE):
        turned = (adjoint_a, adjoint_b) if adjoint_a != adjoint_b else (not adjoint_a, not adjoint_b)
        return transpose(sparse_tensor_dense_matmul(b, sp_a, *turned))
    a = sparse_tensor(sp_a, "tf.sparse_tensor_dense_matmul: sp_a")
    with name_scope(name, "SparseTensorDenseMatMul", [a.indices, a.values, b]) as scope:
        attrs = {"adjoint_a": adjoint_a, "adjoint_b": adjoint_b}
        inputs = [*parts(a), convert_to_tensor(b, a.dtype, "b")]
        made: Tensor = apply_op("SparseTensorDenseMatMul", inputs, attrs, scope)
        return made


def sparse_matmul(
    a: Any,
    b: Any,
    transpose_a: bool = False,
    transpose_b: bool = False,
    a_is_sparse: bool = False,
    b_is_sparse: bool = False,
    name: str | None = None,
) -> Tensor:
    """Returns the product of two dense matrices of float32 or bfloat16, as float32, of which one has many zeros."""
    attrs = {
        "transpose_a": transpose_a, "transpose_b": transpose_b, "a_is_sparse": a_is_sparse, "b_is_sparse": b_is_sparse,
    }  # fmt: skip
    made: Tensor = apply_op("SparseMatMul", [a, b], attrs, name)
    return made


def _segments(op: str, data: Any, indices: Any, ids: Any, name: str | None, count: Any) -> Tensor:
    made: Tensor = apply_op(op, [data, indices, ids], name=name if count is None else None)
    if count is None:
        return made
    rank = made.shape.ndims
    if rank is None:
        raise InvalidArgumentError(f"{op}: the rank of data is unknown; with num_segments it must be known")
    missing = apply_op("Sub", [convert_to_tensor(count, int32), shape_of(made)[0]])
    rows = apply_op("Pack", [[convert_to_tensor(0, int32), missing]])
    padded: Tensor = apply_op("Pad", [made, apply_op("Pack", [[rows, *[[0, 0]] * (rank - 1)]])], name=name)
    return padded


def sparse_segment_sum(
    data: Any, indices: Any, segment_ids: Any, name: str | None = None, num_segments: Any = None
) -> Tensor:
    """Returns the sums of the rows of data that indices choose, for each segment; segment_ids are sorted.

    num_segments: how many there are, where some at the end have no rows.
    """
    return _segments("SparseSegmentSum", data, indices, segment_ids, name, num_segments)


def sparse_segment_mean(
    data: Any, indices: Any, segment_ids: Any, name: str | None = None, num_segments: Any = None
) -> Tensor:
    """Returns the means of the rows of data that indices choose; see `sparse_segment_sum`."""
    return _segments("SparseSegmentMean", data, indices, segment_ids, name, num_segments)


def sparse_segment_sqrt_n(
    data: Any, indices: Any, segment_ids: Any, name: str | None = None, num_segments: Any = None
) -> Tensor:
    """Returns the sums of the rows of data that indices choose, divided by the root of their number."""
    return _segments("SparseSegmentSqrtN", data, indices, segment_ids, name, num_segments)
