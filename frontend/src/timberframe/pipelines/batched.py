"""Functions of one element that are called once for many: those that work on each number by itself."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from timberframe.pipelines.base import Block, Captured, Context
from timberframe_core.errors import OpError
from timberframe_core.graph.function import FuncGraph
from timberframe_core.graph.operation import Operation, Tensor
from timberframe_core.plugin.host_ops import PreparedFunction

_LEAST_ROWS = 4
_MOST_FAILURES = 3
"""After so many failed calls, elements are taken one by one, as those may be of several shapes."""

_MOST_SIZES = 4
"""Numbers of rows for which a function is compiled as they come; others are filled up to a power of two."""


class Batched:
    """A function of rows, which gives of each row what another function gives of one element."""

    def __init__(self, function: PreparedFunction, values: Sequence[Any], context: Context) -> None:
        self._function, self._values, self._context = function, tuple(values), context
        self._sizes: set[int] = set()
        self._failures = 0

    @classmethod
    def of(cls, captured: Captured, context: Context) -> Batched | None:
        """Returns the function of rows; None where it has none that gives the same."""
        known, key = context.row_functions, captured.graph
        if key not in known:
            known[key] = _of_rows(captured.graph, captured.declared)
        graph = known[key]
        if graph is None:
            return None
        return cls(context.function(captured.function.like(graph)), captured.values, context)

    def columns(self, block: Block) -> list[np.ndarray] | None:
        """Returns what the function gives for each row; None where that is not known: an
        error in one is found alone.
        """
        count = block.count
        if not block.has_columns or count < _LEAST_ROWS or self._failures > _MOST_FAILURES:
            return None
        columns, wanted = block.columns(), count
        if count not in self._sizes:
            if len(self._sizes) < _MOST_SIZES:
                self._sizes.add(count)
            else:
                wanted = 1 << (count - 1).bit_length()
                columns = [np.concatenate([c, np.repeat(c[-1:], wanted - count, 0)]) for c in columns]
        try:
            made = self._function((*columns, *self._values), self._context.cancel)
        except OpError:
            self._context.cancel.check()
            self._failures += 1
            return None
        return [x[:count] for x in made] if wanted > count else list(made)


def _of_rows(function: FuncGraph, declared: int) -> FuncGraph | None:
    """Returns the function of rows in place of elements; None where one of its operations has
    no form that works on rows.
    """
    if not declared or any(t.static_shape is None for t in function.inputs):
        return None
    made = FuncGraph(f"{function.name}_of_rows", function.outer)
    made.functions = dict(function.functions)
    copies: dict[Tensor, Tensor] = {}
    with made.as_default():
        for i, t in enumerate(function.inputs):
            shape = t.static_shape or ()
            copies[t] = made.add_input(t.dtype, (None, *shape) if i < declared else shape)
            copies[t].handle = t.handle
        rows = set(function.inputs[:declared])
        given = {t.op for t in function.inputs}
        try:
            fits = all(_add(made, op, rows, copies) for op in function.get_operations() if op not in given)
        except OpError:
            return None
    if not fits or not all(t in rows for t in function.outputs):
        return None
    made.finish([copies[t] for t in function.outputs])
    return made


def _add(made: FuncGraph, op: Operation, rows: set[Tensor], copies: dict[Tensor, Tensor]) -> bool:
    """Adds what does for rows what an operation does for one element; False where there is nothing that does."""
    if op.control_inputs or op.op_def.stateful:
        return False
    inputs = [copies[t] for t in op.inputs]
    are_rows = [t in rows for t in op.inputs]
    if any(are_rows) and not _is_elementwise(op, are_rows):
        on_rows = op.op_def.on_rows
        outputs = None if on_rows is None else on_rows(op, inputs, are_rows)
        if outputs is None:
            return False
        for t in outputs:
            t.op._where = op._where
    else:
        new = made.create_op(op.op_def, inputs, op.attrs, op.name, device=op.device)
        new._where, outputs = op._where, new.outputs
    copies.update(zip(op.outputs, outputs, strict=True))
    if any(are_rows):
        rows.update(op.outputs)
    return True


def _is_elementwise(op: Operation, are_rows: Sequence[bool]) -> bool:
    """Returns whether the operation works on each number by itself, and a further dimension
    in front changes nothing.
    """
    definition = op.op_def
    if not (definition.elementwise or definition.passes_through) or definition.refused or definition.reports_to_host:
        return False
    shape = op.outputs[0].static_shape
    if definition.on_host or len(op.outputs) != 1 or shape is None:
        return False
    shapes = [t.static_shape for t, is_row in zip(op.inputs, are_rows, strict=True) if is_row]
    return all(s is not None and len(s) == len(shape) for s in shapes)
