"""Fetch structures: what `Session.run` is asked for, flattened to tensors and operations, and put together again."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from timberframe_core.errors import InvalidArgumentError, InvalidTypeError
from timberframe_core.graph.feeds_and_fetches import is_handle
from timberframe_core.graph.graph import Graph
from timberframe_core.graph.operation import Operation, Tensor

Assemble = Callable[[Sequence[Any]], Any]


class Fetches:
    """A fetch structure. elements: each tensor or operation once; assemble: values of elements -> structure."""

    __slots__ = ("assemble", "elements", "single")

    def __init__(self, graph: Graph, structure: Any) -> None:
        positions: dict[Tensor | Operation, int] = {}
        self.assemble = _assembler(graph, structure, positions)
        self.elements = tuple(positions)
        self.single = isinstance(structure, Tensor | Operation | str)

    @classmethod
    def of(cls, elements: Sequence[Tensor | Operation]) -> Fetches:
        """Returns a list of elements, among which may be handles and lists of tensors."""
        made = cls.__new__(cls)
        made.assemble, made.elements, made.single = list, tuple(elements), False
        return made


def structure_key(structure: Any) -> Any:
    """Returns a hashable key that two structures share exactly when they ask for the same, or
    None where there is none.
    """
    if isinstance(structure, Tensor | Operation | str):
        return structure
    if isinstance(structure, list | tuple):
        return type(structure), tuple([structure_key(v) for v in structure])
    if isinstance(structure, dict | Mapping):  # dict first: asking an abstract class takes longer
        return type(structure), tuple([(k, structure_key(v)) for k, v in structure.items()])
    return None, id(structure), structure


def _assembler(graph: Graph, structure: Any, positions: dict[Tensor | Operation, int]) -> Assemble:
    if structure is None:
        raise InvalidTypeError("fetch is None; a Tensor, an Operation, a name or a structure of these is required")
    if isinstance(structure, Mapping):
        return _mapping_assembler(graph, structure, positions)
    if isinstance(structure, list | tuple):
        parts = [_assembler(graph, s, positions) for s in structure]
        if hasattr(structure, "_fields"):
            return lambda values: type(structure)(*[p(values) for p in parts])
        kind = type(structure) if type(structure) in (list, tuple) else list
        return lambda values: kind([p(values) for p in parts])
    parts_of = getattr(structure, "fetch_parts", None)
    if parts_of is not None:  # IndexedSlices and the like: (list of tensors, rebuild)
        tensors, rebuild = parts_of()
        parts = [_assembler(graph, t, positions) for t in tensors]
        return lambda values: rebuild([p(values) for p in parts])
    element = graph.as_graph_element(structure)
    if not graph.is_fetchable(element):
        if isinstance(element, Tensor) and is_handle(element):
            why = f"is a {element.dtype.name} handle; it has no value to return"
        else:
            why = "is one of Graph.prevent_fetching; it cannot be fetched"
        raise InvalidArgumentError(f"fetch '{element.name}' {why}")
    at = positions.setdefault(element, len(positions))
    return lambda values: values[at]


def _mapping_assembler(
    graph: Graph, structure: Mapping[Any, Any], positions: dict[Tensor | Operation, int]
) -> Assemble:
    parts = {k: _assembler(graph, v, positions) for k, v in structure.items()}
    if type(structure) is dict:
        return lambda values: {k: p(values) for k, p in parts.items()}
    kind: Any = type(structure)
    return lambda values: kind([(k, p(values)) for k, p in parts.items()])
