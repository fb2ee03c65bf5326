"""Functions that are made of several ops: clipping by norm, grids, look-ups."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any, SupportsIndex

import numpy as np

from timberframe.api.arrays import rank
from timberframe.api.calls import call_op
from timberframe.api.embedding_parts import lookup_in_parts, tables_of
from timberframe.api.framework import is_tensor, name_scope
from timberframe.api.reduction import reduction_axes
from timberframe_core.arguments import instance, listed
from timberframe_core.dtypes import NUMERIC, as_dtype, bool_, float32, int32
from timberframe_core.errors import InvalidArgumentError, InvalidTypeError
from timberframe_core.graph.apply import convert_to_tensor
from timberframe_core.graph.indexed_slices import IndexedSlices
from timberframe_core.graph.operation import Tensor

__all__ = ["clip_by_average_norm", "clip_by_global_norm", "clip_by_norm", "eye", "global_norm", "meshgrid"]

NAMESPACES = {
    "linalg": ("eye", "global_norm"),
    "math": ("zero_fraction",),
    "nn": ("crelu", "embedding_lookup", "zero_fraction"),
}

_SMALL_MATRIX = 1000  # elements up to which an identity matrix is stored instead of computed


def _squared_norm(x: Tensor, axes: Any = None, keep: bool = False) -> Tensor:
    square = call_op("Mul", x, call_op("Conj", x) if x.dtype.is_complex else x)  # as in TensorFlow: 2 x may overflow
    total = call_op("Sum", square, reduction_axes(x) if axes is None else axes, keep_dims=keep)
    return call_op("Real", total, Tout=x.dtype.real_dtype) if x.dtype.is_complex else total


def clip_by_norm(t: Any, clip_norm: Any, axes: Any = None, name: str | None = None) -> Any:
    """`t`, scaled down to the L2 norm `clip_norm` where its norm is above it; per slice when axes are given.

    Its gradient is finite where `t` is all zero.
    """
    with name_scope(name, "clip_by_norm", [t, clip_norm]):
        x = convert_to_tensor(t.values if isinstance(t, IndexedSlices) else t)
        squared = _squared_norm(x, axes, keep=True)
        positive = call_op("Greater", squared, 0)
        root = call_op("Sqrt", call_op("SelectV2", positive, squared, call_op("OnesLike", squared)))
        norm = call_op("SelectV2", positive, root, squared)
        limit = call_op("Maximum", convert_to_tensor(clip_norm, norm.dtype), 0)
        clipped = call_op("RealDiv", call_op("Mul", x, _as(limit, x)), _as(call_op("Maximum", norm, limit), x))
        return IndexedSlices(clipped, t.indices, t.dense_shape) if isinstance(t, IndexedSlices) else clipped


def _as(real: Tensor, x: Tensor) -> Tensor:
    """Returns a real tensor in the dtype of x, which may be complex."""
    return real if real.dtype is x.dtype else call_op("Cast", real, DstT=x.dtype)


def clip_by_average_norm(t: Any, clip_norm: Any, name: str | None = None) -> Tensor:
    """`t`, scaled down so that its L2 norm divided by its number of elements is at most `clip_norm`."""
    with name_scope(name, "clip_by_average_norm", [t, clip_norm]):
        x = convert_to_tensor(t)
        size = call_op("Cast", call_op("Size", x), DstT=x.dtype)
        inverse = call_op("Mul", size, call_op("Rsqrt", call_op("Sum", call_op("Square", x), reduction_axes(x))))
        limit = convert_to_tensor(clip_norm, x.dtype)
        scale = call_op("Mul", limit, call_op("Minimum", inverse, call_op("Reciprocal", limit)))
        return call_op("Mul", x, scale)


def global_norm(t_list: Sequence[Any], name: str | None = None) -> Tensor | None:
    """Returns the L2 norm of all elements of all tensors together; entries that are None do not count."""
    t_list = listed(t_list, "global_norm: t_list", "tensors")
    with name_scope(name, "global_norm"):
        values = [convert_to_tensor(t.values if isinstance(t, IndexedSlices) else t) for t in t_list if t is not None]
        return call_op("Sqrt", call_op("AddN", [_squared_norm(v) for v in values])) if values else None


def clip_by_global_norm(
    t_list: Sequence[Any], clip_norm: Any, use_norm: Any = None, name: str | None = None
) -> tuple[list[Any], Any]:
    """Returns the tensors, all scaled by one factor so that their global norm is at most `clip_norm`; and that norm.

    use_norm: the global norm, if it is computed already. If it is not finite, all results are NaN.
    """
    if isinstance(t_list, Tensor):
        raise InvalidTypeError(
            f"tf.clip_by_global_norm: t_list is the tensor '{t_list.name}'; a list of tensors is required"
        )
    t_list = listed(t_list, "clip_by_global_norm: t_list", "tensors")
    with name_scope(name, "clip_by_global_norm"):
        norm = global_norm(t_list) if use_norm is None else convert_to_tensor(use_norm)
        if norm is None:
            return list(t_list), None
        limit = convert_to_tensor(clip_norm, norm.dtype)
        scale = call_op("Mul", limit, call_op("Minimum", call_op("RealDiv", 1.0, norm), call_op("RealDiv", 1.0, limit)))
        scale = call_op("AddV2", scale, call_op("Sub", norm, norm))  # NaN for an infinite norm
        return [None if t is None else _scaled(t, scale) for t in t_list], norm


def _scaled(t: Any, scale: Tensor) -> Any:
    if isinstance(t, IndexedSlices):
        return IndexedSlices(_scaled(t.values, scale), t.indices, t.dense_shape)
    x = convert_to_tensor(t)
    return call_op("Mul", x, _as(scale, x))


def eye(
    num_rows: Any,
    num_columns: Any = None,
    batch_shape: Any = None,
    dtype: Any = float32,
    name: str | None = None,
) -> Tensor:
    """Returns an identity matrix, or a batch of them of the leading shape `batch_shape`.

    num_rows, num_columns: integers or int32 scalars; a square matrix where there is no num_columns. dtype: a numeric
    one or bool.
    """
    kind = as_dtype(dtype)
    if kind not in (*NUMERIC, bool_):
        raise InvalidTypeError(f"tf.eye: dtype is {kind.name}; it must be a numeric one or bool")
    sizes = [_size(num_rows, "num_rows"), _size(num_rows if num_columns is None else num_columns, "num_columns")]
    known = [n for n in sizes if isinstance(n, int)]
    if batch_shape is None and len(known) == 2 and known[0] * known[1] <= _SMALL_MATRIX:
        return convert_to_tensor(np.eye(known[0], known[1]).astype(kind.numpy), kind, name)
    with name_scope(name, "eye") as scope:
        length = min(known) if len(known) == 2 else call_op("Minimum", *sizes)
        shape = call_op("Pack", [convert_to_tensor(length, int32)])
        if batch_shape is not None:
            shape = call_op("ConcatV2", [convert_to_tensor(batch_shape, int32), shape], 0)
        diagonal = call_op("Fill", shape, np.ones((), kind.numpy))
        return call_op("MatrixDiagV3", diagonal, 0, *sizes, np.zeros((), kind.numpy), name=scope)


def _size(value: Any, what: str) -> Any:
    """Returns a number of rows or columns: an int, or a tensor as it is."""
    if is_tensor(value):
        return convert_to_tensor(value, int32)
    size = operator.index(instance(value, SupportsIndex, f"tf.eye: {what}", "an integer"))
    if size < 0:
        raise InvalidArgumentError(f"tf.eye: {what} is {size}; it must be zero or more")
    return size


def meshgrid(*args: Any, indexing: str = "xy", name: str = "meshgrid") -> list[Tensor]:
    """For N vectors, N tensors of rank N that hold the coordinates of all points of their grid.

    indexing: "xy" exchanges the first two axes, as in pictures; "ij" does not.
    """
    if indexing not in ("xy", "ij"):
        raise InvalidArgumentError(f"tf.meshgrid: indexing is {indexing!r}; it must be 'xy' or 'ij'")
    with name_scope(name, values=list(args)):
        vectors = [call_op("Reshape", v, [-1]) for v in args]
        order = list(range(len(vectors)))
        if indexing == "xy" and len(vectors) > 1:
            order[:2] = 1, 0
        sizes = (
            call_op("Reshape", call_op("Pack", [call_op("Size", vectors[i]) for i in order]), [-1]) if vectors else None
        )
        grids = []
        for i, vector in enumerate(vectors):
            shape = [1] * len(vectors)
            shape[order.index(i)] = -1
            grids.append(call_op("BroadcastTo", call_op("Reshape", vector, shape), sizes))
        return grids


def zero_fraction(value: Any, name: str | None = None) -> Tensor:
    """Returns the share of the elements that are zero, as float32; NaN of an empty tensor."""
    with name_scope(name, "zero_fraction", [value]):
        x = convert_to_tensor(value)
        zeros = call_op("Cast", call_op("Equal", x, call_op("ZerosLike", x)), DstT=float32)
        return call_op("Mean", zeros, reduction_axes(x))


def crelu(features: Any, name: str | None = None, axis: int = -1) -> Tensor:
    """Relu of the features and of their negatives, one after the other along `axis`."""
    with name_scope(name, "CRelu", [features]):
        x = convert_to_tensor(features)
        return call_op("Relu", call_op("ConcatV2", [x, call_op("Neg", x)], axis))


def embedding_lookup(
    params: Any, ids: Any, partition_strategy: str = "mod", name: str | None = None, validate_indices: bool = True,
    max_norm: float | None = None,
) -> Tensor:  # fmt: skip
    """Returns rows `ids` of an embedding table; with max_norm each row is clipped to that L2 norm.

    params: the table, or its parts in a list or a PartitionedVariable. partition_strategy: with "mod" id i is in part
    i % parts, with "div" the parts follow each other. validate_indices changes nothing here.
    """
    tables = tables_of(params)
    if not tables:
        raise InvalidArgumentError("tf.nn.embedding_lookup: params is empty; one table at least is required")
    with name_scope(name, "embedding_lookup", [ids]):
        if len(tables) == 1:
            rows: Tensor = call_op("GatherV2", tables[0], ids, 0)
        else:
            rows = lookup_in_parts(tables, ids, partition_strategy)
        if max_norm is None:
            return rows
        inner = call_op("Range", rank(ids), rank(rows), 1)
        clipped: Tensor = clip_by_norm(rows, max_norm, inner)
        return clipped
