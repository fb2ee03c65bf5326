"""Partitioners: functions that say into how many parts a variable is divided."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from timberframe.api.variable_scope import get_variable, variable_scope
from timberframe_core.dtypes import DType, as_dtype, float32
from timberframe_core.errors import InvalidArgumentError
from timberframe_core.graph.tensor_shape import TensorShape

__all__ = [
    "create_partitioned_variables", "fixed_size_partitioner", "min_max_variable_partitioner",
    "variable_axis_size_partitioner",
]  # fmt: skip

Partitioner = Callable[..., list[int]]


def fixed_size_partitioner(num_shards: int, axis: int = 0) -> Partitioner:
    """Divides `axis` into num_shards parts, or into as many as it has elements."""

    def partitioner(shape: Any, **_: Any) -> list[int]:
        return _along(TensorShape(shape), axis, num_shards)

    return partitioner


def variable_axis_size_partitioner(
    max_shard_bytes: int, axis: int = 0, bytes_per_string_element: int = 16, max_shards: int | None = None
) -> Partitioner:
    """Divides `axis` into parts of at most max_shard_bytes bytes, and into at most max_shards parts."""
    if max_shard_bytes < 1 or bytes_per_string_element < 1 or (max_shards is not None and max_shards < 1):
        raise InvalidArgumentError(
            f"variable_axis_size_partitioner: max_shard_bytes is {max_shard_bytes}, bytes_per_string_element "
            f"{bytes_per_string_element} and max_shards {max_shards}; they must be positive"
        )

    def partitioner(shape: Any, dtype: Any) -> list[int]:
        whole = TensorShape(shape)
        sizes = _known(whole)
        row = (whole.num_elements() or 0) / max(sizes[axis], 1) * _bytes(dtype, bytes_per_string_element)
        rows = max(1, math.floor(max_shard_bytes / row)) if row else max(sizes[axis], 1)
        count = math.ceil(sizes[axis] / rows)
        return _along(whole, axis, count if max_shards is None else min(max_shards, count))

    return partitioner


def min_max_variable_partitioner(
    max_partitions: int = 1, axis: int = 0, min_slice_size: int = 256 << 10, bytes_per_string_element: int = 16
) -> Partitioner:
    """Divides `axis` into parts of at least min_slice_size bytes, and into at most max_partitions parts."""

    def partitioner(shape: Any, dtype: Any) -> list[int]:
        whole = TensorShape(shape)
        total = (whole.num_elements() or 0) * _bytes(dtype, bytes_per_string_element)
        return _along(whole, axis, min(max_partitions, math.ceil(total / min_slice_size)))

    return partitioner


def _bytes(dtype: Any, of_string: int) -> int:
    kind = as_dtype(dtype).base_dtype
    return of_string if kind.name == "string" else kind.size


def _known(shape: TensorShape) -> list[int]:
    if not shape.is_fully_defined():
        raise InvalidArgumentError(f"partitioner: shape is {shape}; it must be fully known")
    return [d or 0 for d in shape.as_list()]


def _along(shape: TensorShape, axis: int, count: int) -> list[int]:
    sizes = _known(shape)
    if not -len(sizes) <= axis < len(sizes):
        raise InvalidArgumentError(f"partitioner: axis is {axis} for shape {shape}; it must lie inside")
    made = [1] * len(sizes)
    made[axis] = max(1, min(count, sizes[axis]))
    return made


def create_partitioned_variables(
    shape: Sequence[int],
    slicing: Sequence[int],
    initializer: Any,
    dtype: DType = float32,
    trainable: bool = True,
    collections: Sequence[str] | None = None,
    name: str | None = None,
    reuse: Any = None,
) -> list[Any]:
    """Returns the parts of a variable of this shape that is divided into slicing[i] parts along dimension i."""
    if not shape or len(shape) != len(slicing):
        raise InvalidArgumentError(
            f"create_partitioned_variables: shape is {list(shape)} and slicing {list(slicing)}; each dimension needs a "
            "number of parts"
        )
    with variable_scope(name, "PartitionedVariable", reuse=reuse):
        made = get_variable(
            "", shape, dtype, initializer, trainable=trainable, collections=collections,
            partitioner=lambda **_: list(slicing),
        )  # fmt: skip
        return list(made)
