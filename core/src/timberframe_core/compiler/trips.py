"""How many iterations a loop makes, where its condition shows it: `i < n` with a counter that goes up by a constant."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from timberframe_core.graph.function import FuncGraph
from timberframe_core.graph.graph import Graph
from timberframe_core.graph.operation import Operation, Tensor
from timberframe_core.graph.signatures import called_functions
from timberframe_core.ops.definition.opdef import is_known

COMPARISONS = {"Less": (False, 0), "Greater": (True, 0), "LessEqual": (False, 1), "GreaterEqual": (True, 1)}
"""Whether the counter stands on the right, and how much further than its limit it goes."""

Bounds = dict[Tensor, int]
"""The largest value that an integer scalar can have."""


@dataclass(frozen=True)
class IterationLimit:
    """A loop makes `iterations` iterations if `exact`, else at most so many; and `least` at least."""

    iterations: int
    exact: bool
    least: int


def runs_of_bodies(op: Operation, graph: Graph) -> float:
    """Returns how often at most a loop or branch runs bodies, those in these included; inf if not known."""
    functions = called_functions(op, graph)
    inner = sum(map(_runs_in, functions))
    if op.op_def.role != "loop":
        return len(functions) + inner
    cond, body = functions
    limit = iteration_limit(cond, op.inputs, lambda i: body.outputs[i], {})
    return math.inf if limit is None else limit.iterations * (1 + inner)


_runs: WeakKeyDictionary[FuncGraph, tuple[int, float]] = WeakKeyDictionary()
"""Lengths of functions that were seen before, and the runs of bodies in them: each level of nesting asks for all."""


def _runs_in(function: FuncGraph) -> float:
    known = _runs.get(function)
    if known is None or known[0] != len(function):
        _runs[function] = len(function), math.inf  # a recursion
        ops = [op for op in function.get_operations() if op.op_def.function_attrs]
        known = _runs[function] = len(function), sum(runs_of_bodies(op, function) for op in ops)
    return known[1]


def iteration_limit(
    cond: FuncGraph, inputs: Sequence[Any], following: Callable[[int], Tensor | None], bounds: Mapping[Tensor, int]
) -> IterationLimit | None:
    """Returns the bound that a condition gives; inputs: what the loop variables start from,
    following(i): what they become.
    """
    return _limit(cond, original(cond.outputs[0]), inputs, following, bounds)


def _limit(
    cond: FuncGraph, test: Tensor, inputs: Sequence[Any], following: Callable[[int], Tensor | None], bounds: Any
) -> IterationLimit | None:
    if test.op.type == "LogicalAnd":
        parts = [_limit(cond, original(t), inputs, following, bounds) for t in test.op.inputs]
        known = [p for p in parts if p is not None]
        exact = len(known) == len(parts) and all(p.exact for p in known)
        least = min(p.least for p in known) if len(known) == len(parts) else 0
        return IterationLimit(min(p.iterations for p in known), exact, least) if known else None
    if test.op.type not in COMPARISONS or not test.op.inputs[0].dtype.is_integer:
        return None
    swapped, more = COMPARISONS[test.op.type]
    counter, end = (original(t) for t in (reversed(test.op.inputs) if swapped else test.op.inputs))
    position = _position(cond, counter)
    if position is None:
        return None
    start, after = inputs[position], following(position)
    if not isinstance(start, Tensor) or after is None:
        return None
    begin, step = _value(start), _step_from(after, position)
    most, fewest = (_end(cond, end, inputs, following, side) for side in (_Side(min, bounds), _Side(max, {})))
    if begin is None or most is None or step is None or step <= 0:
        return None
    counts = [0 if bound is None else max(0, -(-(bound + more - begin) // step)) for bound in (most, fewest)]
    return IterationLimit(counts[0], _value(end) is not None, counts[1])


@dataclass(frozen=True)
class _Side:
    """Whether upper or lower bounds of integers are looked for.

    tighter: which of two bounds says more, the least of upper ones, the largest of lower ones. known: some bounds.
    """

    tighter: Callable[..., int]
    known: Mapping[Tensor, int]


def _end(
    cond: FuncGraph, end: Tensor, inputs: Sequence[Any], following: Callable[[int], Tensor | None], side: _Side
) -> int | None:
    """Returns a bound of a tensor of the condition, if one is known."""
    found = _bound(end, side)
    if found is not None:
        return found
    position = _position(cond, end)
    if position is None or not isinstance(inputs[position], Tensor):
        return None
    after = following(position)
    if after is None or original(after) is not _input_of(after, position):
        return None
    return _bound(inputs[position], side)


def _bound(tensor: Tensor, side: _Side) -> int | None:
    tensor = original(tensor)
    if tensor in side.known:
        return side.known[tensor]
    op = {"Minimum": min, "Maximum": max}.get(tensor.op.type)
    if op is None or _value(tensor) is not None:
        return _value(tensor)
    bounds = [_bound(t, side) for t in tensor.op.inputs]
    found = [b for b in bounds if b is not None]
    if op is side.tighter:  # one operand bounds the result
        return op(found) if found else None
    return op(found) if len(found) == len(bounds) else None


def _input_of(after: Tensor, position: int) -> Tensor:
    body = after.graph
    assert isinstance(body, FuncGraph)
    return body.inputs[position]


def _step_from(after: Tensor, position: int) -> int | None:
    return counter_step(_input_of(after, position), after)


def counter_step(before: Tensor, after: Tensor) -> int | None:
    """By how much an iteration changes a loop variable; None where it does not add a constant."""
    op = original(after).op
    if op.type not in ("Add", "AddV2"):
        return None
    a, b = (original(t) for t in op.inputs)
    if a is before:
        return _value(b)
    return _value(a) if b is before else None


def original(tensor: Tensor) -> Tensor:
    """Returns what chains of Identity hand on."""
    while tensor.op.type == "Identity":
        tensor = tensor.op.inputs[0]
    return tensor


def _position(function: FuncGraph, tensor: Tensor) -> int | None:
    return next((i for i, t in enumerate(function.inputs) if t is tensor), None)


def _value(tensor: Tensor) -> int | None:
    value = original(tensor).host_value
    if value is None or not is_known(value) or np.shape(value) != ():
        return None
    return int(value)
