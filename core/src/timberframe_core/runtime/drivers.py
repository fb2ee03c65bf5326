"""Nodes that the executor carries out itself: host ops, and loops and branches over several devices or shapes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from timberframe_core.compiler.ir import Node, body_scope
from timberframe_core.compiler.plan import Located, Plan, host_array
from timberframe_core.compiler.state import variable_name
from timberframe_core.dtypes import resource
from timberframe_core.errors import InvalidArgumentError, ResourceExhaustedError
from timberframe_core.ops.control_flow.functional import branch_number
from timberframe_core.runtime.host_steps import HostStep
from timberframe_core.shapes import format_shape

if TYPE_CHECKING:
    from timberframe_core.runtime.executor import Run

MAX_DEPTH = 100  # of bodies within bodies; each level takes half a dozen frames of Python's stack


def prepare(node: Node) -> HostStep | BodyStep:
    """What carries out a node, by its method `call`; kept with the node."""
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
        inputs = [run.located(x) for x in self._inputs]
        return _run_loop(self.node, inputs, run) if self.node.op.role == "loop" else _run_branch(self.node, inputs, run)


def _run_loop(node: Node, inputs: list[Located], run: Run) -> list[Located]:
    cond, body = (_body(node, i, run) for i in range(2))
    state = inputs
    while _truth(node, _call(node, cond, state, run)[0]):
        run.context.cancel.check()
        state = _call(node, body, state, run)
    return _with_handles(node, state)


def _run_branch(node: Node, inputs: list[Located], run: Run) -> list[Located]:
    return _with_handles(node, _call(node, _body(node, _chosen(node, inputs[0]), run), inputs[1:], run))


def _chosen(node: Node, located: Located) -> int:
    """The number of the branch that an If or Case runs."""
    if node.op.role == "branch":
        return 0 if _truth(node, located) else 1
    index = host_array(located)
    if index.shape != ():
        raise InvalidArgumentError(
            f"{node.op.name} '{node.name}': branch_index has shape {format_shape(index.shape)}; it must be a scalar",
            node.name,
        )
    return branch_number(int(index), len(node.bodies))


def _with_handles(node: Node, state: list[Located]) -> list[Located]:
    """What the bodies gave in the order of the node's outputs, where a resource has no array."""
    arrays = iter(state)
    nothing: Located = (np.empty((), object), None)
    return [nothing if x.dtype.name == "resource" else next(arrays) for x in node.outputs]


def _body(node: Node, which: int, run: Run) -> Plan:
    given = node.inputs if node.op.role == "loop" else node.inputs[1:]
    handles = {i: variable_name(x) for i, x in enumerate(given) if x.dtype.name == "resource"}
    function = node.bodies[which]
    return run.runtime.function_plan(function, handles, body_scope(run.plan.scope, node, function))


def _call(node: Node, plan: Plan, inputs: list[Located], run: Run) -> list[Located]:
    runtime = run.runtime
    depth = runtime.depth.value
    if depth >= MAX_DEPTH:
        raise ResourceExhaustedError(
            f"{node.op.name} '{node.name}': bodies are nested {depth} deep; at most {MAX_DEPTH} levels can run",
            node.name,
        )
    runtime.depth.value = depth + 1
    try:
        given = iter(inputs)
        nothing: Located = (np.empty((), object), None)
        feeds = [nothing if f.dtype.name == "resource" else next(given) for f in plan.feeds]
        results = run.call(plan, feeds)
        return [r for r, x in zip(results, plan.results, strict=True) if x.dtype.name != "resource"]
    finally:
        runtime.depth.value = depth


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
