"""Functions of elements, traced to functions of the graph."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

from timberframe.data.structure import DatasetLeaf, Elements, flatten, is_nested, leaf_of, map_leaves, values_of
from timberframe_core.errors import InvalidTypeError, OpError
from timberframe_core.graph.function import FuncGraph, unique_function_name
from timberframe_core.graph.graph import get_default_graph
from timberframe_core.graph.operation import Operation, Tensor


class Traced:
    """A function of the graph. structure: of what it returns; captures: what it needs besides what it is given."""

    def __init__(self, graph: FuncGraph, structure: Any) -> None:
        self.graph = graph
        self.structure = structure
        self.captures: list[Tensor] = list(graph.captures)


def trace(
    function: Callable[..., Any],
    given: Sequence[Any],
    make: Callable[[Tensor, Any], Elements],
    transformation: str,
    returns: str = "tensors",
) -> Traced:
    """Traces a function. given: the structures of its arguments; each part of a tuple that is alone becomes one.

    make: makes a dataset of a tensor and a structure. returns: what the function must return, for errors.
    """
    if not callable(function):
        raise InvalidTypeError(f"Dataset.{transformation}: {function!r} is given; a function is required")
    outer = get_default_graph()
    label = getattr(function, "__name__", type(function).__name__).strip("<>")
    graph = FuncGraph(unique_function_name(outer, f"Dataset_{transformation}_{label}", scoped=False), outer)
    with graph.as_default():
        arguments: list[Any] = []
        for structure in given:
            tensors = [graph.add_input(leaf.dtype, leaf.shape, "args") for leaf in flatten(structure)]
            arguments.append(values_of(structure, tensors))
        if len(given) == 1 and type(arguments[0]) is tuple:
            arguments = list(arguments[0])
        _check_parameters(function, label, len(arguments), transformation)
        made = function(*arguments)
        found, structure = _returned(made, make, transformation, returns)
        graph.finish(found)
    return Traced(graph, structure)


def _check_parameters(function: Callable[..., Any], label: str, count: int, transformation: str) -> None:
    """Raises InvalidTypeError where a function does not take so many arguments."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # built-in functions may have no signature
        return
    try:
        signature.bind(*[None] * count)
    except TypeError as e:
        parts = "1 argument, the element" if count == 1 else f"{count} arguments, the parts of an element"
        raise InvalidTypeError(
            f"Dataset.{transformation}: '{label}' takes ({', '.join(signature.parameters)}) and is called with {parts} "
            f"({e}); it must take as many"
        ) from None


def _returned(
    made: Any, make: Callable[[Tensor, Any], Elements], transformation: str, returns: str
) -> tuple[list[Tensor], Any]:
    """Returns the tensors that a function returned, and their structure. A list counts as a tuple, as in TensorFlow."""
    if isinstance(made, list):
        made = tuple(made)
    tensors: list[Tensor] = []

    def leaf(value: Any) -> Any:
        if isinstance(value, Elements):
            tensors.append(value.variant)
            return DatasetLeaf(value.structure, make)
        if value is None or isinstance(value, Operation):
            raise InvalidTypeError(f"Dataset.{transformation}: the function returns {value!r}; {returns} are required")
        try:
            found, tensor = leaf_of(value)
        except OpError as e:
            raise InvalidTypeError(f"Dataset.{transformation}: the function returns {value!r}: {e}") from e
        tensors.append(tensor)
        return found

    structure = map_leaves(leaf, made) if is_nested(made) else leaf(made)
    return tensors, structure
