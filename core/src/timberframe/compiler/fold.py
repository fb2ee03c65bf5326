"""Constant folding: what depends on constants alone is computed once, by the kernels of the device it was placed on."""

from __future__ import annotations

import math

from timberframe.compiler.ir import Node, Output, Program
from timberframe.compiler.lower import Lowering, Variables
from timberframe.compiler.specialise import Facts, infer
from timberframe.errors import OpError
from timberframe.ops import registry
from timberframe.plugin.contracts import Device, RunContext

_LARGEST_RESULT_BYTES = 10 << 20  # a constant stays in memory for as long as the plan does


def fold_constants(program: Program, variables: Variables) -> list[str]:
    """Replaces nodes by Const where their inputs are constants; returns their names.

    Stateful nodes, nodes with control inputs, results above 10 MiB, and what raises when computed stay as they are.
    """
    facts = Facts()
    known: set[Output] = set()
    by_device: dict[int, tuple[Device, list[Node]]] = {}
    for node in program.nodes:
        if node.op.name == "Const":
            infer([node], facts, variables.shape)
            known.update(node.outputs)
        elif node.host_value or not _foldable(node, known):
            continue
        else:
            try:
                infer([node], facts, variables.shape)
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
    """Runs the nodes as one cluster and writes their results into the attrs of what become Const nodes."""
    inside = {x for n in nodes for x in n.outputs}
    if any(x not in inside and x not in facts.values for n in nodes for x in n.inputs):
        return []  # an input is folded on another device; that is rare enough to leave
    chosen = set(nodes)
    wanted = {x for n in program.nodes if n not in chosen for x in n.inputs if x in inside}
    wanted.update(f for f in program.fetches if isinstance(f, Output) and f in inside)
    lowering = Lowering(device, facts, variables)
    try:
        for node in nodes:
            lowering.add(node)
        lowered = lowering.finish([x for n in nodes for x in n.outputs if x in wanted])
        executable = device.compile(lowered.cluster)
        results = [device.copy_out(a) for a in executable.run([], RunContext())]
    except OpError:
        return []  # the run itself will raise it, with the place of the node
    for x, array in zip(lowered.outputs, results, strict=True):
        facts.values[x] = array
    for node in nodes:
        node.host_value = True
        node.attrs = {**node.attrs, "_folded": tuple(facts.values.get(x) for x in node.outputs)}
    return nodes


def _replace(program: Program, folded: list[Node]) -> None:
    """Puts a Const in the place of each folded output that somebody reads."""
    constant = registry.get("Const")
    stands_for: dict[Output, Output] = {}
    gone = set(folded)
    nodes: list[Node] = []
    for node in program.nodes:
        if node not in gone:
            nodes.append(node)
            continue
        for x, value in zip(node.outputs, node.attrs["_folded"], strict=True):
            if value is not None:
                made = Node(constant, node.name, {"value": value, "dtype": x.dtype}, [])
                made.outputs = [Output(made, 0, x.dtype, value.shape)]
                made.where = node.where
                stands_for[x] = made.outputs[0]
                nodes.append(made)
    for node in nodes:
        node.inputs = [stands_for.get(x, x) for x in node.inputs]
        node.control = [c for c in node.control if c not in gone]
    program.nodes = nodes
    program.fetches = [stands_for.get(f, f) if isinstance(f, Output) else f for f in program.fetches if f not in gone]
