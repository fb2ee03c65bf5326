"""Sparse tensors among what `tf.train.batch` gathers: queues hold a number for each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from timberframe.api.arrays import expand_dims, identity, squeeze
from timberframe.api.constants import fill
from timberframe.api.framework import control_dependencies
from timberframe.api.indexing import boolean_mask, gather
from timberframe.layers.switch import smart_cond
from timberframe_core.dtypes import int64
from timberframe_core.errors import InvalidArgumentError
from timberframe_core.graph.apply import apply_op, convert_to_tensor
from timberframe_core.graph.graph import get_default_graph
from timberframe_core.graph.operation import Tensor
from timberframe_core.graph.sparse_tensor import SparseTensor

Restore = Callable[[Sequence[Any]], list[Any]]


def store(lists: Sequence[Sequence[Any]], many: bool, keep: Tensor) -> tuple[list[list[Tensor]], Restore]:
    """Lists of tensors with numbers in place of sparse ones, and what puts these back into a batch.

    many: each tensor holds many elements as rows. keep: which of them are wanted; others are not kept.
    """
    columns = [[parts[i] for parts in lists] for i in range(len(lists[0]))]
    maps: list[str | None] = []
    for column in columns:
        sparse = [isinstance(t, SparseTensor) for t in column]
        if any(sparse) != all(sparse):
            raise InvalidArgumentError("batch_join: a component is sparse in some sets of tensors only; in all or none")
        maps.append(get_default_graph().unique_name("SparseTensorsMap") if any(sparse) else None)
    stored = [
        [t if name is None else _stored(t, name, many, keep) for t, name in zip(parts, maps, strict=True)]
        for parts in lists
    ]
    first = lists[0]

    def restore(taken: Sequence[Any]) -> list[Any]:
        made = [
            t if name is None else _restored(t, given, name, many)
            for t, given, name in zip(taken, first, maps, strict=True)
        ]
        sparse = [t.values for t in made if isinstance(t, SparseTensor)]
        if not sparse:
            return made
        with control_dependencies(sparse):  # else a run that needs some of them would leave the others in the map
            return [
                SparseTensor(identity(t.indices), identity(t.values), identity(t.dense_shape))
                if isinstance(t, SparseTensor)
                else identity(t)
                for t in made
            ]

    return stored, restore


def _stored(t: SparseTensor, name: str, many: bool, keep: Tensor) -> Tensor:
    """Returns numbers [rows, 1], or [1] of a single element."""
    if keep.shape.ndims == 1:
        wanted = gather(keep, t.indices[:, 0])
        t = SparseTensor(boolean_mask(t.indices, wanted), boolean_mask(t.values, wanted), t.dense_shape)

    def add() -> Tensor:
        op = "AddManySparseToTensorsMap" if many else "AddSparseToTensorsMap"
        made: Tensor = apply_op(op, [t.indices, t.values, t.dense_shape], {"shared_name": name})
        return made

    def nothing() -> Tensor:
        none = convert_to_tensor(-1, int64)
        return fill(t.dense_shape[:1], none) if many else none

    numbers = add() if keep.shape.ndims == 1 else smart_cond(keep, add, nothing)
    return expand_dims(numbers, -1)


def _restored(numbers: Tensor, given: SparseTensor, name: str, many: bool) -> SparseTensor:
    attrs = {"dtype": given.values.dtype, "shared_name": name}
    indices, values, shape = apply_op("TakeManySparseFromTensorsMap", [squeeze(numbers, [1])], attrs)
    rank = given.dense_shape.shape[0]
    if rank is not None:
        rank = int(rank) + (0 if many else 1)
        indices.set_shape([None, rank])
        shape.set_shape([rank])
    return SparseTensor(indices, values, shape)
