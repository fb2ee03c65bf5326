"""Functions that operations run: found by name, and of the arguments and results that the operation needs."""

from __future__ import annotations

from collections.abc import Sequence

from timberframe_core.dtypes import DType
from timberframe_core.errors import InvalidArgumentError, NotFoundError
from timberframe_core.graph.function import FuncGraph
from timberframe_core.graph.graph import Graph
from timberframe_core.graph.operation import Operation

_ANY_ONE = None
"""The results of a loop's condition: one, of any dtype."""


def called_functions(op: Operation, graph: Graph | None = None) -> tuple[FuncGraph, ...]:
    """Returns the functions that the op's attrs name, in the order of the attrs. graph: to look
    in, by default the op's own.

    Raises NotFoundError where one is missing, and InvalidArgumentError where its arguments or results are not those
    that the op has: nothing after this has to check them.
    """
    found: list[FuncGraph] = []
    for role in op.op_def.function_attrs:
        names = op.attrs[role]
        for name in (names,) if isinstance(names, str) else names:
            found.append(_find(graph or op.graph, op, name))
            _check(op, role, found[-1])
    return tuple(found)


def named_functions(op: Operation, graph: Graph) -> tuple[FuncGraph, ...]:
    """Returns the functions that the op's attrs name, in the order of the attrs, whatever their arguments are."""
    return tuple(_find(graph, op, name) for name in op.op_def.functions(op.attrs))


def _find(graph: Graph, op: Operation, name: str) -> FuncGraph:
    function = graph.find_function(name)
    if function is None:
        raise NotFoundError(
            f"{op.type} '{op.name}': function '{name}' is not in the graph's library; it has "
            f"{', '.join(sorted(graph.functions)) or 'none'}",
            op.name,
        )
    return function


def _check(op: Operation, role: str, function: FuncGraph) -> None:
    is_loop = "T" in op.op_def.attrs
    given: Sequence[DType] = op.attrs["T" if is_loop else "Tin"]
    made: Sequence[DType] | None = op.attrs["T" if is_loop else "Tout"]
    if is_loop and role == "cond":
        made = _ANY_ONE
    _compare(op, role, function, "arguments", [t.dtype for t in function.inputs], given)
    results = [t.dtype for t in function.outputs]
    _compare(op, role, function, "results", results, results[:1] or ["bool"] if made is None else made)


def _compare(
    op: Operation, role: str, function: FuncGraph, what: str, found: Sequence[DType], wanted: Sequence[DType | str]
) -> None:
    if tuple(found) != tuple(wanted) and [_base(d) for d in found] != [_base(d) for d in wanted]:
        raise InvalidArgumentError(
            f"{op.type} '{op.name}': {role} '{function.name}' has {len(found)} {what} ({_names(found)}); "
            f"{len(wanted)} ({_names(wanted)}) are required",
            op.name,
        )


def _base(dtype: DType | str) -> DType | str:
    return dtype.base_dtype if isinstance(dtype, DType) else dtype


def _names(found: Sequence[DType | str]) -> str:
    return ", ".join(str(_base(d)) for d in found) or "none"
