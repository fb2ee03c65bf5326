"""Constant folding: what depends on constants alone is computed once, by the kernels of the device it was placed on."""

from __future__ import annotations

import math

import numpy as np

from timberframe_core.compiler.bodies import branch_shapes
from timberframe_core.compiler.ir import Node, Output, Program
from timberframe_core.compiler.lower import Lowering, Variables
from timberframe_core.compiler.specialise import Facts, infer
from timberframe_core.errors import OpError
from timberframe_core.ops.definition import registry
from timberframe_core.plugin.contracts import Device, RunContext

_LARGEST_RESULT_BYTES = 10 << 20  # a constant stays in memory for as long as the plan does


def fold_constants(program: Program, variables: Variables) -> list[str]:
    """Replaces nodes by Const where their inputs are constants; returns their names.

    Stateful nodes, nodes with control inputs, results above 10 MiB, and what raises when computed stay as they are.
    """
    facts = Facts()
    known: set[Output] = set()
    by_device: dict[int, tuple[Device, list[Node]]] = {}
    for node in program.nodes:
        if node.op.role == "constant":
            infer([node], facts, variables.shape, branch_shapes)
            known.update(node.outputs)
        elif node.host_value or not _foldable(node, known):
            continue
        else:
            try:
                infer([node], facts, variables.shape, branch_shapes)
            except OpError:
                continue
            if all(_bytes(x, facts) <= _LARGEST_RESULT_BYTES for x in node.outputs):
                known.update(node.outputs)
                assert node.device is not None
                by_device.setdefault(id(node.device), (node.device, []))[1].append(node)
    folded: list[Node] = []
    for device, nodes in by_device.values():
        folded.extend(_compute(program, device, nodes, facts, variables))
    if folded:
        _replace(program, folded)
    return [n.name for n in folded]


def _foldable(node: Node, known: set[Output]) -> bool:
    return (
        bool(node.inputs)
        and not (node.feed or node.op.stateful or node.bodies or node.control or node.after)
        and node.op.bound is None
        and node.device is not None
        and all(x in known for x in node.inputs)
        and all(x.dtype.name not in ("resource", "variant") for x in node.outputs)
    )


def _bytes(x: Output, facts: Facts) -> int:
    return math.prod(facts.shapes[x]) * x.dtype.size


def _compute(program: Program, device: Device, nodes: list[Node], facts: Facts, variables: Variables) -> list[Node]:
    """Folds those of a device's nodes that can be computed, and returns them.

    All are run as one cluster. Where that fails, each half is tried by itself, and so on down to what fails alone: the
    run itself will raise that, with the node's location.
    """
    nodes = _computable(nodes, facts)
    if not nodes:
        return []
    try:
        values = _run(program, device, nodes, facts, variables)
    except OpError:
        half = len(nodes) // 2
        if half == 0:
            return []
        first = _compute(program, device, nodes[:half], facts, variables)
        return first + _compute(program, device, nodes[half:], facts, variables)
    facts.values.update(values)
    for node in nodes:
        node.host_value = True
        node.attrs = {**node.attrs, "_folded": tuple(facts.values.get(x) for x in node.outputs)}
    return nodes


def _computable(nodes: list[Node], facts: Facts) -> list[Node]:
    """The nodes whose inputs are known or made by others of them: not those that rest on what failed."""
    made: set[Output] = set()
    found = []
    for node in nodes:
        if all(x in facts.values or x in made for x in node.inputs):
            made.update(node.outputs)
            found.append(node)
    return found


def _run(
    program: Program, device: Device, nodes: list[Node], facts: Facts, variables: Variables
) -> dict[Output, np.ndarray]:
    """The values that nodes make, as one cluster, for others and for fetches."""
    chosen = set(nodes)
    inside = {x for n in nodes for x in n.outputs}
    wanted = {x for n in program.nodes if n not in chosen for x in n.inputs if x in inside}
    wanted.update(f for f in program.fetches if isinstance(f, Output) and f in inside)
    lowering = Lowering(device, facts, variables)
    for node in nodes:
        lowering.add(node)
    lowered = lowering.finish([x for n in nodes for x in n.outputs if x in wanted])
    executable = device.compile(lowered.cluster)
    results = executable.run([], RunContext())
    return {x: device.copy_out(a) for x, a in zip(lowered.outputs, results, strict=True)}


def _replace(program: Program, folded: list[Node]) -> None:
    """Puts a Const for each folded output that somebody reads."""
    constant = registry.get("Const")
    replacements: dict[Output, Output] = {}
    removed = set(folded)
    nodes: list[Node] = []
    for node in program.nodes:
        if node not in removed:
            nodes.append(node)
            continue
        for x, value in zip(node.outputs, node.attrs["_folded"], strict=True):
            if value is not None:
                made = Node(constant, node.name, {"value": value, "dtype": x.dtype}, [])
                made.outputs = [Output(made, 0, x.dtype, value.shape)]
                made.where = node.where
                replacements[x] = made.outputs[0]
                nodes.append(made)
    for node in nodes:
        node.inputs = [replacements.get(x, x) for x in node.inputs]
        node.control = [c for c in node.control if c not in removed]
    program.nodes = nodes
    program.fetches = [
        replacements.get(f, f) if isinstance(f, Output) else f for f in program.fetches if f not in removed
    ]
