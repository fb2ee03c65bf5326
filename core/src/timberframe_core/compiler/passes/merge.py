"""Pass `cse`: common subexpression elimination."""

from __future__ import annotations

from typing import Any

import numpy as np

from timberframe_core.compiler.ir import Node, Output
from timberframe_core.compiler.passes.rewriter import ProgramRewriter
from timberframe_core.plugin.passes import Pass

_MERGEABLE_CONSTANT_BYTES = 1024  # comparing larger ones takes longer than they are likely to save


def run(rewriter: ProgramRewriter) -> None:
    """Merges stateless nodes of equal op, attrs, inputs and device into the first of them."""
    first: dict[Any, Node] = {}
    for node in rewriter.nodes:
        if node.op.stateful or node.feed or node.control or node.bodies:
            continue
        key = _key(node, rewriter.inputs(node))
        known = node if key is None else first.setdefault(key, node)
        if known is not node:
            for x, y in zip(node.outputs, known.outputs, strict=True):
                rewriter.replace(x, y)
            rewriter.erase(node)


def _key(node: Node, inputs: list[Output]) -> Any:
    attrs: tuple[Any, ...] = tuple(node.attrs.values())
    if node.op.role == "constant":
        value: np.ndarray = node.attrs["value"]
        if value.dtype == object or value.nbytes > _MERGEABLE_CONSTANT_BYTES:
            return None
        attrs = (value.shape, value.dtype.str, value.dtype.name, value.tobytes())
    if node.op.commutative:
        inputs = sorted(inputs, key=id)
    key = node.op.name, node.requested, node.colocation, attrs, tuple(inputs)
    try:
        hash(key)
    except TypeError:  # an attr that holds an array
        return None
    return key


MERGE = Pass("cse", "program", run, "computes equal nodes once", after=("simplify",))
