"""How nodes are made to work on rows: see `OpDef.on_rows`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from timberframe_core.ops.definition.gradients import apply_op
from timberframe_core.ops.definition.opdef import RowForm


def same_on_rows(*names: str, attrs: Callable[[Mapping[str, Any]], Mapping[str, Any] | None] = dict) -> RowForm:
    """For an op that does the same to rows in these inputs. attrs: of the node on rows; None where there is none."""

    def on_rows(op: Any, inputs: Sequence[Any], are_rows: Sequence[bool]) -> Sequence[Any] | None:
        given: list[Any] = []
        at = 0
        for arg in op.op_def.inputs:
            count = _count(arg, op.attrs)
            if any(are_rows[at : at + count]) and (arg.name not in names or not all(are_rows[at : at + count])):
                return None
            given.append(list(inputs[at : at + count]) if arg.is_list else inputs[at])
            at += count
        found = attrs(op.attrs)
        if found is None:
            return None
        made = apply_op(op.op_def.name, given, found)
        return made if isinstance(made, list) else [made]

    return on_rows


def _count(arg: Any, attrs: Mapping[str, Any]) -> int:
    """Returns how many tensors an input is."""
    if arg.type_list_attr is not None:
        return len(attrs[arg.type_list_attr])
    return int(attrs[arg.number_attr]) if arg.number_attr is not None else 1


def next_axis(name: str = "axis") -> Callable[[Mapping[str, Any]], Mapping[str, Any]]:
    """Attrs with an axis counted from after the rows; one counted from the end stays."""
    return lambda attrs: {**attrs, name: attrs[name] + (attrs[name] >= 0)}
