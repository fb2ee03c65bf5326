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
    stands_for: dict[Output, Output] = {}
    kept: list[Node] = []
    for node in program.nodes:
        node.inputs = [stands_for.get(x, x) for x in node.inputs]
        if node.op.passes_through and not node.control:
            stands_for.update(zip(node.outputs, node.inputs, strict=True))
        else:
            kept.append(node)
    _replace(program, kept, stands_for)


def merge_equal(program: Program) -> None:
    """Common subexpression elimination over stateless nodes with equal op, attrs, inputs and device."""
    first: dict[Any, Node] = {}
    stands_for: dict[Output, Output] = {}
    kept: list[Node] = []
    for node in program.nodes:
        if stands_for:
            node.inputs = [stands_for.get(x, x) for x in node.inputs]
        key = None if node.op.stateful or node.feed or node.control or node.bodies else _key(node)
        known = node if key is None else first.setdefault(key, node)
        if known is node:
            kept.append(node)
        else:
            stands_for.update(zip(node.outputs, known.outputs, strict=True))
    if stands_for:
        _replace(program, kept, stands_for)


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


def _replace(program: Program, kept: list[Node], stands_for: dict[Output, Output]) -> None:
    """Redirects fetches and control edges from the nodes that were dropped."""
    gone: dict[Node, list[Node]] = {}
    for x, y in stands_for.items():
        gone.setdefault(x.node, []).append(y.node)
    for node in kept:
        if node.control:
            node.control = [n for c in node.control for n in gone.get(c, (c,))]
    program.nodes = kept
    program.fetches = [
        n for f in program.fetches for n in ((stands_for.get(f, f),) if isinstance(f, Output) else gone.get(f, [f]))
    ]
