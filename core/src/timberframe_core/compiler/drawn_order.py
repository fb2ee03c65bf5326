"""Programs in an order that is drawn: what only works in the planned order shows."""

from __future__ import annotations

import random

from timberframe_core.compiler.ir import Node, Program


def draw_order(program: Program, seed: int) -> None:
    """Puts the nodes of a program into one of the orders that their inputs and edges allow, by a seed."""
    numbers = random.Random(seed)
    present = set(program.nodes)
    left: dict[Node, int] = {}
    followers: dict[Node, list[Node]] = {node: [] for node in program.nodes}
    for node in program.nodes:
        before = {x.node for x in node.inputs}.union(node.control, node.after) & present
        left[node] = len(before)
        for other in before:
            followers[other].append(node)
    ready = [node for node in program.nodes if not left[node]]
    drawn: list[Node] = []
    while ready:
        i = numbers.randrange(len(ready))
        ready[i], ready[-1] = ready[-1], ready[i]
        node = ready.pop()
        drawn.append(node)
        for follower in followers[node]:
            left[follower] -= 1
            if not left[follower]:
                ready.append(follower)
    assert len(drawn) == len(program.nodes), "edges of a program form no circle"
    program.nodes = drawn
