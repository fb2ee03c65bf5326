"""Draws what lies around kernels: host ops, queues, tables, random streams, and weights that kernels may prepare."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from timberframe_conformance.cases.trials import fits
from timberframe_conformance.fuzz.program import Ref, Step
from timberframe_conformance.suites.weights import factors
from timberframe_core.dtypes import BY_NAME

if TYPE_CHECKING:
    from timberframe_conformance.fuzz.draw import Drawer

DTYPES = ("float32", "float64", "int32", "int64", "float16")
DRAWS = ("RandomUniform", "RandomStandardNormal", "TruncatedNormal")
QUEUES = ("FIFOQueue", "PaddingFIFOQueue")


def host(d: Drawer) -> bool:
    """Returns a function of the program, on one value or on two of one dtype; its shape is known
    or found when it has run.
    """
    x = d.pick(DTYPES) or d.leaf("float32", (2, 3))
    name = d.choose(("keep", "twice", "swap"))
    inputs = (x,) if name in ("keep", "twice") else (x, d.pick([d.sketch.dtype(x)]) or x)
    return d.sketch.add(Step("host", name, inputs, {"shaped": d.chance(0.5)})) is not None


def queue(d: Drawer) -> bool:
    """Returns one to three values of one form through a queue."""
    if d.depth:  # an iteration that fails would leave elements for the next run
        return False
    first = d.pick(DTYPES) or d.leaf("float32", (3,))
    shape = d.sketch.value(first).shape
    refs = [first]
    for _ in range(int(d.rng.integers(0, 3))):
        other = d.pick([d.sketch.dtype(first)])
        refs.append((None if other is None else d.adapted(other, shape)) or first)
    many = d.chance(0.4)
    shaped = many or d.chance(0.5)
    attrs = {"shape": shape, "shaped": shaped, "many": many}
    return d.sketch.add(Step("queue", d.choose(QUEUES) if shaped else "FIFOQueue", tuple(refs), attrs)) is not None


def table(d: Drawer) -> bool:
    """Computed integers looked up in a table that has some of them."""
    ref = d.pick(("int32", "int64")) or d.leaf("int32", (4,))
    keys = d.converted(ref, "int64")
    if d.depth or keys is None:
        return False
    known = np.unique(np.append(d.sketch.value(keys).ravel()[:4].astype(np.int64), [0, 1, 7]))
    kept = known[d.rng.random(len(known)) < 0.7] if len(known) > 1 else known
    values = np.asarray(d.rng.uniform(-2, 2, len(kept)), np.float32)
    if not len(kept):
        return False
    attrs = {"keys": kept, "values": values, "default": -1.0}
    return d.sketch.add(Step("table", inputs=(keys,), attrs=attrs)) is not None


def random(d: Drawer) -> bool:
    """Returns numbers of a stream of the session."""
    if d.depth:
        return False
    shape = d.choose(((), (3,), (2, 3), (7,), (5, 2)))
    dtype = BY_NAME[d.choose(("float32", "float32", "float64"))]
    attrs = {"shape": shape, "dtype": dtype, "seed": int(d.rng.integers(1, 1000))}
    return d.sketch.add(Step("random", d.choose(DRAWS), attrs=attrs)) is not None


def weights(d: Drawer) -> bool:
    """Returns a product with weights that are constant or a variable, often followed by another
    one with the same weights.
    """
    if not d.pool.products:
        return False
    entry = d.pool.entry(d.choose(d.pool.products))
    assert entry is not None
    types = d.choose([t for t in entry.own if ("T", "float32") in t] or entry.own)
    samples = [s for s in entry.samples if fits(entry.op, s, types)]
    if not samples:
        return False
    kept: Ref | None = None
    position = factors(entry.op)[-1]
    for _ in range(1 + d.chance(0.5)):
        step = d.sampled(entry, types, d.choose(samples))
        ref = step.refs()[position]
        if kept is None:
            value = d.sketch.narrow(ref)
            variable = value.dtype.kind == "f" and not d.depth and d.chance(0.6)
            number = d.sketch.add(Step("variable" if variable else "const", value=value, known=value.shape))
            kept = None if number is None else (number, 0)
        elif d.sketch.value(kept).shape != d.sketch.value(ref).shape:
            return True
        if kept is None:
            return False
        inputs = (*step.inputs[:position], kept, *step.inputs[position + 1 :])
        if d.sketch.add(replace(step, inputs=inputs)) is None:
            return False
    return True


SEAMS: tuple[Callable[[Drawer], bool], ...] = (host, queue, table, random, weights, weights)
