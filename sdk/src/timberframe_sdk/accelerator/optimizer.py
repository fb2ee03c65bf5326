"""Accelerator kernels of optimizers: a variable and its slots change in place where nobody else sees them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import numpy as np

from timberframe.errors import InvalidArgumentError
from timberframe.plugin.contracts import KernelDef, KernelNode, Launcher
from timberframe_sdk.accelerator.device import Function, Source, failing, index_name, index_type, spread
from timberframe_sdk.updates import UpdateInputs, update_inputs, updating_ops

_ROW = InvalidArgumentError, "index {0} at position {1} is outside [0, {2}); it must name a slice of the variable"
_MOST_STATES, _MOST_SCALARS, _NO_STEP = 4, 6, 9
_REALS = ("float16", "bfloat16", "float32", "float64")


def _function(node: KernelNode, given: UpdateInputs, index: str, name: str) -> Function:
    """A kernel of optimizer.h for a node."""
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
        TINDEX="int32" if given.indices is None else node.inputs[given.indices].dtype.name,
        INDEX=index,
    )
    return cast(Function, device.function(source, name))


def _filled(arrays: Sequence[Any], count: int) -> list[Any]:
    """The arrays, the last one repeated: what a rule has no use for may be anything."""
    return [*arrays, *[arrays[-1]] * (count - len(arrays))]


def _scalars(given: UpdateInputs, arrays: Sequence[Any]) -> list[Any]:
    """The arguments for the scalars, the int64 one among them once more as the last."""
    found = [arrays[i] for i in given.scalars]
    return [*_filled(found, _MOST_SCALARS), found[-1]]


def apply_dense(node: KernelNode) -> Launcher:
    """A rule over all elements."""
    given = update_inputs(node)
    count, size = given.count, node.inputs[0].size
    index = index_type(size)
    function = _function(node, given, index_name(size), "tf_update")
    well = cast(Any, node.device).copy_in(np.zeros(1, np.int64))
    items, group = spread(size)

    def launch(*arrays: Any) -> None:
        states, outputs = arrays[: given.states], arrays[count : count + given.states]
        status = arrays[count + given.states] if len(arrays) > count + given.states else well
        chosen = [*_filled(states, _MOST_STATES), *_filled(outputs, _MOST_STATES), *_scalars(given, arrays)]
        if size:
            function(items, group, *chosen, arrays[given.gradient], status, np.int64(given.flag), index(size))

    return launch


def apply_rows(node: KernelNode) -> Launcher:
    """A rule over the rows that indices name, which are checked before anything changes."""
    given = update_inputs(node)
    assert given.indices is not None
    variable, named = node.inputs[0], node.inputs[given.indices].size
    limit = variable.shape[0]
    inner = variable.size // max(1, limit)
    node.workspace(4 * max(1, 2 * limit + named))
    launch = _RowUpdate(node, given, named, inner).launch
    return failing(lambda *arrays: launch(*arrays), _ROW)


class _RowUpdate:
    """The launches of one sparse update, in their order."""

    def __init__(self, node: KernelNode, given: UpdateInputs, named: int, inner: int) -> None:
        self.given = given
        self.size, self.named = node.inputs[0].size, named
        self.node = np.int64(node.index + 1)
        total = max(self.size, named * inner)
        self.index = index_type(total)
        self.limit, self.inner = self.index(node.inputs[0].shape[0]), self.index(inner)
        device: Any = node.device
        name, indices = index_name(total), node.inputs[given.indices or 0].dtype.name
        self.copy = _function(node, given, name, "tf_copy_states")
        self.update = _function(node, given, name, "tf_update_rows")
        rows = Source.file("row_order.h", TINDEX=indices, INDEX=name)
        self.check, self.ends, self.link = (
            device.function(rows, name) for name in ("tf_check_rows", "tf_find_ends", "tf_link_rows")
        )

    def launch(self, *arrays: Any) -> None:
        given, count = self.given, np.int32(self.named)
        states, outputs = arrays[: given.states], arrays[given.count : given.count + given.states]
        tables, status = arrays[-2:]
        assert given.indices is not None
        indices, targets = arrays[given.indices], _filled(outputs, _MOST_STATES)
        if self.size and any(x is not z for x, z in zip(states, outputs, strict=True)):
            self.copy(*spread(self.size), *_filled(states, _MOST_STATES), *targets, self.index(self.size))
        if not self.named:
            return
        over, elements = spread(self.named), self.named * int(self.inner)
        self.check(*over, indices, tables, status, self.node, count, self.limit)
        if elements:
            self.ends(*over, indices, tables, status, count, self.limit)
            self.link(*over, indices, tables, status, count, self.limit)
            sizes = np.int64(given.flag), self.index(elements), self.inner, self.limit
            scalars, gradient = _scalars(given, arrays), arrays[given.gradient]
            self.update(*spread(elements), *targets, *scalars, gradient, indices, tables, status, *sizes)


def _real(types: Sequence[str]) -> tuple[str, ...]:
    return tuple(t for t in types if t in _REALS)


def _pairs(states: int) -> tuple[tuple[int, int], ...]:
    return tuple((i, i) for i in range(states))


KERNELS = [
    *(
        KernelDef(op, "", apply_dense, {"T": _real(types)}, inplace=_pairs(states), heeds_status=True)
        for op, types, states in updating_ops(sparse=False)
    ),
    *(
        KernelDef(op, "", apply_rows, {"T": _real(types)}, inplace=_pairs(states), status=True)
        for op, types, states in updating_ops(sparse=True)
    ),
]
