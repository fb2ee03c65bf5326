"""Accelerator kernels of optimizers: a variable and its slots change in place where nothing else refers to them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import numpy as np

from timberframe_accelerator.launches import Function, Source, failing, index_name, index_type, spread
from timberframe_accelerator.sorting import REFUSE, SortedRows
from timberframe_core.ops.definition.value_checks import ROW_OUTSIDE
from timberframe_ops.training.updates import MOST_SCALARS, MOST_STATES
from timberframe_sdk import InvalidArgumentError, KernelDef, KernelNode, Launcher
from timberframe_sdk.plans.indexing import in_tuple_order
from timberframe_sdk.plans.updates import UpdateInputs, update_inputs, updating_ops

_NO_STEP = 9
_REALS = ("float16", "bfloat16", "float32", "float64")


def _function(node: KernelNode, given: UpdateInputs, name: str, **macros: str | int) -> Function:
    """Returns a kernel of optimizer.h for a node; macros: INDEX, and for rows KEY."""
    device: Any = node.device
    steps = [k for k, i in enumerate(given.scalars) if node.inputs[i].dtype == np.int64]
    source = Source.file(
        "optimizer.h",
        DTYPE=node.inputs[0].dtype.name,
        RULE_NAME=given.rule,
        POWERS=int(given.rule.startswith("ftrl")),
        STATES=given.states,
        STEP=steps[0] if steps else _NO_STEP,
        ROWS=int(given.indices is not None),
        **macros,
    )
    return cast(Function, device.function(source, name))


def _filled(arrays: Sequence[Any], count: int) -> list[Any]:
    """Returns the arrays, the last one repeated: what a rule has no use for may be anything."""
    return [*arrays, *[arrays[-1]] * (count - len(arrays))]


def _scalars(given: UpdateInputs, arrays: Sequence[Any]) -> list[Any]:
    """Returns the arguments for the scalars, the int64 one among them once more as the last."""
    found = [arrays[i] for i in given.scalars]
    return [*_filled(found, MOST_SCALARS), found[-1]]


def apply_dense(node: KernelNode) -> Launcher:
    """Returns a rule over all elements."""
    given = update_inputs(node)
    count, size = given.count, node.inputs[0].size
    index = index_type(size)
    function = _function(node, given, "tf_update", INDEX=index_name(size))
    well = cast(Any, node.device).table(np.zeros(1, np.int64))
    items, group = spread(size)

    def launch(*arrays: Any) -> None:
        states, outputs = arrays[: given.states], arrays[count : count + given.states]
        status = arrays[count + given.states] if len(arrays) > count + given.states else well
        chosen = [*_filled(states, MOST_STATES), *_filled(outputs, MOST_STATES), *_scalars(given, arrays)]
        if size:
            function(items, group, *chosen, arrays[given.gradient], status, np.int64(given.flag), index(size))

    return launch


def apply_rows(node: KernelNode) -> Launcher:
    """Returns a rule over the rows that indices name, which are checked before anything changes."""
    update = _RowUpdate(node)
    return failing(lambda *arrays: update(*arrays), (InvalidArgumentError, in_tuple_order(ROW_OUTSIDE)))


class _RowUpdate:
    """The launches of one sparse update: its rows in order, a copy of the states unless they may change, the rule."""

    def __init__(self, node: KernelNode) -> None:
        self.given = given = update_inputs(node)
        assert given.indices is not None
        variable, indices = node.inputs[0], node.inputs[given.indices]
        limit, self.size = variable.shape[0], variable.size
        inner = variable.size // max(1, limit)
        self.elements = indices.size * inner
        self.find = SortedRows(node, indices.dtype, indices.size, (limit,), REFUSE, max(self.size, self.elements))
        self.index, macros = self.find.sort.index, self.find.sort.macros
        self.copy = _function(node, given, "tf_copy_states", **macros)
        self.update = _function(node, given, "tf_update_rows", **macros)
        self.sizes = np.int64(given.flag), self.index(indices.size), self.index(inner), self.find.side

    def __call__(self, *arrays: Any) -> None:
        given, (workspace, status) = self.given, arrays[-2:]
        states, outputs = arrays[: given.states], arrays[given.count : given.count + given.states]
        targets = _filled(outputs, MOST_STATES)
        if self.size and any(x is not z for x, z in zip(states, outputs, strict=True)):
            self.copy(*spread(self.size), *_filled(states, MOST_STATES), *targets, self.index(self.size))
        self.find(arrays[given.indices or 0], workspace, status)
        if self.elements:
            gradient, scalars = arrays[given.gradient], _scalars(given, arrays)
            self.update(*spread(self.elements), *targets, *scalars, gradient, workspace, status, *self.sizes)


def _real(types: Sequence[str]) -> tuple[str, ...]:
    return tuple(t for t in types if t in _REALS)


def _pairs(states: int) -> tuple[tuple[int, int], ...]:
    return tuple((i, i) for i in range(states))


KERNELS = [
    *(
        KernelDef(op, "", apply_dense, {"T": _real(types)}, inplace=_pairs(states), reads_status=True)
        for op, types, states in updating_ops(sparse=False)
    ),
    *(
        KernelDef(op, "", apply_rows, {"T": _real(types)}, inplace=_pairs(states), status=True)
        for op, types, states in updating_ops(sparse=True)
    ),
]
