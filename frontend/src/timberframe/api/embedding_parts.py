"""Lookups in tables that are kept in several parts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from timberframe.api.arrays import reshape
from timberframe.api.arrays import shape as shape_of
from timberframe.api.indexing import dynamic_partition, dynamic_stitch, gather
from timberframe.api.partitioned_variables import PartitionedVariable
from timberframe.api.selection import cast, where
from timberframe_core.dtypes import int32
from timberframe_core.errors import InvalidArgumentError
from timberframe_core.graph.apply import apply_op, convert_to_tensor
from timberframe_core.graph.operation import Tensor


def tables_of(params: Any) -> list[Any]:
    """Returns the parts of a table; of one that is whole itself."""
    return list(params) if isinstance(params, list | tuple | PartitionedVariable) else [params]


def lookup_in_parts(tables: Sequence[Any], ids: Any, partition_strategy: str) -> Tensor:
    """Returns rows `ids` of a table in parts: with "mod" id i is in part i % parts, with "div"
    the parts follow each other.
    """
    given = convert_to_tensor(ids, name="ids")
    flat = reshape(given, [-1])
    part, row = _places(tables, flat, partition_strategy)
    count, part = len(tables), cast(part, int32)
    positions = apply_op("Range", [0, apply_op("Size", [flat]), 1])
    rows = dynamic_partition(row, part, count)
    found = [gather(table, r) for table, r in zip(tables, rows, strict=True)]
    joined = dynamic_stitch(dynamic_partition(positions, part, count), found)
    element = tables[0].shape[1:]
    sizes = element.as_list() if element.is_fully_defined() else shape_of(tables[0])[1:]
    made = reshape(joined, apply_op("ConcatV2", [[shape_of(given), convert_to_tensor(sizes, int32)], 0]))
    made.set_shape(given.shape.concatenate(element))
    return made


def _places(tables: Sequence[Any], flat: Tensor, strategy: str) -> tuple[Tensor, Tensor]:
    """Returns the part of each id, and its row there."""
    count = len(tables)
    if strategy == "mod":
        return apply_op("FloorMod", [flat, count]), apply_op("FloorDiv", [flat, count])
    if strategy != "div":
        raise InvalidArgumentError(f"tf.nn.embedding_lookup: partition_strategy is {strategy!r}; 'mod' or 'div'")
    sizes = [table.shape.as_list()[0] for table in tables]
    if None in sizes:
        raise InvalidArgumentError("tf.nn.embedding_lookup: a part has an unknown number of rows; 'div' needs them all")
    least, longer = divmod(sum(sizes), count)
    after = apply_op("Sub", [flat, longer])
    early = apply_op("FloorDiv", [flat, least + 1])
    if not least:
        return early, apply_op("FloorMod", [flat, least + 1])
    part = apply_op("Maximum", [early, apply_op("FloorDiv", [after, least])])
    in_longer = apply_op("Less", [part, longer])
    row = where(in_longer, apply_op("FloorMod", [flat, least + 1]), apply_op("FloorMod", [after, least]))
    return part, row
