"""Feeds of variables: all that a run reads of such a variable is the fed value."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from timberframe_core.compiler.build import prune
from timberframe_core.errors import InvalidArgumentError
from timberframe_core.graph.operation import Operation, Tensor
from timberframe_core.graph.variable_value import handle_of


class FurtherReads(NamedTuple):
    """Reads that get the value of a feed, too. sources: for each of them the number of the feed."""

    tensors: tuple[Tensor, ...] = ()
    sources: tuple[int, ...] = ()


def further_reads(elements: Sequence[Tensor | Operation], feeds: Sequence[Tensor]) -> FurtherReads:
    """Returns the reads of fed variables that a run of `elements` makes besides those that are fed.

    A variable of TensorFlow 1 is read at one place, and who feeds it feeds whatever uses it; here each use reads it.
    Raises InvalidArgumentError where an operation needs the variable itself, such as an update.
    """
    fed = {handle: i for i, t in enumerate(feeds) if (handle := handle_of(t)) is not None}
    if not fed:
        return FurtherReads()
    found: dict[Tensor, int] = {}
    for op in prune(elements, feeds):
        if op.op_def.role == "read_variable" and op.inputs[0] in fed and op.outputs[0] not in feeds:
            found[op.outputs[0]] = fed[op.inputs[0]]
    for op in prune(elements, [*feeds, *found]):
        if op.op_def.role not in ("read_variable", "inspect_variable"):
            for handle in op.inputs:
                if handle in fed:
                    raise InvalidArgumentError(
                        f"{op.type} '{op.name}': works on variable '{handle.op.name}', for which a value is fed; in "
                        f"the same run only reads of it are possible, assign the value before{_where(op)}",
                        op.name,
                    )
    return FurtherReads(tuple(found), tuple(found.values()))


def _where(op: Operation) -> str:
    return f"  [{op.where}]" if op.where else ""
