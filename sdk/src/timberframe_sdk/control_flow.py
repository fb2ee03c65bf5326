"""While and If inside a cluster, driven from the host, for devices that cannot loop by themselves."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from timberframe.plugin.contracts import Array, KernelNode, Launcher, RunContext


def while_loop(device: Any, node: KernelNode) -> Launcher:
    """Runs cond and body in turn. Inputs beyond the number of outputs are the same in every turn."""
    cond, body = (device.compile(c) for c in node.inner)
    count = len(node.outputs)

    def launch(*arrays: Array) -> None:
        inputs, outputs = list(arrays[: len(node.inputs)]), arrays[len(node.inputs) :]
        invariant = inputs[count:]
        state = inputs[:count]
        while bool(device.copy_out(cond.run([*state, *invariant], RunContext())[0])):
            state = body.run([*state, *invariant], RunContext())
        for source, target in zip(state, outputs, strict=True):
            device.copy(source, target)

    return launch


def if_else(device: Any, node: KernelNode) -> Launcher:
    """Runs the branch that the predicate (input 0) chooses."""
    then, otherwise = (device.compile(c) for c in node.inner)

    def launch(predicate: Array, *arrays: Array) -> None:
        count = len(node.inputs) - 1
        branch = then if bool(device.copy_out(predicate)) else otherwise
        for source, target in zip(branch.run(list(arrays[:count]), RunContext()), arrays[count:], strict=True):
            device.copy(source, target)

    return launch


CONTROL_FLOW: Mapping[str, Callable[[Any, KernelNode], Launcher]] = {
    "While": while_loop,
    "StatelessWhile": while_loop,
    "If": if_else,
    "StatelessIf": if_else,
}
