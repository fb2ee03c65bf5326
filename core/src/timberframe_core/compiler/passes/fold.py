"""Pass `fold`: what depends on constants alone is computed once, by the kernels of the device that it was placed on."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from timberframe_core.compiler.ir import Node, Output
from timberframe_core.compiler.lower import Lowering
from timberframe_core.compiler.passes.rewriter import ProgramRewriter
from timberframe_core.compiler.specialise import Facts, infer
from timberframe_core.compiler.support import support
from timberframe_core.errors import OpError
from timberframe_core.plugin.contracts import Device, RunContext
from timberframe_core.plugin.passes import Pass

_LARGEST_RESULT_BYTES = 10 << 20  # a constant stays in memory for as long as the plan does


def run(rewriter: ProgramRewriter) -> None:
    """Puts a Const in place of each node whose inputs are constants.

    Stateful nodes, nodes with control inputs, results above 10 MiB, and what raises when computed stay as they are.
    """
    folding = _Folding(rewriter)
    for node in folding.compute():
        for x in node.outputs:
            if x in folding.facts.values and (rewriter.readers(x) or rewriter.is_result(x)):
                made = rewriter.constant(folding.facts.values[x], x)
                rewriter.insert(made, node)
                rewriter.replace(x, made.outputs[0])
        rewriter.erase(node)


class _Folding:
    """The nodes that can be computed, device by device, and the values that they have."""

    def __init__(self, rewriter: ProgramRewriter) -> None:
        self.rewriter = rewriter
        self.facts = Facts()
        self.known: set[Output] = set()
        self.by_device: dict[int, tuple[Device, list[Node]]] = {}
        known = self.known
        for node in rewriter.nodes:
            if node.op.role == "constant" or known.issuperset(node.inputs):  # most nodes rest on what is fed
                self._consider(node)

    def _consider(self, node: Node) -> None:
        if node.op.role == "constant":
            _infer(node, self.facts)
            self.known.update(node.outputs)
        elif not node.host_value and _foldable(node):
            try:
                _infer(node, self.facts)
            except OpError:
                return
            if all(_bytes(x, self.facts) <= _LARGEST_RESULT_BYTES for x in node.outputs):
                self.known.update(node.outputs)
                device = self._device(node)
                self.by_device.setdefault(id(device), (device, []))[1].append(node)

    def _device(self, node: Node) -> Device:
        """Returns the node's own device, or one of the host's memory where compiling takes long on its own."""
        assert node.device is not None
        if not node.device.attributes.slow_compile:
            return node.device
        able = (d for d in self.rewriter.devices if d.host_memory and not d.attributes.slow_compile)
        takes = (d for d in able if support(node, d) is None)
        return next(takes, node.device)

    def compute(self) -> list[Node]:
        """Returns the nodes that could be computed; the facts then hold what others read of them."""
        folded: list[Node] = []
        for device, nodes in self.by_device.values():
            folded.extend(self._compute(device, nodes))
        return folded

    def _compute(self, device: Device, nodes: list[Node]) -> list[Node]:
        """Returns those of a device's nodes that can be computed.

        All are run as one cluster. Where that fails, each half is tried by itself, and so on down to what fails alone:
        the run itself will raise that, with the node's location.
        """
        nodes = self._computable(nodes)
        if not nodes:
            return []
        try:
            self.facts.values.update(self._run(device, nodes))
        except OpError:
            half = len(nodes) // 2
            if half == 0:
                return []
            return self._compute(device, nodes[:half]) + self._compute(device, nodes[half:])
        return nodes

    def _computable(self, nodes: list[Node]) -> list[Node]:
        """Returns the nodes whose inputs are known or made by others of them: not those that rest on what failed."""
        made: set[Output] = set()
        found = []
        for node in nodes:
            if all(x in self.facts.values or x in made for x in node.inputs):
                made.update(node.outputs)
                found.append(node)
        return found

    def _run(self, device: Device, nodes: Sequence[Node]) -> dict[Output, np.ndarray]:
        """Returns the values that nodes make, as one cluster, for others and for fetches."""
        inside = set(nodes)
        lowering = Lowering(device, self.facts, _NONE, _NONE)
        for node in nodes:
            lowering.add(node)
        lowered = lowering.finish([x for n in nodes for x in n.outputs if self._is_read_outside(x, inside)])
        executable = device.compile(lowered.cluster)
        results = executable.run([], RunContext())
        return {x: device.copy_out(a) for x, a in zip(lowered.outputs, results, strict=True)}

    def _is_read_outside(self, x: Output, inside: set[Node]) -> bool:
        return self.rewriter.is_result(x) or any(n not in inside for n in self.rewriter.readers(x))


_NONE: Any = None  # nothing that depends on constants alone asks for variables, or has bodies


def _infer(node: Node, facts: Facts) -> None:
    """Adds shapes, and the values of constants; no node with bodies is asked about."""
    infer([node], facts, lambda name: None, lambda *_: [])


def _foldable(node: Node) -> bool:
    """Returns whether a node whose inputs are constants may be computed once."""
    return (
        bool(node.inputs)
        and not (node.feed or node.op.stateful or node.bodies or node.control or node.after)
        and node.op.bound is None
        and node.device is not None
        and all(x.dtype.name not in ("resource", "variant") for x in node.outputs)
    )


def _bytes(x: Output, facts: Facts) -> int:
    return math.prod(facts.shapes[x]) * x.dtype.size


FOLD = Pass("fold", "placed", run, "computes once what depends on constants alone")
