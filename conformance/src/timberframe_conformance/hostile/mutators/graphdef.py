"""Wrong structure in GraphDefs: nodes, inputs, attrs, devices, versions."""

from __future__ import annotations

import functools
import random
from collections.abc import Callable, Sequence
from typing import Any

from timberframe_conformance.hostile.mutators import libraries
from timberframe_conformance.hostile.mutators.values import (
    DTYPES,
    SIZES,
    TEXTS,
    NothingToChangeError,
    change_attr,
    change_integer,
    pick,
)
from timberframe_core.graphdef.messages import NodeDef
from timberframe_core.ops.definition import registry
from timberframe_core.ops.definition.opdef import OpDef


@functools.cache
def _ops() -> tuple[OpDef, ...]:
    return tuple(sorted(registry.all_ops(), key=lambda op: op.name))


def _nodes(rng: random.Random, graph: Any) -> Any:
    """Returns the nodes of the graph, or of one of its functions."""
    lists = [f.node_def for f in graph.library.function if len(f.node_def)]
    return graph.node if not lists or rng.random() < 0.6 else rng.choice(lists)


def _node(rng: random.Random, graph: Any) -> Any:
    return pick(rng, _nodes(rng, graph))


def _with_inputs(rng: random.Random, graph: Any) -> tuple[Any, Any]:
    """Returns a node that has inputs, and its list of nodes."""
    nodes = _nodes(rng, graph)
    return pick(rng, [n for n in nodes if len(n.input)]), nodes


def _drop_node(rng: random.Random, graph: Any) -> None:
    nodes = _nodes(rng, graph)
    nodes.remove(pick(rng, nodes))


def _repeat_node(rng: random.Random, graph: Any) -> None:
    nodes = _nodes(rng, graph)
    copy = NodeDef()
    copy.CopyFrom(pick(rng, nodes))
    if rng.random() < 0.7:
        copy.name += "_again"
    nodes.append(copy)


def _reorder_nodes(rng: random.Random, graph: Any) -> None:
    nodes = _nodes(rng, graph)
    order = [NodeDef.FromString(n.SerializeToString()) for n in nodes]
    rng.shuffle(order)
    del nodes[:]
    nodes.extend(order)


def _rename_node(rng: random.Random, graph: Any) -> None:
    nodes = _nodes(rng, graph)
    pick(rng, nodes).name = rng.choice([*TEXTS, pick(rng, nodes).name, pick(rng, nodes).name + "/x"])


def _other_op(rng: random.Random, graph: Any) -> None:
    """Writes another op, with the same attrs if possible: such a node reaches more code than one with wrong attrs."""
    node = _node(rng, graph)
    attrs = {key for key in node.attr if not key.startswith("_")}
    alike = [op.name for op in _ops() if set(op.attrs) == attrs and op.name != node.op]
    node.op = pick(rng, alike) if alike and rng.random() < 0.8 else rng.choice(_ops()).name


def _drop_input(rng: random.Random, graph: Any) -> None:
    node, _ = _with_inputs(rng, graph)
    del node.input[rng.randrange(len(node.input))]


def _add_input(rng: random.Random, graph: Any) -> None:
    nodes = _nodes(rng, graph)
    node = pick(rng, nodes)
    node.input.insert(rng.randrange(len(node.input) + 1), rng.choice(["", "^"]) + pick(rng, nodes).name)


def _swap_inputs(rng: random.Random, graph: Any) -> None:
    node, _ = _with_inputs(rng, graph)
    inputs = list(node.input)
    rng.shuffle(inputs)
    node.input[:] = inputs


def _other_input(rng: random.Random, graph: Any) -> None:
    """Writes an input from anywhere: earlier, later (a cycle), from the node itself, of a
    wrong number, or from nowhere.
    """
    node, nodes = _with_inputs(rng, graph)
    source = rng.choice([pick(rng, nodes).name] * 4 + [node.name, "nowhere"])
    suffix = rng.choice(["", "", ":0", ":1", ":2", ":99", f":{2**64}", ":x", ":y:0", ":\u00b2"])
    node.input[rng.randrange(len(node.input))] = rng.choice(["", "", "^"]) + source + suffix


def _borrowed_input(rng: random.Random, graph: Any) -> None:
    """Writes the inputs of another node of the same graph."""
    node, nodes = _with_inputs(rng, graph)
    other = pick(rng, [n for n in nodes if len(n.input)])
    node.input[rng.randrange(len(node.input))] = pick(rng, other.input)


def _later_control_input(rng: random.Random, graph: Any) -> None:
    nodes = _nodes(rng, graph)
    i, j = rng.randrange(len(nodes)), rng.randrange(len(nodes))
    nodes[min(i, j)].input.append(f"^{nodes[max(i, j)].name}")


def _drop_attr(rng: random.Random, graph: Any) -> None:
    node = _node(rng, graph)
    del node.attr[pick(rng, sorted(node.attr))]


def _change_attr(rng: random.Random, graph: Any) -> None:
    node = _node(rng, graph)
    change_attr(rng, node.attr[pick(rng, sorted(node.attr))])


