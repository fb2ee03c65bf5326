"""Other inputs for operations that exist."""

from __future__ import annotations

from typing import Any

from timberframe_contrib.contrib.graph_editor.selecting import SubGraphView, make_list_of_op, make_list_of_t
from timberframe_core.errors import InvalidArgumentError
from timberframe_core.graph.growth import change_inputs
from timberframe_core.graph.operation import Operation, Tensor

__all__ = ["add_control_inputs", "remove_control_inputs", "reroute_ts", "swap_ts"]


def reroute_ts(ts0: Any, ts1: Any, can_modify: Any = None, cannot_modify: Any = None) -> int:
    """Makes the users of each tensor of ts1 use the one of ts0 in its place; returns how many inputs that changed.

    can_modify, cannot_modify: operations that alone may be changed, and those that may not.
    """
    new, old = _pairs(ts0, ts1)
    return _replace(dict(zip(old, new, strict=True)), can_modify, cannot_modify)


def swap_ts(ts0: Any, ts1: Any, can_modify: Any = None, cannot_modify: Any = None) -> int:
    """Exchanges the users of each two tensors; returns how many inputs that changed."""
    first, second = _pairs(ts0, ts1)
    both = {**dict(zip(first, second, strict=True)), **dict(zip(second, first, strict=True))}
    return _replace(both, can_modify, cannot_modify)


def _pairs(ts0: Any, ts1: Any) -> tuple[list[Tensor], list[Tensor]]:
    new, old = (make_list_of_t(ts.outputs if isinstance(ts, SubGraphView) else ts) for ts in (ts0, ts1))
    if len(new) != len(old):
        raise InvalidArgumentError(f"graph_editor: {len(new)} and {len(old)} tensors are given; as many are required")
    return new, old


def _replace(new: dict[Tensor, Tensor], can_modify: Any, cannot_modify: Any) -> int:
    if not new:
        return 0
    graph = next(iter(new)).graph
    allowed = None if can_modify is None else set(make_list_of_op(can_modify))
    refused = set() if cannot_modify is None else set(make_list_of_op(cannot_modify))
    count = 0
    for op in list(graph.get_operations()):
        changed = sum(t in new for t in op.inputs)
        if changed and op not in refused and (allowed is None or op in allowed):
            change_inputs(op, [new.get(t, t) for t in op.inputs], op.control_inputs)
            count += changed
    return count


def add_control_inputs(op: Operation, cops: Any) -> None:
    """Makes an operation wait for others, too."""
    (op,) = make_list_of_op([op])
    added = make_list_of_op(cops if isinstance(cops, list | tuple | set) else [cops])
    known = [c for c in added if c in op.control_inputs]
    if known:
        raise InvalidArgumentError(
            f"graph_editor: '{op.name}' waits for '{known[0].name}' already; a new one is required"
        )
    change_inputs(op, op.inputs, [*op.control_inputs, *added])


def remove_control_inputs(op: Operation, cops: Any) -> None:
    """Makes an operation wait for some no longer."""
    (op,) = make_list_of_op([op])
    removed = make_list_of_op(cops if isinstance(cops, list | tuple | set) else [cops])
    for c in removed:
        if c not in op.control_inputs:
            raise InvalidArgumentError(
                f"graph_editor: '{op.name}' does not wait for '{c.name}'; one of those is required"
            )
    change_inputs(op, op.inputs, [c for c in op.control_inputs if c not in removed])
