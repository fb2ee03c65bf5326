"""Copies of parts of a graph, with other tensors in the place of some."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from timberframe_contrib.contrib.graph_editor.selecting import (
    SubGraphView,
    get_backward_walk_ops,
    get_walks_intersection_ops,
    make_list_of_t,
    sgv,
)
from timberframe_core import nest
from timberframe_core.errors import InvalidArgumentError
from timberframe_core.graph.apply import convert_to_tensor
from timberframe_core.graph.function import copy_operation
from timberframe_core.graph.graph import Graph
from timberframe_core.graph.operation import Operation, Tensor

__all__ = ["TransformerInfo", "copy", "copy_with_input_replacements", "graph_replace"]


class TransformerInfo:
    """The result of a copy: for operations and tensors of one side those of the other."""

    def __init__(self, operations: Mapping[Operation, Operation], tensors: Mapping[Tensor, Tensor]) -> None:
        self._copies: dict[Any, Any] = {**operations, **tensors}
        self._originals = {copied: original for original, copied in self._copies.items()}

    def transformed(self, original: Any, missing_fn: Any = None) -> Any:
        """Returns the copies of a tensor, an operation or a structure; what missing_fn gives, or None, for others."""
        return _mapped(self._copies, original, missing_fn)

    def original(self, transformed: Any, missing_fn: Any = None) -> Any:
        """Returns what was copied, for a copy or a structure of copies."""
        return _mapped(self._originals, transformed, missing_fn)


def _mapped(known: Mapping[Any, Any], given: Any, missing: Any) -> Any:
    def find(x: Any) -> Any:
        found = known.get(getattr(x, "op", x)) if not isinstance(x, Tensor | Operation) else known.get(x)
        return missing(x) if found is None and missing is not None else found

    return nest.map_structure(find, given)


def copy(
    view: Any, dst_graph: Graph | None = None, dst_scope: str = "", src_scope: str = "", reuse_dst_scope: bool = False
) -> tuple[SubGraphView, TransformerInfo]:
    """Copies operations into a graph, by default their own, under a scope; what they use from outside stays.

    src_scope: is taken off the names. reuse_dst_scope: the scope may be there. Returns a view of the copies, and what
    became of each.
    """
    return copy_with_input_replacements(view, {}, dst_graph, dst_scope, src_scope, reuse_dst_scope)


def copy_with_input_replacements(
    view: Any,
    replacement_ts: Mapping[Tensor, Any],
    dst_graph: Graph | None = None,
    dst_scope: str = "",
    src_scope: str = "",
    reuse_dst_scope: bool = False,
) -> tuple[SubGraphView, TransformerInfo]:
    """Copies operations, with other tensors in the place of some that they use; see copy."""
    chosen = sgv(view)
    if not chosen.ops:
        return chosen, TransformerInfo({}, {})
    source = chosen.ops[0].graph
    graph = source if dst_graph is None else dst_graph
    scope = dst_scope.rstrip("/")
    if scope and not reuse_dst_scope:
        scope = graph.unique_name(scope)
    copies: dict[Tensor, Tensor] = {}
    with graph.as_default():
        copies.update((t, convert_to_tensor(new, t.dtype)) for t, new in replacement_ts.items())
    operations: dict[Operation, Operation] = {}
    for op in sorted(chosen.ops, key=lambda op: op.id):
        for t in op.inputs:
            if t not in copies:
                copies[t] = _outside(t, graph)
        waits = {c: operations.get(c, c) for c in op.control_inputs if c in operations or graph is source}
        name = "/".join(filter(None, [scope, op.name.removeprefix(f"{src_scope.rstrip('/')}/" if src_scope else "")]))
        kept = {t: copies[t] for t in op.outputs if t in copies}
        operations[op] = _copied(graph, op, copies, waits, graph.unique_name(name))
        copies.update(kept)
    made = {t: copies[t] for op in chosen.ops for t in op.outputs}
    return SubGraphView(list(operations.values())), TransformerInfo(operations, made)


def _copied(
    graph: Graph, op: Operation, copies: dict[Tensor, Tensor], waits: dict[Operation, Operation], name: str
) -> Operation:
    """Returns a copy of an operation that waits for the copies that there are of what it waited for."""
    before = op.control_inputs
    op.control_inputs = tuple(c for c in before if c in waits)
    try:
        return copy_operation(graph, op, copies, waits, name)
    finally:
        op.control_inputs = before


def _outside(tensor: Tensor, graph: Graph) -> Tensor:
    """Returns the tensor that a copy uses in place of one that is not copied: itself, in its own graph only."""
    if tensor.graph is not graph:
        raise InvalidArgumentError(
            f"graph_editor: '{tensor.name}' is of another graph than the copies; a replacement for it is required"
        )
    return tensor


def graph_replace(
    target_ts: Any,
    replacement_ts: Mapping[Tensor, Any],
    dst_scope: str = "",
    src_scope: str = "",
    reuse_dst_scope: bool = False,
) -> Any:
    """Returns tensors as they are with others in the place of some that they depend on; what lies between is copied.

    Raises InvalidArgumentError where they depend on none of these.
    """
    targets = make_list_of_t(target_ts)
    given = {t: convert_to_tensor(new, t.dtype) for t, new in replacement_ts.items()}
    ops = get_walks_intersection_ops(list(given), list(targets))
    direct = {t for t in targets if t in given}
    if not ops and not direct:
        raise InvalidArgumentError(
            f"graph_editor.graph_replace: {[t.name for t in targets]} do not depend on {[t.name for t in given]}; "
            "tensors that they depend on are required"
        )
    before = set(get_backward_walk_ops([t.op for t in given]))
    _, info = copy_with_input_replacements(
        [op for op in ops if op not in before], given, None, dst_scope, src_scope, reuse_dst_scope
    )

    def replaced(t: Tensor) -> Tensor:
        if t in given:
            return given[t]
        found: Tensor | None = info.transformed(t)
        return t if found is None else found

    return nest.map_structure(replaced, target_ts)