def _change_constant(rng: random.Random, graph: Any) -> None:
    node = pick(rng, [n for n in _nodes(rng, graph) if n.op == "Const"])
    change_attr(rng, node.attr["value"])


def _borrowed_attr(rng: random.Random, graph: Any) -> None:
    """Writes the attr of another node."""
    nodes = _nodes(rng, graph)
    key = pick(rng, sorted({key for n in nodes for key in n.attr}))
    holders = [n for n in nodes if key in n.attr]
    pick(rng, holders).attr[key].CopyFrom(pick(rng, holders).attr[key])


def _extra_attr(rng: random.Random, graph: Any) -> None:
    key = rng.choice(["_class", "_output_shapes", "_kernel", "_x", "unknown", "T", "dtype", "N", "shape"])
    change_attr(rng, _node(rng, graph).attr[key])


def _other_dtype(rng: random.Random, graph: Any) -> None:
    """Writes one dtype in place of another everywhere, so that the graph stays consistent and reaches more code."""
    lists = [graph.node, *(f.node_def for f in graph.library.function)]
    attrs = [a for nodes in lists for n in nodes for a in n.attr.values() if a.WhichOneof("value") == "type"]
    old = pick(rng, sorted({a.type for a in attrs}))
    new = rng.choice(DTYPES)
    for attr in attrs:
        if attr.type == old:
            attr.type = new
    for nodes in lists:
        for node in nodes:
            if node.op == "Const" and node.attr["value"].tensor.dtype == old:
                node.attr["value"].tensor.dtype = new
    for function in graph.library.function:
        for arg in (*function.signature.input_arg, *function.signature.output_arg):
            arg.type = new if arg.type == old else arg.type


def _other_size(rng: random.Random, graph: Any) -> None:
    """Writes an attr that counts something."""
    nodes = [n for n in _nodes(rng, graph) if any(a.WhichOneof("value") == "i" for a in n.attr.values())]
    node = pick(rng, nodes)
    key = pick(rng, sorted(k for k, a in node.attr.items() if a.WhichOneof("value") == "i"))
    node.attr[key].i = change_integer(rng, node.attr[key].i)


def _other_device(rng: random.Random, graph: Any) -> None:
    _node(rng, graph).device = rng.choice(
        ["/device:CPU:0", "/device:CPU:99", f"/device:CPU:{2**70}", "/cpu:0", "/job:x/task:1", "/device:NOWHERE:0", "x"]
        + ["/device:CPU:-1", "/device:*:0", "/" * 100, "/job:x" * 50]
    )


def _versions(rng: random.Random, graph: Any) -> None:
    versions = graph.versions
    kind = rng.randrange(3)
    if kind == 0:
        versions.producer = change_integer(rng, versions.producer, 32)
    elif kind == 1:
        versions.min_consumer = change_integer(rng, versions.min_consumer, 32)
    else:
        versions.bad_consumers.append(rng.choice([versions.producer, change_integer(rng, 0, 32)]))


def _unknown_sizes(rng: random.Random, graph: Any) -> None:
    """Writes a placeholder that promises another shape than its readers expect."""
    node = pick(rng, [n for n in _nodes(rng, graph) if "shape" in n.attr])
    shape = node.attr["shape"].shape
    shape.Clear()
    for _ in range(rng.randrange(4)):
        shape.dim.add(size=rng.choice([-1, -1, 0, 1, 2, rng.choice(SIZES)]))


def _insert_node(rng: random.Random, graph: Any) -> None:
    """Writes a node of an op of one input between two others."""
    node, nodes = _with_inputs(rng, graph)
    at = rng.randrange(len(node.input))
    text = node.input[at]
    if text.startswith("^"):
        raise NothingToChangeError
    types = [a.type for a in node.attr.values() if a.WhichOneof("value") == "type"] or [1]
    new = nodes.add(name=f"inserted_{rng.randrange(10**6)}", input=[text])
    ops = [op for op in _ops() if len(op.inputs) == 1 and not op.inputs[0].is_list and len(op.outputs) == 1]
    new.op = rng.choice(ops).name
    for attr in registry.get(new.op).attrs.values():
        if attr.kind == "type":
            new.attr[attr.name].type = rng.choice(types)
        elif attr.required:
            change_attr(rng, new.attr[attr.name])
    node.input[at] = new.name if nodes is graph.node else f"{new.name}:{registry.get(new.op).outputs[0].name}:0"


MUTATORS: Sequence[Callable[[random.Random, Any], None]] = (
    _drop_node, _repeat_node, _reorder_nodes, _rename_node, _other_op, _other_op, _drop_input, _add_input, _swap_inputs,
    _other_input, _other_input, _borrowed_input, _borrowed_input, _later_control_input, _drop_attr, _change_attr,
    _change_attr, _change_attr, _change_constant, _change_constant, _borrowed_attr, _extra_attr, _other_dtype,
    _other_size, _other_device, _versions, _unknown_sizes, _insert_node, *libraries.MUTATORS,
)  # fmt: skip
"""Mutators that reach much code are listed more than once."""
