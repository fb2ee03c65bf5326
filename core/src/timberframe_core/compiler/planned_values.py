"""Values that planning needs: which of them the host computes while it plans, and where a kernel computes them instead.

Shape arithmetic is short. Where a chain that leads to a size starts from more elements, or from nobody knows how many,
kernels compute it up to the last tensor that is short, and planning fetches that.
"""

from __future__ import annotations

import math

from timberframe_core.compiler.host_side import follows_from_shapes
from timberframe_core.compiler.ir import Node, Output, Program
from timberframe_core.graph.inference import HOST_VALUE_ELEMENTS, arg_ranges
from timberframe_core.shapes import is_static


def planned_inputs(node: Node) -> tuple[Output, ...]:
    """Returns the inputs whose value must be on the host before the node can be planned."""
    op = node.op
    if node.feed or not (op.shape_inputs or op.planned):
        return ()
    constants = [None if x.node.feed or x.node.op.role != "constant" else x.node.attrs["value"] for x in node.inputs]
    ranges = arg_ranges(op.inputs, node.attrs)
    return tuple(node.inputs[i] for name in op.planned_inputs(node.attrs, constants) for i in ranges[name])


def find_host_values(program: Program, any_size: bool = False) -> set[Output]:
    """Marks the nodes that are computed on the host while planning, and returns the values that planning needs.

    These nodes are shapes, chains of ops with a value function that lead from shapes, constants and feeds to an input
    that some op needs for planning, and small integers that follow from these. Where a chain starts from a computed
    tensor, or from one that may have more elements than shapes have, its value is fetched first.

    any_size: chains are not cut for the number of their elements, in bodies that the executor runs where this fails.
    """
    needed: set[Output] = set()
    short = _Short()
    for node in reversed(program.nodes):
        needed.update(planned_inputs(node))
        node.host_value = False
        if node.feed or node.op.value is None or node.op.stateful or node.op.role == "constant":
            continue
        if node.op.shape_only:
            node.host_value = True
        elif any(x in needed for x in node.outputs) and (any_size or short.all_of(node)):
            node.host_value = True
            needed.update(node.inputs)
    for node in program.nodes:
        node.host_value = node.host_value or (not node.feed and follows_from_shapes(node))
    return needed


class _Short:
    """Finds out which tensors are known to have few elements, whatever is fed."""

    def __init__(self) -> None:
        self._known: dict[Output, bool] = {}

    def all_of(self, node: Node) -> bool:
        """Returns whether the inputs and outputs of a node are short."""
        return all(map(self.is_short, node.inputs)) and all(map(self.is_short, node.outputs))

    def is_short(self, x: Output) -> bool:
        """Returns whether a tensor has few elements."""
        pending = [x]
        while pending:  # chains are longer than Python's stack is deep
            last = pending[-1]
            if last in self._known:
                pending.pop()
                continue
            found = self._given(last)
            if found is None:
                waiting = [y for y in last.node.inputs if y not in self._known]
                if waiting:
                    pending.extend(waiting)
                    continue
                found = all(self._known[y] for y in last.node.inputs)
            self._known[last] = found
        return self._known[x]

    def _given(self, x: Output) -> bool | None:
        """Says what the graph tells of a tensor by itself; None where the sizes of the node's inputs limit its own."""
        shape, node = x.static_shape, x.node
        if is_static(shape):
            return math.prod(d or 0 for d in shape or ()) <= HOST_VALUE_ELEMENTS
        if node.feed or node.op.value is None or node.op.role == "constant":
            return False
        if node.op.shape_only:
            return True  # as many as a tensor has dimensions
        return all(map(_counts_dimensions, node.inputs)) if node.op.sized_by_values else None


def _counts_dimensions(x: Output) -> bool:
    """Returns whether a value is a constant, or how many dimensions a tensor has."""
    return not x.node.feed and (x.node.op.role == "constant" or x.node.op.name == "Rank")
