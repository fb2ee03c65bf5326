"""Draws nodes that one kernel of the device covers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from timberframe_conformance.cases.trials import fits
from timberframe_conformance.fuzz.program import Ref
from timberframe_core.ops.definition import registry
from timberframe_core.plugin.contracts import KernelDef, Part

if TYPE_CHECKING:
    from timberframe_conformance.fuzz.draw import Drawer


def pattern(d: Drawer) -> bool:
    """Returns the parts of a kernel, with inputs of a sample of the first one's op; the last value
    is often read further on.
    """
    kernel: KernelDef = d.choose(d.pool.patterns)
    first, *later = kernel.covers
    entry = d.pool.entry(first.op)
    wanted = {dtype for allowed in kernel.types.values() for dtype in allowed}
    types = [] if entry is None else [t for t in entry.own if not wanted or wanted.issuperset(x for _, x in t)]
    if entry is None or not types:
        return False
    chosen = d.choose(types)
    samples = [s for s in entry.samples if fits(entry.op, s, chosen)]
    if not samples:
        return False
    step = d.sampled(entry, chosen, d.choose(samples))
    number = d.sketch.add(step)
    refs = list(step.refs())
    if number is None or len(refs) != len(first.inputs):
        return False
    values = {**dict(zip(first.inputs, refs, strict=True)), first.name: (number, 0)}
    return all(_add(d, part, values) for part in later)


def _add(d: Drawer, part: Part, values: dict[str, Ref]) -> bool:
    """Returns a later part; what it reads besides has a shape that often fits."""
    near = next(values[name] for name in part.inputs if name in values)
    dtype, shape = d.sketch.dtype(near), d.sketch.value(near).shape
    for name in part.inputs:
        if name not in values:
            values[name] = d.leaf(dtype, d.choose((shape[-1:], shape[-1:], shape, ())))
    attrs = {name: attr.default for name, attr in registry.get(part.op).attrs.items() if not attr.required}
    made = d.node(part.op, tuple(values[name] for name in part.inputs), attrs)
    if made is None:
        return False
    values[part.name] = made
    return True
