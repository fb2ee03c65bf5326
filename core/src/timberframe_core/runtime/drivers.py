"""Nodes that the executor carries out itself: host ops, and loops and branches over several devices or shapes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from timberframe_core.compiler.ir import Node, Output, body_scope
from timberframe_core.compiler.plan import Located, host_array
from timberframe_core.compiler.state import variable_name
from timberframe_core.dtypes import resource, variant
from timberframe_core.errors import InvalidArgumentError, ResourceExhaustedError
from timberframe_core.ops.base.control_flow.functional import branch_number
from timberframe_core.runtime.host_steps import HostStep
from timberframe_core.runtime.located import copied
from timberframe_core.shapes import format_shape

if TYPE_CHECKING:
    from timberframe_core.runtime.executor import Run

MAX_DEPTH = 100  # of bodies within bodies; each level takes half a dozen frames of Python's stack


def prepare(node: Node) -> HostStep | BodyStep:
    """Returns what carries out a node, by its method `call`; kept with the node."""
    step = node.step = BodyStep(node) if node.bodies else HostStep(node)
    return step


class BodyStep:
    """A loop or branch whose bodies the executor runs, each by a plan of its own."""

    __slots__ = ("_inputs", "node")

    def __init__(self, node: Node) -> None:
        self.node = node
        self._inputs = [x for x in node.inputs if x.dtype is not resource]

    def call(self, run: Run) -> Sequence[Located]:
        """Runs the bodies as part of a run and returns the node's outputs."""
        node = self.node
        inputs = [run.located(x) for x in self._inputs]
        made = _run_loop(node, inputs, run) if node.op.role == "loop" else _run_branch(node, inputs, run)
        fed = {
            id(array)
            for x, (array, device) in zip(self._inputs, inputs, strict=True)
            if x.node.feed and device and x.dtype is not variant  # lists never change
        }
        if fed:  # bodies hand on what they are given as it is
            made = [copied(x, device) if id(x) in fed and device else (x, device) for x, device in made]
        return _with_handles(node, made)


class _Body:
    """A body of a loop or branch in a run: a function of arrays, in which handles have no part."""

    __slots__ = ("_feeds", "_node", "_plan", "_results", "_run")

    def __init__(self, node: Node, which: int, run: Run) -> None:
        given = node.inputs if node.op.role == "loop" else node.inputs[1:]
        handles = {i: variable_name(x) for i, x in enumerate(given) if x.dtype is resource}
        function = node.bodies[which]
        plan = run.runtime.function_plan(
            function, handles, body_scope(run.plan.scope, node, function), run.plan.variables
        )
        self._node, self._plan, self._run = node, plan, run
        self._feeds = _without_handles(plan.feeds)
        self._results = _without_handles(plan.results)

    def __call__(self, inputs: Sequence[Located]) -> Sequence[Located]:
        depth = self._run.runtime.depth
        if depth.value >= MAX_DEPTH:
            raise ResourceExhaustedError(
                f"{self._node.op.name} '{self._node.name}': bodies are nested {depth.value} deep; "
                f"at most {MAX_DEPTH} levels can run",
                self._node.name,
            )
        depth.value += 1
        try:
            if self._feeds is not None:
                given: list[Located] = [_HANDLE] * len(self._plan.feeds)
                for i, x in zip(self._feeds, inputs, strict=True):
                    given[i] = x
                inputs = given
            results = self._run.call(self._plan, inputs)
            return results if self._results is None else [results[i] for i in self._results]
        finally:
            depth.value -= 1


_HANDLE: Located = (np.empty((), object), None)
"""Stands for a handle: what it means is known from planning."""


def _without_handles(outputs: Sequence[Output]) -> list[int] | None:
    """Returns positions of those that are no handles; None for all."""
    found = [i for i, x in enumerate(outputs) if x.dtype is not resource]
    return None if len(found) == len(outputs) else found


def _run_loop(node: Node, inputs: Sequence[Located], run: Run) -> Sequence[Located]:
    cond, body = _Body(node, 0, run), _Body(node, 1, run)
    state, cancel = inputs, run.context.cancel
    while _truth(node, cond(state)[0]):
        cancel.check()
        state = body(state)
    return state


def _run_branch(node: Node, inputs: Sequence[Located], run: Run) -> Sequence[Located]:
    return _Body(node, _chosen(node, inputs[0]), run)(inputs[1:])


def _chosen(node: Node, located: Located) -> int:
    """Returns the number of the branch that an If or Case runs."""
    if node.op.role == "branch":
        return 0 if _truth(node, located) else 1
    index = host_array(located)
    if index.shape != ():
        raise InvalidArgumentError(
            f"{node.op.name} '{node.name}': branch_index has shape {format_shape(index.shape)}; it must be a scalar",
            node.name,
        )
    return branch_number(int(index), len(node.bodies))


def _with_handles(node: Node, made: Sequence[Located]) -> Sequence[Located]:
    """Returns what the bodies gave in the order of the node's outputs, where a resource has no array."""
    wanted = _without_handles(node.outputs)
    if wanted is None:
        return made
    arrays = dict(zip(wanted, made, strict=True))
    return [arrays.get(i, _HANDLE) for i in range(len(node.outputs))]


def _truth(node: Node, located: Located) -> bool:
    value = host_array(located)
    if value.shape != ():
        if node.op.role == "loop":
            raise InvalidArgumentError(
                f"{node.op.name} '{node.name}': condition of shape {format_shape(value.shape)}; it must be a scalar",
                node.name,
            )
        return bool(value.size)  # TensorFlow: a tensor that is not a scalar is true unless it is empty
    if value.dtype == object:
        return bool(value.item() != b"")
    return bool(value)
