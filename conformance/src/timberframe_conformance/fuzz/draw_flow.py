"""Draws steps with bodies, variables and arrays."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from timberframe_conformance.fuzz.program import Program, Ref, Step
from timberframe_core.dtypes import BY_NAME
from timberframe_core.ops.definition.samples import Arg

if TYPE_CHECKING:
    from timberframe_conformance.fuzz.draw import Drawer

Form = tuple[str, tuple[int, ...]]
"""Dtype and shape that a body's result must have."""

STATES = ("float32", "float64", "int32")


def body(d: Drawer, values: Sequence[np.ndarray], forms: Sequence[Form] | None) -> tuple[Program, list[Form]]:
    """Returns a function of parameters, tried with these values. forms: what it must return, if that is fixed."""
    inner = d.inner()
    for v in values:
        inner.sketch.add(Step("input"), v)
    inner.steps(int(d.rng.integers(1, 4)))
    if forms is None:
        found = inner.pick(STATES) or inner.leaf("float32", (2,))
        outputs = [found]
    else:
        outputs = [_result(inner, f) for f in forms]
    return inner.sketch.program(outputs), [(inner.sketch.dtype(r), inner.sketch.value(r).shape) for r in outputs]


def _result(inner: Drawer, form: Form) -> Ref:
    """Returns a value of this form, made from existing values if possible."""
    dtype, shape = form
    for dtypes in ([dtype], ("float32", "float64", "int32", "int64")):
        ref = inner.pick(dtypes)
        found = None if ref is None else inner.converted(ref, dtype)
        found = None if found is None else inner.adapted(found, shape)
        if found is not None:
            return found
    return inner.leaf(dtype, shape)


def _captured(d: Drawer, least: int = 1) -> list[Ref]:
    """Returns values that bodies take."""
    count = int(d.rng.integers(least, 4))
    return [d.pick(STATES) or d.leaf("float32", (2, 3)) for _ in range(count)]


def cond(d: Drawer) -> bool:
    """Returns a branch on a bool that is fed or computed."""
    captured = _captured(d)
    pred: Ref | None = None
    if d.sketch.dtype(captured[0]) == "float32" and d.chance(0.5):
        total = d.node("Sum", (captured[0], d.const(np.arange(d.sketch.value(captured[0]).ndim, dtype=np.int32))))
        pred = None if total is None else d.node("Less", (total, d.const(np.array(0.5, np.float32))))
    pred = pred or d.given(np.array(d.chance(0.5)))
    values = [d.sketch.narrow(r) for r in captured]
    then, forms = body(d, values, None)
    if d.chance(0.2):
        forms = [(forms[0][0], d.choose(((), (3,), (2, 2))))]
    other, _ = body(d, values, forms)
    return d.sketch.add(Step("cond", inputs=(pred, *captured), bodies=(then, other))) is not None


def case(d: Drawer) -> bool:
    """Returns a branch on an index, which may be out of range."""
    captured = _captured(d)
    index = d.given(np.array(d.rng.integers(-1, 4), np.int32))
    values = [d.sketch.narrow(r) for r in captured]
    first, forms = body(d, values, None)
    bodies = [first, *(body(d, values, forms)[0] for _ in range(int(d.rng.integers(1, 3))))]
    return d.sketch.add(Step("case", inputs=(index, *captured), bodies=tuple(bodies))) is not None


def loop(d: Drawer) -> bool:
    """Returns a loop of a few iterations over one to three variables."""
    limit = d.given(np.array(d.rng.integers(0, 4), np.int32), 0.5)
    start = _captured(d)
    values = [d.sketch.narrow(r) for r in start]
    forms = [(d.sketch.dtype(r), d.sketch.value(r).shape) for r in start]
    inner, _ = body(d, [np.array(0, np.int32), *values], forms)
    return d.sketch.add(Step("while", inputs=(limit, *start), bodies=(inner,))) is not None


def _rows(d: Drawer) -> Ref | None:
    found = [r for r in d.sketch.refs(STATES) if d.sketch.value(r).ndim and 0 < len(d.sketch.value(r)) < 7]
    return d.choose(found) if found else None


def mapped(d: Drawer) -> bool:
    """tf.map_fn over rows."""
    x = _rows(d) or d.leaf("float32", (3, 2))
    captured = _captured(d, 0)[:1]
    values = [d.sketch.narrow(x)[0], *(d.sketch.narrow(r) for r in captured)]
    inner, forms = body(d, values, None)
    attrs = {"dtype": BY_NAME[forms[0][0]]}
    return d.sketch.add(Step("map", inputs=(x, *captured), attrs=attrs, bodies=(inner,))) is not None


def scan(d: Drawer) -> bool:
    """tf.scan over rows."""
    x = _rows(d) or d.leaf("float32", (3, 2))
    start = d.pick(STATES) or d.leaf("float32", (2,))
    form = d.sketch.dtype(start), d.sketch.value(start).shape
    inner, _ = body(d, [d.sketch.narrow(start), d.sketch.narrow(x)[0]], [form])
    return d.sketch.add(Step("scan", inputs=(start, x), bodies=(inner,))) is not None


def array(d: Drawer) -> bool:
    """Returns a TensorArray of values of one shape, or of different first sizes where it is joined."""
    first = d.pick(STATES) or d.leaf("float32", (2, 3))
    shape = d.sketch.value(first).shape
    read = d.choose(("stack", "concat", "gather", "read") if shape else ("stack", "gather", "read"))
    refs = [first]
    for _ in range(int(d.rng.integers(1, 3))):
        other = d.pick([d.sketch.dtype(first)]) or first
        longer = (int(d.rng.integers(1, 4)), *shape[1:]) if read == "concat" and d.chance(0.5) else shape
        refs.append(d.adapted(other, longer) or first)
    attrs = {"read": read, "infer_shape": read != "concat"}
    if read in ("gather", "read"):
        attrs["indices"] = tuple(int(i) for i in d.rng.integers(0, len(refs), 2))
    return d.sketch.add(Step("array", inputs=tuple(refs), attrs=attrs)) is not None


def assign(d: Drawer) -> bool:
    """Returns a variable that a run changes."""
    if d.depth:
        return False
    variables = [i for i, s in enumerate(d.sketch.steps) if s.kind == "variable"]
    if not variables:
        value = np.asarray(d.rng.uniform(-2, 2, d.choose(((), (3,), (2, 3)))), np.float32)
        number = d.sketch.add(Step("variable", value=value))
        assert number is not None
        variables = [number]
    ref = (int(d.choose(variables)), 0)
    dtype, shape = d.sketch.dtype(ref), d.sketch.value(ref).shape
    found = d.pick([dtype])
    value_ref = None if found is None else d.adapted(found, shape)
    op = d.choose(("assign", "assign_add", "assign_sub"))
    chosen = value_ref or d.leaf(dtype, shape, Arg(low=-1, high=1))
    return d.sketch.add(Step("assign", op, (ref, chosen))) is not None


FLOW: tuple[Callable[[Drawer], bool], ...] = (cond, case, loop, loop, mapped, scan, array, assign)
