"""SparseTensors and IndexedSlices in structures of tensors: what loops and branches hand on are their parts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from timberframe_core import nest
from timberframe_core.graph.indexed_slices import IndexedSlices
from timberframe_core.graph.sparse_tensor import SparseTensor
from timberframe_core.graph.tensor_shape import as_shape


class SparseParts(NamedTuple):
    """The tensors of a SparseTensor."""

    indices: Any
    values: Any
    dense_shape: Any


class SliceParts(NamedTuple):
    """The tensors of IndexedSlices that have a dense shape."""

    values: Any
    indices: Any
    dense_shape: Any


def parts_of(value: Any) -> Any:
    """Returns the tensors of a SparseTensor or of IndexedSlices; anything else as it is."""
    if isinstance(value, SparseTensor):
        return SparseParts(value.indices, value.values, value.dense_shape)
    if isinstance(value, IndexedSlices) and value.dense_shape is not None:
        return SliceParts(value.values, value.indices, value.dense_shape)
    return value


def expanded(structure: Any) -> Any:
    """Returns a structure with the tensors of SparseTensors and IndexedSlices in the place of these."""
    return nest.map_structure(parts_of, structure)


def assembled(structure: Any) -> Any:
    """Returns what `expanded` was given, for what it has returned or the same with other tensors."""
    if isinstance(structure, SparseParts):
        return SparseTensor(*structure)
    if isinstance(structure, SliceParts):
        return IndexedSlices(*structure)
    if not nest.is_nested(structure):
        return structure
    if isinstance(structure, dict):
        pairs: Any = type(structure)
        return pairs((key, assembled(value)) for key, value in structure.items())
    items = [assembled(value) for value in structure]
    kind: Any = type(structure)
    return kind(*items) if hasattr(structure, "_fields") else kind(items)


def expanded_alike(results: Sequence[Any]) -> list[Any]:
    """Returns results of branches, expanded where all of them have a value of one such class in a place."""
    leaves = [nest.flatten(result) for result in results]
    if len({len(found) for found in leaves}) > 1:
        return [expanded(result) for result in results]
    kinds = [{type(parts_of(leaf)) for leaf in place} for place in zip(*leaves, strict=True)]

    def of(result: Any, found: list[Any]) -> Any:
        kept = [parts_of(x) if len(kind) == 1 else x for x, kind in zip(found, kinds, strict=True)]
        return _packed(result, iter(kept).__next__)

    return [of(result, found) for result, found in zip(results, leaves, strict=True)]


def _packed(structure: Any, following: Callable[[], Any]) -> Any:
    """Returns the structure with the following leaves, which may be structures."""
    return nest.map_structure(lambda _: following(), structure)


def invariants_of(parts: SparseParts | SliceParts, shape: Any) -> list[Any]:
    """Returns the shapes that the parts have in every iteration of a loop, for the dense shape that the whole has."""
    dense = None if shape is None else as_shape(shape)
    rank = None if dense is None else len(dense)
    if isinstance(parts, SparseParts):
        return [(None, rank), (None,), (rank,)]
    return [None if dense is None else (None, *dense[1:]), (None,), (rank,)]


def fixed_invariants(parts: SparseParts | SliceParts) -> list[Any]:
    """Returns the shapes that the parts have in every iteration where nothing is said: any number of elements."""
    rank = parts.dense_shape.static_shape
    if isinstance(parts, SparseParts):
        return [(None, None if rank is None else rank[0]), (None,), rank]
    rows = parts.values.static_shape
    return [None if rows is None else (None, *rows[1:]), (None,), rank]
