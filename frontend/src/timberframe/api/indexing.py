"""`tf.*` functions that gather, scatter, select and reorder slices."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from timberframe.api.arrays import expand_dims
from timberframe.api.framework import name_scope
from timberframe.api.selection import cast
from timberframe.api.variables import Variable
from timberframe_core.dtypes import as_dtype, bool_, float32, int32, string
from timberframe_core.errors import InvalidArgumentError
from timberframe_core.graph.apply import apply_op, convert_to_tensor
from timberframe_core.graph.operation import Tensor
from timberframe_core.graph.slicing import boolean_mask

__all__ = [
    "batch_gather", "boolean_mask", "dynamic_partition", "dynamic_stitch", "gather", "gather_nd", "gather_v2",
    "one_hot", "reverse_sequence", "scatter_nd", "segment_max", "segment_mean", "segment_min", "segment_prod",
    "segment_sum", "sequence_mask", "tensor_scatter_add", "tensor_scatter_max", "tensor_scatter_min",
    "tensor_scatter_nd_add", "tensor_scatter_nd_max", "tensor_scatter_nd_min", "tensor_scatter_nd_sub",
    "tensor_scatter_nd_update", "tensor_scatter_sub", "tensor_scatter_update", "unsorted_segment_max",
    "unsorted_segment_min", "unsorted_segment_prod", "unsorted_segment_sum",
]  # fmt: skip

NAMESPACES = {"math": tuple(n for n in __all__ if "segment" in n)}


def gather(
    params: Any,
    indices: Any,
    validate_indices: bool | None = None,
    name: str | None = None,
    axis: Any = None,
    batch_dims: int = 0,
) -> Tensor:
    """Slices of params along `axis` (the first after batch_dims where it is None), one for each index.

    An index out of range is an error. validate_indices is not used.
    """
    along = batch_dims if axis is None else axis
    if isinstance(params, Variable) and isinstance(along, int) and along == batch_dims == 0:
        return params.sparse_read(indices, name)
    result: Tensor = apply_op("GatherV2", [params, indices, along], {"batch_dims": batch_dims}, name)
    return result


def gather_v2(
    params: Any,
    indices: Any,
    validate_indices: bool | None = None,
    axis: Any = None,
    batch_dims: int = 0,
    name: str | None = None,
) -> Tensor:
    """`gather` with another order of arguments.

    The arguments are those of `gather`.
    """
    return gather(params, indices, validate_indices, name, axis, batch_dims)


def batch_gather(params: Any, indices: Any, name: str | None = None) -> Tensor:
    """`gather` along the last dimension of indices, the ones before it being the batch."""
    where_ = convert_to_tensor(indices)
    if not where_.static_shape:
        raise InvalidArgumentError(
            "tf.batch_gather: indices has unknown rank or rank 0; it must have a known rank above 0"
        )
    batch = len(where_.static_shape) - 1
    return gather(params, where_, name=name, axis=batch, batch_dims=batch)


def gather_nd(
    params: Any, indices: Any, name: str | None = None, batch_dims: int = 0, bad_indices_policy: str = ""
) -> Tensor:
    """Slices of params, one for each index tuple in the last dimension of indices.

    bad_indices_policy: "" and "ERROR" raise for a tuple out of range, "IGNORE" reads zeros.
    """
    if isinstance(params, Variable) and not bad_indices_policy and not batch_dims:
        return params.gather_nd(indices, name)
    if batch_dims:
        raise InvalidArgumentError(f"tf.gather_nd: batch_dims is {batch_dims}; only 0 is implemented")
    result: Tensor = apply_op("GatherNd", [params, indices], {"bad_indices_policy": bad_indices_policy}, name)
    return result


def scatter_nd(indices: Any, updates: Any, shape: Any, name: str | None = None, bad_indices_policy: str = "") -> Tensor:
    """Returns zeros of this shape with each update added at its index tuple.

    indices: [..., k], index tuples into the first k dimensions of shape, int32 or int64. updates: [..., *rest of
    shape]; the result has their dtype. Updates of one index tuple are added up. Index tuples out of range are an error
    of the run. bad_indices_policy: an attr of the op.
    """
    where_ = convert_to_tensor(indices)
    sizes = convert_to_tensor(shape, where_.dtype)
    attrs = {"bad_indices_policy": bad_indices_policy}
    result: Tensor = apply_op("ScatterNd", [where_, updates, sizes], attrs, name)
    return result


def _tensor_scatter(op: str, what: str) -> Callable[..., Tensor]:
    def function(
        tensor: Any, indices: Any, updates: Any, name: str | None = None, bad_indices_policy: str = ""
    ) -> Tensor:
        attrs = {"bad_indices_policy": bad_indices_policy}
        result: Tensor = apply_op(op, [tensor, indices, updates], attrs, name)
        return result

    function.__name__ = function.__qualname__ = f"tensor_scatter_nd_{op.removeprefix('TensorScatter').lower()}"
    function.__doc__ = f"A copy of tensor with {what} at each index tuple."
    return function


tensor_scatter_nd_update = tensor_scatter_update = _tensor_scatter("TensorScatterUpdate", "the update stored")
tensor_scatter_nd_add = tensor_scatter_add = _tensor_scatter("TensorScatterAdd", "the update added")
tensor_scatter_nd_sub = tensor_scatter_sub = _tensor_scatter("TensorScatterSub", "the update subtracted")
tensor_scatter_nd_min = tensor_scatter_min = _tensor_scatter("TensorScatterMin", "the minimum of value and update")
tensor_scatter_nd_max = tensor_scatter_max = _tensor_scatter("TensorScatterMax", "the maximum of value and update")


def one_hot(
    indices: Any,
    depth: Any,
    on_value: Any = None,
    off_value: Any = None,
    axis: int | None = None,
    dtype: Any = None,
    name: str | None = None,
) -> Tensor:
    """Returns a new dimension of size depth that holds on_value (1) at each index and off_value (0) elsewhere.

    dtype defaults to that of on_value or off_value, else float32. An index out of range gives off_value throughout.
    """
    with name_scope(name, "one_hot") as scope:
        given = [None if v is None else convert_to_tensor(v, dtype) for v in (on_value, off_value)]
        wanted = next((v.dtype for v in given if v is not None), None) or (
            float32 if dtype is None else as_dtype(dtype)
        )
        if wanted is string and None in given:
            raise InvalidArgumentError("tf.one_hot: dtype is string without on_value and off_value; both must be given")
        on, off = (np.array(1 - i, wanted.numpy) if v is None else v for i, v in enumerate(given))
        result: Tensor = apply_op("OneHot", [indices, depth, on, off], {"axis": -1 if axis is None else axis}, scope)
        return result


def sequence_mask(lengths: Any, maxlen: Any = None, dtype: Any = bool_, name: str | None = None) -> Tensor:
    """For each length n a row of maxlen values (the largest length where None), of which the first n are true."""
    with name_scope(name, "SequenceMask"):
        counts = convert_to_tensor(lengths)
        if maxlen is None:
            axes = apply_op("Range", [0, apply_op("Rank", [counts]), 1])
            limit = apply_op("Maximum", [convert_to_tensor(0, counts.dtype), apply_op("Max", [counts, axes])])
        else:
            limit = convert_to_tensor(maxlen)
            counts = cast(counts, limit.dtype)
        zero, one = (convert_to_tensor(i, counts.dtype) for i in (0, 1))
        steps = apply_op("Range", [zero, limit, one])
        mask = apply_op("Less", [steps, expand_dims(counts, -1)])
        return mask if as_dtype(dtype) is bool_ else cast(mask, dtype)  # type: ignore[no-any-return]  # a Tensor


def reverse_sequence(
    input: Any,
    seq_lengths: Any,
    seq_axis: int | None = None,
    batch_axis: int | None = None,
    name: str | None = None,
    seq_dim: int | None = None,
    batch_dim: int | None = None,
) -> Tensor:
    """Reverses the first seq_lengths[i] elements along seq_axis of entry i along batch_axis (0).

    seq_lengths: int32 or int64, one for each entry along batch_axis. seq_dim and batch_dim are other names of seq_axis
    and batch_axis. The result has the shape and dtype of input.
    """
    along = seq_dim if seq_axis is None else seq_axis
    batch = batch_dim if batch_axis is None else batch_axis
    if along is None:
        raise InvalidArgumentError("tf.reverse_sequence: seq_axis is not given; it must be")
    attrs = {"seq_dim": along, "batch_dim": batch or 0}
    result: Tensor = apply_op("ReverseSequence", [input, seq_lengths], attrs, name)
    return result


def dynamic_partition(data: Any, partitions: Any, num_partitions: int, name: str | None = None) -> list[Tensor]:
    """Deals the slices of data into num_partitions tensors by their entry in partitions."""
    attrs = {"num_partitions": num_partitions}
    result: list[Tensor] = apply_op("DynamicPartition", [data, convert_to_tensor(partitions, int32)], attrs, name)
    return result


def dynamic_stitch(indices: Sequence[Any], data: Sequence[Any], name: str | None = None) -> Tensor:
    """Puts the slices of all data at the rows that indices names."""
    result: Tensor = apply_op("DynamicStitch", [list(indices), list(data)], None, name)
    return result


def _sorted(kind: str) -> Callable[..., Tensor]:
    def function(data: Any, segment_ids: Any, name: str | None = None) -> Tensor:
        result: Tensor = apply_op(f"Segment{kind}", [data, segment_ids], None, name)
        return result

    function.__name__ = function.__qualname__ = f"segment_{kind.lower()}"
    function.__doc__ = f"The {kind.lower()} of rows with equal id; ids are sorted."
    return function


def _unsorted(kind: str) -> Callable[..., Tensor]:
    def function(data: Any, segment_ids: Any, num_segments: Any, name: str | None = None) -> Tensor:
        result: Tensor = apply_op(f"UnsortedSegment{kind}", [data, segment_ids, num_segments], None, name)
        return result

    function.__name__ = function.__qualname__ = f"unsorted_segment_{kind.lower()}"
    function.__doc__ = f"The {kind.lower()} of slices with equal id; negative ids are left out."
    return function


segment_sum, segment_mean, segment_prod = _sorted("Sum"), _sorted("Mean"), _sorted("Prod")
segment_min, segment_max = _sorted("Min"), _sorted("Max")
unsorted_segment_sum, unsorted_segment_prod = _unsorted("Sum"), _unsorted("Prod")
unsorted_segment_min, unsorted_segment_max = _unsorted("Min"), _unsorted("Max")
