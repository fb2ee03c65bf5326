"""Random small graphs whose results are exactly known: whole numbers, and ops that keep them whole."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from timberframe_conformance.case import Case, Measured, generator
from timberframe_conformance.cases.shapes import broadcast_together
from timberframe_conformance.twin import Twin, Value
from timberframe_core.ops.definition import registry
from timberframe_core.ops.definition.opdef import OpDef

if TYPE_CHECKING:
    from timberframe_conformance.target import Target

SUITE = "graphs"
COUNT = 24
TREES = 8
DTYPES = ("float32", "int32", "float64", "int64")
LARGEST = 1e5  # results stay below 2^24, where float32 holds every whole number

BINARY = ("AddV2", "Sub", "Mul", "Maximum", "Minimum", "SquaredDifference")
UNARY = ("Neg", "Abs", "Square", "Sign", "Relu", "Identity", "ZerosLike", "OnesLike")
SHAPED = ("transpose", "reshape", "sum", "max", "concat", "slice", "pad", "tile", "select")
REDUCTIONS = ("Sum", "Mean", "Max", "Min", "Prod")
TREE_SHAPES = ((3, 4), (37, 512), (131, 520), (5, 7, 256))  # from one block to several of any device
LARGEST_ELEMENT = 100.0  # a sum of as many as a tree has stays below 2^24
NEEDS = {
    "transpose": ("Transpose",), "reshape": ("Reshape",), "sum": ("Sum",), "max": ("Max",), "concat": ("ConcatV2",),
    "slice": ("Slice",), "pad": ("Pad",), "tile": ("Tile",), "select": ("SelectV2", "Less"),
}  # fmt: skip


def collect(target: Target, ops: Sequence[OpDef]) -> Iterator[Case]:
    """COUNT random graphs in each of several dtypes."""
    for dtype in DTYPES:
        for number in range(COUNT):
            run = functools.partial(run_random, dtype, number)
            yield Case(SUITE, "Graph", (("T", dtype),), f"random#{number}", run)
        for number in range(TREES):
            run = functools.partial(run_tree, dtype, number)
            yield Case(SUITE, "Graph", (("T", dtype),), f"tree#{number}", run)


def run_random(dtype: str, number: int, target: Target) -> Measured | None:
    """Builds the random graph of this number and checks it."""
    rng = generator(f"{SUITE}/random/{dtype}#{number}")
    twin = Twin(target)
    known = [n for n in (*BINARY, *UNARY) if registry.find(n)]
    shaped = [s for s in SHAPED if all(registry.find(n) for n in NEEDS[s])]
    values = [twin.feed(rng.integers(-3, 4, (3, 4)).astype(dtype)) for _ in range(3)]
    for _ in range(int(rng.integers(6, 25))):
        made = _step(twin, values, rng, known, shaped)
        if made is not None and np.size(made.wide) <= 400 and np.all(np.abs(made.wide) < LARGEST):
            values.append(made)
    outputs = [values[int(i)] for i in rng.choice(len(values), min(4, len(values)), replace=False)]
    return twin.check([*outputs, values[-1]], runs=2)


def run_tree(dtype: str, number: int, target: Target) -> Measured | None:
    """Returns a random expression of operands that broadcast, and its reduction, which a
    device may compute as one node.
    """
    rng = generator(f"{SUITE}/tree/{dtype}#{number}")
    twin = Twin(target)
    shape = TREE_SHAPES[number % len(TREE_SHAPES)]
    small = [shape, shape[-1:], (*shape[:-1], 1), ()]
    fed = [twin.feed(rng.integers(-2, 3, s).astype(dtype)) for s in small]
    x = fed[0]
    for _ in range(int(rng.integers(1, 7))):
        name = str(rng.choice([*BINARY, *UNARY[:5]]))
        operands = [x] if name in UNARY else [x, fed[int(rng.integers(len(fed)))]]
        made = twin.op(name, operands)
        x = made if np.max(np.abs(made.wide)) <= LARGEST_ELEMENT else twin.op("Sign", [x])
    op = REDUCTIONS[int(rng.integers(len(REDUCTIONS)))]
    if op == "Prod":
        x = twin.op("Sign", [x])
    rank = len(shape)
    axes = [list(range(rank)), [rank - 1], list(range(1, rank)), [0]][int(rng.integers(4))]
    reduced = twin.op(op, [x, twin.constant(axes)], {"keep_dims": bool(rng.integers(2))})
    return twin.check([reduced], runs=2)


def _step(
    twin: Twin, values: list[Value], rng: np.random.Generator, known: list[str], shaped: list[str]
) -> Value | None:
    x = values[int(rng.integers(len(values)))]
    if rng.random() < 0.4:
        return _shape_step(twin, x, values, rng, shaped[int(rng.integers(len(shaped)))])
    name = known[int(rng.integers(len(known)))]
    if name in UNARY:
        return twin.op(name, [x])
    partners = [v for v in values if broadcast_together(x.wide.shape, v.wide.shape)]
    return twin.op(name, [x, partners[int(rng.integers(len(partners)))]])


def _shape_step(twin: Twin, x: Value, values: list[Value], rng: np.random.Generator, what: str) -> Value | None:
    shape = x.wide.shape
    if not shape or 0 in shape:
        return None
    axis = int(rng.integers(len(shape)))
    if what == "transpose":
        return twin.op("Transpose", [x, twin.constant(rng.permutation(len(shape)))])
    if what == "reshape":
        return twin.op("Reshape", [x, twin.constant([-1, shape[axis]])])
    if what in ("sum", "max"):
        keep = bool(rng.integers(2))
        return twin.op(what.capitalize(), [x, twin.constant([axis])], {"keep_dims": keep})
    if what == "concat":
        same = [v for v in values if v.wide.shape == shape]
        return twin.op("ConcatV2", [[x, same[-1]], twin.constant(axis)])
    if what == "slice":
        begin = [int(rng.integers(d)) for d in shape]
        return twin.op("Slice", [x, twin.constant(begin), twin.constant([-1] * len(shape))])
    if what == "pad":
        return twin.op("Pad", [x, twin.constant(rng.integers(0, 2, (len(shape), 2)))])
    if what == "tile":
        return twin.op("Tile", [x, twin.constant(rng.integers(1, 3, len(shape)))])
    same = [v for v in values if v.wide.shape == shape]
    y = same[int(rng.integers(len(same)))]
    return twin.op("SelectV2", [twin.op("Less", [x, y]), x, y])
