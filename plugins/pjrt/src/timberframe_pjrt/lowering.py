"""Reports in the words of StableHLO: which of its operations a node became."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from timberframe_pjrt.tracing import SCOPE

_MOVES = ("constant", "broadcast_in_dim", "reshape", "convert", "return")
"""Operations that are named only where a node has no others."""
_NODE = re.compile(rf"{SCOPE}(\d+)")
_CALLS = ("call", "func.call")


def operations_by_node(module: Any, count: int) -> list[tuple[str, ...]]:
    """Returns the names of the operations of each node, such as "stablehlo.maximum". count: of nodes.

    module: of MLIR, as JAX lowers a function whose nodes have scopes of their own.
    """
    functions = {op.attributes["sym_name"].value: op for op in _inside(module.operation) if _has_symbol(op)}
    found: list[dict[str, None]] = [{} for _ in range(count)]
    for op in _inside(functions["main"]):
        scope = _NODE.search(str(op.location))
        if scope is not None:
            found[int(scope[1])].update(dict.fromkeys(_names(op, functions)))
    return [computing(tuple(names)) for names in found]


def _has_symbol(op: Any) -> bool:
    return "sym_name" in op.attributes


def _inside(op: Any) -> Iterator[Any]:
    """Yields the operations in an operation's regions, the first one first."""
    for region in op.regions:
        for block in region.blocks:
            yield from (inner.operation for inner in block.operations)


def _names(op: Any, functions: Mapping[str, Any]) -> Iterator[str]:
    """Yields the name of an operation, and those of what it calls or has inside."""
    if op.name in _CALLS:
        yield from (
            name for inner in _inside(functions[op.attributes["callee"].value]) for name in _names(inner, functions)
        )
        return
    yield op.name
    yield from (name for inner in _inside(op) for name in _names(inner, functions))


def computing(names: Sequence[str]) -> tuple[str, ...]:
    """Returns the operations that compute or move, those that only fit shapes left out where there are others."""
    shown = [n for n in names if n.rpartition(".")[2] not in _MOVES]
    return tuple(shown or [n for n in names if not n.endswith("return")])
