"""While, If and Case inside a cluster, driven from the host, for devices that cannot loop by themselves."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextvars import ContextVar
from typing import Any

import numpy as np

from timberframe_core.ops.base.control_flow.functional import branch_number
from timberframe_core.plugin.contracts import Array, KernelNode, Launcher, RunContext
from timberframe_core.plugin.nodes import role

_current: ContextVar[RunContext | None] = ContextVar("timberframe_run", default=None)


class Running:
    """Has the bodies of loops and branches that are launched in the block stop when the run `context` is cancelled."""

    __slots__ = ("_context", "_token")  # each run makes one: a generator would take three times as long

    def __init__(self, context: RunContext) -> None:
        self._context = context

    def __enter__(self) -> None:
        self._token = _current.set(self._context)

    def __exit__(self, *_: object) -> None:
        _current.reset(self._token)


def current_context() -> RunContext:
    """Returns the context of the run that a launcher is called for."""
    return _current.get() or RunContext()


def _body_context() -> RunContext:
    return RunContext(current_context().cancel)


def truth(x: np.ndarray) -> bool:
    """TensorFlow's rule: a 0-d value is true unless it is zero or an empty string, any other unless it is empty."""
    return bool(x.item()) if x.ndim == 0 else x.size != 0


def while_loop(device: Any, node: KernelNode) -> Launcher:
    """Runs cond and body alternately. Inputs beyond the number of outputs are the same in every iteration."""
    cond, body = (device.compile(c) for c in node.inner)
    count = len(node.outputs)

    def launch(*arrays: Array) -> None:
        context = _body_context()
        inputs, outputs = list(arrays[: len(node.inputs)]), arrays[len(node.inputs) :]
        invariant = inputs[count:]
        state = inputs[:count]
        while truth(device.copy_out(cond.run([*state, *invariant], context)[0])):
            context.cancel.check()
            state = body.run([*state, *invariant], context)
        for source, target in zip(state, outputs, strict=True):
            device.copy(source, target)

    return launch


def if_else(device: Any, node: KernelNode) -> Launcher:
    """Runs the branch that the predicate (input 0) chooses."""
    return _branch(device, node, lambda predicate: 0 if truth(predicate) else 1)


def case(device: Any, node: KernelNode) -> Launcher:
    """Runs the branch whose number is input 0, the last one where no branch has it."""
    return _branch(device, node, lambda index: branch_number(int(index), len(node.inner)))


def _branch(device: Any, node: KernelNode, choose: Callable[[np.ndarray], int]) -> Launcher:
    branches = [device.compile(c) for c in node.inner]
    count = len(node.inputs) - 1

    def launch(selector: Array, *arrays: Array) -> None:
        branch = branches[choose(device.copy_out(selector))]
        for source, target in zip(branch.run(list(arrays[:count]), _body_context()), arrays[count:], strict=True):
            device.copy(source, target)

    return launch


_BY_ROLE: Mapping[str | None, Callable[[Any, KernelNode], Launcher]] = {
    "loop": while_loop,
    "branch": if_else,
    "case": case,
}


def is_control_flow(node: KernelNode) -> bool:
    """Returns whether the node is a loop or branch, whose bodies are its inner clusters."""
    return role(node.op) in _BY_ROLE


def control_flow(device: Any, node: KernelNode) -> Launcher:
    """Returns the launcher of a loop or branch."""
    return _BY_ROLE[role(node.op)](device, node)
