"""Derives from networks what a level asks for: each op with attrs, dtypes and the kinds of inputs that it gets."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from timberframe_conformance.bench.models import catalogue
from timberframe_conformance.levels.requirement import kind_of, plain
from timberframe_conformance.target import needs_kernel
from timberframe_core.dtypes import DType
from timberframe_core.ops.definition.opdef import OpDef

BATCH = 2
"""Of the networks for inference: not 1, so that a dimension of 1 is one along which an op broadcasts."""
MOST_VALUES = 64
"""Elements of a constant that the data hold; larger ones are data rather than axes or sizes."""

Entry = dict[str, Any]


def networks(level: str) -> Mapping[str, Callable[[], catalogue.Model]]:
    """Returns the networks of a level by name: small versions, which have the structure of the published ones."""
    if level == "training":
        return {name: partial(catalogue.build_training, name, small=True) for name in catalogue.training_names()}
    names = ("MLP", "LeNet") if level == "core" else catalogue.names()
    return {name: partial(catalogue.build, name, BATCH, small=True) for name in names}


def derive(level: str) -> list[Entry]:
    """Returns what the networks of a level ask a device for, by op; each with the networks that need it."""
    found: dict[str, Entry] = {}
    for name, build in networks(level).items():
        for node in needed_nodes(build()):
            entry: Entry = {"op": node.type, "types": _types(node), "attrs": _attrs(node), "networks": [], "inputs": []}
            entry = found.setdefault(json.dumps([entry["op"], entry["types"], entry["attrs"]]), entry)
            if name not in entry["networks"]:
                entry["networks"].append(name)
            inputs = list(_inputs(node))
            if kind_of(inputs) not in map(kind_of, entry["inputs"]):
                entry["inputs"].append(inputs)
    return [found[key] for key in sorted(found)]


def written(entries: Sequence[Entry]) -> str:
    """Returns the data file, one entry to a line."""
    return "[\n" + ",\n".join(json.dumps(e) for e in entries) + "\n]\n"


def needed_nodes(model: catalogue.Model) -> Iterator[Any]:
    """Yields the nodes of a network, and of its functions, for which a device needs a kernel and which compute numbers.

    Nodes on integers alone (positions, counters, sizes) stay on the host, and tensor lists are the executor's.
    """
    fetched = [t.op for t in model.fetches]
    fetched += [getattr(x, "op", x) for x in (model.step, model.initialize) if x is not None]
    graphs = [_ancestors(fetched), *(f.get_operations() for f in model.graph.functions.values())]
    for node in (node for graph in graphs for node in graph):
        op = node.op_def
        if needs_kernel(op) and not (op.on_host or op.passes_through) and _computes(node):
            yield node


def _ancestors(roots: Iterable[Any]) -> list[Any]:
    seen: set[Any] = set()
    stack = list(roots)
    while stack:
        node = stack.pop()
        if node not in seen:
            seen.add(node)
            stack += [t.op for t in node.inputs] + list(node.control_inputs)
    return sorted(seen, key=lambda node: node.id)


def _computes(node: Any) -> bool:
    """Returns whether the node has floating numbers among its inputs, outputs and variables, and no lists."""
    given = [t.dtype.base_dtype for t in (*node.inputs, *node.outputs)]
    given += [v for v in node.attrs.values() if isinstance(v, DType)]
    return any(t.is_floating for t in given) and all(t.name != "variant" for t in given)


def _types(node: Any) -> dict[str, str]:
    return {name: v.name for name, v in node.attrs.items() if isinstance(v, DType)}


def asked_attrs(op: OpDef) -> list[str]:
    """Returns the attrs whose values a kernel may depend on: not numbers that it computes with,
    nor how many inputs it has.
    """
    counts = {arg.number_attr for arg in op.inputs}
    return [
        a.name for a in op.attrs.values() if a.name not in counts and not re.search("type|func|float|shape", a.kind)
    ]


def _attrs(node: Any) -> dict[str, Any]:
    return {name: plain(node.attrs[name]) for name in asked_attrs(node.op_def) if name in node.attrs}


def _inputs(node: Any) -> Iterator[Any]:
    """Yields what each declared input gets; of a list, what each of its tensors is."""
    left = iter(node.inputs)
    for arg in node.op_def.inputs:
        if arg.number_attr:
            yield [_describe(next(left)) for _ in range(int(node.attrs[arg.number_attr]))]
        else:
            yield _describe(next(left))


def _describe(tensor: Any) -> dict[str, Any]:
    """Returns the values of axes, sizes and positions that the graph holds, else the shape."""
    if tensor.dtype.name == "resource":
        return {"shape": list(tensor.handle[1])}
    value = tensor.op.attrs["value"] if tensor.op.type == "Const" and tensor.dtype.is_integer else None
    if value is not None and np.size(value) <= MOST_VALUES:
        return {"values": np.asarray(value).tolist()}
    return {"shape": list(tensor.static_shape)}
