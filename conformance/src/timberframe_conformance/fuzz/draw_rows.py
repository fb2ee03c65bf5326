"""Draws steps that gather rows and join values: gradients are IndexedSlices, and partly known shapes are combined."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from timberframe_conformance.fuzz.program import Ref, Step

if TYPE_CHECKING:
    from timberframe_conformance.fuzz.draw import Drawer

FLOATS = ("float32", "float64")
LOOKUPS = ("gather", "nn.embedding_lookup", "gather_nd")
UNARY = ("Neg", "Cos", "Square", "Tanh", "Exp", "Identity", "Relu", "Abs")
BINARY = ("AddV2", "Sub", "Mul", "Maximum")


def lookup(d: Drawer) -> bool:
    """Returns rows of a value that was computed, some of them more than once, and often the gradient of them."""
    table = _computed(d)
    if table is None:
        return False
    count = len(d.sketch.value(table))
    indices = np.asarray(d.rng.integers(0, count, int(d.rng.integers(1, 5))), np.int32)
    name = d.choose(LOOKUPS)
    if name == "gather_nd":
        indices = indices[:, None]
    number = d.sketch.add(Step("call", name, (table, d.given(indices, 0.5))))
    if number is None:
        return False
    if d.chance(0.6):
        d.gradient((number, 0))
    return True


def _computed(d: Drawer) -> Ref | None:
    """Returns a value with rows, usually the result of a node; a new node if there is none."""
    found = [r for r in d.sketch.refs(FLOATS) if d.sketch.value(r).ndim and len(d.sketch.value(r))]
    base: Ref = (
        d.choose(found) if found and d.chance(0.8) else d.leaf(d.choose(FLOATS), d.choose(((4,), (3, 2), (5, 2))))
    )
    if d.sketch.steps[base[0]].kind not in ("feed", "const", "variable", "input") and d.chance(0.6):
        return base
    if d.chance(0.5):
        return d.node(d.choose(UNARY), (base,))
    dtype, shape = d.sketch.dtype(base), d.sketch.value(base).shape
    return d.node(d.choose(BINARY), (base, d.leaf(dtype, d.choose((shape, shape[1:], ())))))


def join(d: Drawer) -> bool:
    """Returns values joined along an axis where their sizes differ, and often the gradient of that."""
    dtype = d.choose((*FLOATS, "int32", "int64"))
    rank = int(d.rng.integers(1, 4))
    found = [r for r in d.sketch.refs([dtype]) if d.sketch.value(r).ndim == rank]
    first = (
        d.choose(found) if found and d.chance(0.5) else d.leaf(dtype, tuple(int(n) for n in d.rng.integers(1, 4, rank)))
    )
    axis = int(d.rng.integers(rank))
    shape = d.sketch.value(first).shape
    parts = [first]
    for _ in range(int(d.rng.integers(1, 3))):
        wanted = (*shape[:axis], int(d.rng.integers(0, 4)), *shape[axis + 1 :])
        near = d.pick([dtype]) if d.chance(0.3) else None
        parts.append((None if near is None else d.adapted(near, wanted)) or d.leaf(dtype, wanted))
    order = [parts[int(i)] for i in d.rng.permutation(len(parts))]
    number = d.sketch.add(Step("call", "concat", (tuple(order),), {"axis": d.choose((axis, axis - rank))}))
    if number is None:
        return False
    if d.chance(0.6):
        d.gradient((number, 0))
    return True


ROWS: tuple[Callable[[Drawer], bool], ...] = (lookup, join)
