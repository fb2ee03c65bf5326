"""Shape-free rewrites: copies that nobody needs are left out, equal computations are done once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from timberframe_core.compiler.ir import Node, Output, Program

_MERGEABLE_CONSTANT_BYTES = 1024


@dataclass(frozen=True)
class Optimizations:
    """Which rewrites are made of a program and of the bodies of its loops and branches."""

    simplify: bool = True
    cse: bool = True
    fold: bool = True


NO_OPTIMIZATIONS = Optimizations(simplify=False, cse=False, fold=False)


def simplify(program: Program, optimizations: Optimizations) -> None:
    """Makes those shape-free rewrites that are on."""
    if optimizations.simplify:
        drop_copies(program)
    if optimizations.cse:
        merge_equal(program)


def drop_copies(program: Program) -> None:
    """Lets what reads a node that only passes its inputs through read these; one with control inputs stays."""
    replacements: dict[Output, Output] = {}
    kept: list[Node] = []
    for node in program.nodes:
        node.inputs = [replacements.get(x, x) for x in node.inputs]
        if node.op.passes_through and not node.control:
            replacements.update(zip(node.outputs, node.inputs, strict=True))
        else:
            kept.append(node)
    _replace(program, kept, replacements)


def merge_equal(program: Program) -> None:
    """Common subexpression elimination over stateless nodes with equal op, attrs, inputs and device."""
    first: dict[Any, Node] = {}
    replacements: dict[Output, Output] = {}
    kept: list[Node] = []
    for node in program.nodes:
        if replacements:
            node.inputs = [replacements.get(x, x) for x in node.inputs]
        key = None if node.op.stateful or node.feed or node.control or node.bodies else _key(node)
        known = node if key is None else first.setdefault(key, node)
        if known is node:
            kept.append(node)
        else:
            replacements.update(zip(node.outputs, known.outputs, strict=True))
    if replacements:
        _replace(program, kept, replacements)


def _key(node: Node) -> Any:
    attrs: tuple[Any, ...] = tuple(node.attrs.values())
    if node.op.name == "Const":
        value: np.ndarray = node.attrs["value"]
        if value.dtype == object or value.nbytes > _MERGEABLE_CONSTANT_BYTES:
            return None
        attrs = (value.shape, value.dtype.str, value.dtype.name, value.tobytes())
    inputs = sorted(node.inputs, key=id) if node.op.commutative else node.inputs
    key = node.op.name, node.requested, node.colocation, attrs, tuple(inputs)
    try:
        hash(key)
    except TypeError:  # an attr that holds an array
        return None
    return key


def _replace(program: Program, kept: list[Node], replacements: dict[Output, Output]) -> None:
    """Redirects fetches and control edges from the nodes that were dropped."""
    removed: dict[Node, list[Node]] = {}
    for x, y in replacements.items():
        removed.setdefault(x.node, []).append(y.node)
    for node in kept:
        if node.control:
            node.control = [n for c in node.control for n in removed.get(c, (c,))]
    program.nodes = kept
    program.fetches = [
        n
        for f in program.fetches
        for n in ((replacements.get(f, f),) if isinstance(f, Output) else removed.get(f, [f]))
    ]
