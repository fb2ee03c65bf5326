"""Random programs: sharing memory, in whatever order the planner finds, must not change a value."""

from __future__ import annotations

import random

import numpy as np
import pytest

from timberframe_core.compiler.passes.fuse import FUSE
from timberframe_core.compiler.passes.pipeline import Pipeline
from timberframe_core.plugin.contracts import RunContext

F = np.float32
OPS = ("AddV2", "Sub", "Mul", "Maximum", "Minimum")


def grow(graph, rng, values, count):
    """Adds random nodes over `values`, all of one shape."""
    for _ in range(count):
        if rng.random() < 0.15:
            values.append(graph.op("Test>Negate" if rng.random() < 0.3 else "Identity", rng.choice(values)))
        else:
            values.append(graph.op(rng.choice(OPS), rng.choice(values[-6:]), rng.choice(values)))


def loop(graph, rng, counting, values, depth):
    """A loop over some of the values whose body swaps, repeats, keeps and computes its variables."""
    count = rng.randint(1, 4)
    inputs = [rng.choice(values) for _ in range(count)]
    shape = inputs[0].shape
    body = graph.body()
    i = body.input(F)
    variables = [body.input(F, *shape) for _ in range(count)]
    inner = list(variables)
    grow(body, rng, inner, rng.randint(0, 5))
    if depth and rng.random() < 0.7:
        control(body, rng, counting, inner, depth - 1)
    # Halving keeps values finite whatever the body computes.
    results = [rng.choice([v, body.op("Mul", v, body.const(0.5)), body.const(np.ones(shape))]) for v in inner[-count:]]
    while len(results) < count:
        results.append(rng.choice(variables))
    done = body.cluster(body.op("AddV2", i, body.const(1.0)), *results)
    cond = counting(graph, rng.randint(0, 3), [(F, shape)] * count)
    values.extend(graph.loop(graph.const(0.0), *inputs, cond=cond, body=done)[1:])


def branch(graph, rng, counting, values, depth):
    inputs = [rng.choice(values) for _ in range(2)]
    arms = []
    for _ in range(2):
        arm = graph.body()
        inner = [arm.input(F, *v.shape) for v in inputs]
        grow(arm, rng, inner, rng.randint(0, 4))
        if depth and rng.random() < 0.5:
            control(arm, rng, counting, inner, depth - 1)
        arms.append(arm.cluster(*(rng.choice(inner) for _ in range(3))))
    predicate = graph.const(rng.choice([0.0, 1.0]))
    values.extend(graph.branch(predicate, *inputs, then=arms[0], otherwise=arms[1]))


def control(graph, rng, counting, values, depth):
    rng.choice([loop, branch])(graph, rng, counting, values, depth)


@pytest.mark.parametrize("seed", range(40))
def test_shared_memory_changes_no_value(graph, counting, seed):
    rng = random.Random(seed)
    shape = rng.choice([(), (3,), (2, 5), (0,)])
    values = [graph.input(F, *shape) for _ in range(3)]
    for _ in range(3):
        grow(graph, rng, values, rng.randint(1, 8))
        if rng.random() < 0.8:
            control(graph, rng, counting, values, 2)
    made = np.random.default_rng(seed)
    feeds = [made.uniform(-1, 1, shape).astype(F) for _ in range(3)]
    outputs = [rng.choice(values) for _ in range(4)]
    _, executable = Pipeline([FUSE]).compile(graph.cluster(*outputs), [])
    apart = executable.run(feeds, RunContext(mode="guarded"))
    for mode, fence in (("fast", ""), ("nodes", ""), ("fast", ""), ("guarded", "start"), ("guarded", "end")):
        for x, y in zip(apart, executable.run(feeds, RunContext(mode=mode, fence=fence)), strict=True):
            np.testing.assert_array_equal(x, y)
