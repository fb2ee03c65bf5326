"""Draws programs. A program is a function of the registry, the devices, the seed and its number alone."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from timberframe_conformance.case import Types
from timberframe_conformance.cases.shapes import broadcast_together
from timberframe_conformance.cases.trials import Trial, fits, input_dtype
from timberframe_conformance.cases.values import fixed_array, make_array
from timberframe_conformance.fuzz.draw_flow import FLOW
from timberframe_conformance.fuzz.draw_patterns import pattern
from timberframe_conformance.fuzz.draw_rows import ROWS
from timberframe_conformance.fuzz.draw_seams import SEAMS
from timberframe_conformance.fuzz.pool import COMPOSITES, OWN, PLAIN, Composite, Entry, Pool
from timberframe_conformance.fuzz.program import Inputs, Program, Ref, Step
from timberframe_conformance.fuzz.sketch import BrokenStepError, Sketch
from timberframe_core.dtypes import BY_NAME
from timberframe_core.ops.definition.formats import FORMATS
from timberframe_core.ops.definition.samples import Arg, Sample

STEPS = 2, 12
SMALL = 4
"""Least and greatest number of computing steps; half of the programs have at most SMALL, so that more are drawn."""

SINGLE, SINGLE_SMALL = 0.46, 0.85
"""How often a step is a single node; on a device with few kernels: of what other steps are made the host runs most."""

PATTERN = 0.25
"""How often a step is several nodes that one kernel runs, on a device that has such kernels."""

SEAM = 0.12
"""How often a step is what lies around kernels: a host op, a queue, a table, a random stream, kept weights."""

ON_DEVICE, MIXED = 0.7, 0.2
"""How many programs are put on the device wholly, as far as it has kernels, and how many partly; others are free."""

NUMBERS = ("float32", "float64", "int32", "int64", "float16", "bfloat16")
DIFFERENTIABLE = ("float32", "float64")
MOST_ORDER = 2
KINKS = (0.0, 0.0, 0.0, -1.0, 1.0, 0.5, 6.0)
"""Values at which functions of `tf`, or parts of their gradients, have kinks."""


def draw_program(pool: Pool, seed: int, number: int) -> Program:
    """Program `number` of a seed."""
    drawer = Drawer(pool, np.random.default_rng((seed, number)))
    with contextlib.suppress(BrokenStepError):  # building the program raises the same error
        most = SMALL if drawer.chance(0.5) else STEPS[1]
        drawer.steps(int(drawer.rng.integers(STEPS[0], most + 1)))
    return drawer.finish()


class Drawer:
    """Draws the steps of a program, or of a body: there, new values are constants."""

    def __init__(self, pool: Pool, rng: np.random.Generator, depth: int = 0) -> None:
        self.pool = pool
        self.rng = rng
        self.depth = depth
        self.sketch = Sketch()

    def steps(self, count: int) -> None:
        """Adds this number of computing steps, or fewer if many do not fit."""
        made = 0
        for _ in range(4 * count):
            kind = self.rng.random()
            if self.pool.patterns and self.chance(PATTERN):
                done = pattern(self)
            elif self.chance(SEAM):
                done = self.choose(SEAMS)(self)
            elif self.chance(SINGLE_SMALL if self.pool.is_small else SINGLE):
                done = self.op()
            elif kind < 0.33:
                done = self.composite()
            elif kind < 0.59:
                done = self.gradient()
            elif kind < 0.81 or self.depth >= 2:
                done = self.choose(ROWS)(self)
            else:
                done = self.choose(FLOW)(self)
            made += done
            if made == count:
                break

    def inner(self) -> Drawer:
        """Returns a drawer of the steps of a body."""
        return Drawer(self.pool, self.rng, self.depth + 1)

    def chance(self, p: float) -> bool:
        return bool(self.rng.random() < p)

    def choose(self, items: Sequence[Any]) -> Any:
        return items[int(self.rng.integers(len(items)))]

    def pick(self, dtypes: Sequence[str] | None = None) -> Ref | None:
        """Returns an existing value, later ones more often."""
        found = self.sketch.refs(dtypes)
        return found[int(len(found) * np.sqrt(self.rng.random()))] if found else None

    # Sources

    def leaf(self, dtype: str, shape: tuple[int, ...], arg: Arg | None = None, kinks: float = 0.0) -> Ref:
        """Returns a new value: fed, a constant or a variable. kinks: the probability of values at which functions have
        kinks."""
        spec = replace(arg, shape=shape, values=None) if arg else Arg(shape)
        if dtype in DIFFERENTIABLE and spec.low is None and self.chance(kinks):
            return self.given(np.asarray(self.rng.choice(KINKS, shape), BY_NAME[dtype].numpy))
        return self.given(self._with_edge_cases(make_array(spec, dtype, self.rng, special=self.chance(0.12)), spec))

    def given(self, value: np.ndarray, constant: float = 0.25) -> Ref:
        """Returns a step for this value. constant: the probability of a constant."""
        kind = "feed"
        if self.depth or self.chance(constant):
            kind = "const"
        elif value.dtype.kind == "f" and self.chance(0.15):
            kind = "variable"
        number = self.sketch.add(Step(kind, value=value, known=value.shape))
        assert number is not None
        return number, 0

    def _with_edge_cases(self, x: np.ndarray, arg: Arg) -> np.ndarray:
        """Sometimes equal values, zeros, or values of very different magnitude."""
        if x.dtype.name not in FORMATS or x.dtype.kind == "c" or arg.distinct or arg.low is not None:
            return x
        what = self.rng.random()
        with np.errstate(all="ignore"):
            if what < 0.2:
                return np.asarray(np.round(x.astype(np.float64)).astype(x.dtype))
            if what < 0.3:
                return np.asarray(np.where(self.rng.random(x.shape) < 0.5, 0, x).astype(x.dtype))
            if what < 0.35:
                return np.asarray((x * np.exp2(self.rng.integers(-8, 8, x.shape))).astype(x.dtype))
        return x

    # Existing values converted to a required shape or dtype

    def adapted(self, ref: Ref, shape: tuple[int, ...]) -> Ref | None:
        """Returns the value in another shape, cut off or repeated as needed."""
        have = self.sketch.value(ref).shape
        size, wanted = int(np.prod(have)), int(np.prod(shape))
        if have == shape:
            return ref
        if size != wanted:
            if not size:
                return None
            ref = self.node("Reshape", (ref, self.const(np.array([-1], np.int32)))) or ref
            if wanted < size:
                begin, length = (self.const(np.array([n], np.int32)) for n in (0, wanted))
                cut = self.node("Slice", (ref, begin, length))
            else:
                indices = self.const((np.arange(wanted) % size).astype(np.int32))
                cut = self.node("GatherV2", (ref, indices, self.const(np.array(0, np.int32))))
            if cut is None:
                return None
            ref = cut
        return self.node("Reshape", (ref, self.const(np.array(shape, np.int32))))

    def converted(self, ref: Ref, dtype: str) -> Ref | None:
        """Returns the value in another dtype, where Cast has it."""
        if self.sketch.dtype(ref) == dtype:
            return ref
        return self.node("Cast", (ref,), {"SrcT": BY_NAME[self.sketch.dtype(ref)], "DstT": BY_NAME[dtype]})

    def const(self, value: np.ndarray) -> Ref:
        number = self.sketch.add(Step("const", value=value))
        assert number is not None
        return number, 0

    def node(self, op: str, inputs: Inputs, attrs: dict[str, Any] | None = None) -> Ref | None:
        """Returns the first output of a new node, or None."""
        number = self.sketch.add(Step("op", op, inputs, attrs or {}))
        return None if number is None else (number, 0)

    # Nodes

    def op(self) -> bool:
        """Returns a node of the registry."""
        entry = self.pool.draw(self.rng)
        if entry is None:
            return False
        types = self._types(entry)
        fitting = [s for s in entry.samples if fits(entry.op, s, types)]
        if not fitting:
            return False
        sample = self.choose(fitting)
        if entry.elementwise and not sample.attrs and all(a.values is None for a in sample.inputs):
            inputs = self._by_elements(entry, types, sample)
        else:
            inputs = self._by_sample(entry, types, sample)
        if inputs is None:
            return False
        return self.sketch.add(Step("op", entry.op.name, inputs, self._attrs(entry, types, sample, inputs))) is not None

    def _types(self, entry: Entry) -> Types:
        """Returns a combination of dtypes, more often one of existing values."""
        wanted = self.choose(PLAIN)
        near = self.pick()
        if near is not None and self.chance(0.8):
            wanted = self.sketch.dtype(near)
        types = entry.own if entry.own and self.chance(OWN) else entry.types
        good = [t for t in types if t and t[0][1] == wanted]
        found: Types = self.choose(good or types)
        return found

    def _by_elements(self, entry: Entry, types: Types, sample: Sample) -> Inputs | None:
        """Returns values that broadcast, connected where any are of the dtype."""
        chosen: list[Ref] = []
        shape: tuple[int, ...] | None = None
        for arg_def, arg in zip(entry.op.inputs, sample.inputs, strict=True):
            assert isinstance(arg, Arg)
            dtype = input_dtype(arg_def, arg, types)
            ref = self.pick([dtype]) if self.chance(0.85) else None
            if ref is not None and not self._is_accepted(ref, arg):
                ref = None
            if ref is not None and shape is not None and not broadcast_together(self.sketch.value(ref).shape, shape):
                ref = self.adapted(ref, shape)
            if ref is None:
                near = self.choose([shape, shape, shape[-1:], ()]) if shape is not None else self.choose(SHAPES)
                ref = self.leaf(dtype, near, arg)
            shape = self.sketch.value(ref).shape if shape is None else shape
            chosen.append(ref)
        return tuple(chosen)

    def sampled(self, entry: Entry, types: Types, sample: Sample) -> Step:
        """Returns a node of an op with the shapes and attrs of a sample."""
        inputs = self._by_sample(entry, types, sample)
        return Step("op", entry.op.name, inputs, self._attrs(entry, types, sample, inputs))

    def _by_sample(self, entry: Entry, types: Types, sample: Sample) -> Inputs:
        """Returns the sample's shapes; connected values are cut to them, or taken as they are
        where the rank is the same.
        """
        loose = self.chance(0.5)
        made: list[Any] = []
        for arg_def, arg in zip(entry.op.inputs, sample.inputs, strict=True):
            args = [arg] if isinstance(arg, Arg) else list(arg)
            refs = [self._argument(a, input_dtype(arg_def, a, types), loose and not made) for a in args]
            made.append(refs[0] if isinstance(arg, Arg) else tuple(refs))
        return tuple(made)

    def _argument(self, arg: Arg, dtype: str, loose: bool) -> Ref:
        if arg.values is not None:
            return self.given(fixed_array(arg.values, BY_NAME[dtype].numpy), 0.75)
        ref = self.pick([dtype]) if self.chance(0.75) else None
        if ref is None and dtype in NUMBERS and self.chance(0.3):
            other = self.pick(NUMBERS)
            ref = None if other is None else self.converted(other, dtype)
        if ref is not None and self._is_accepted(ref, arg):
            if loose and self.sketch.value(ref).ndim == len(arg.shape):
                return ref
            ref = self.adapted(ref, arg.shape)
            if ref is not None:
                return ref
        return self.leaf(dtype, arg.shape, arg)

    def _is_accepted(self, ref: Ref, arg: Arg) -> bool:
        """Returns whether an op takes a value as this argument."""
        x = self.sketch.value(ref)
        if x.dtype.kind in "OSb" or not x.size:
            return True
        if arg.distinct and len(np.unique(x)) < x.size:
            return False
        real = x.real if x.dtype.kind == "c" else x
        low = -np.inf if arg.low is None else arg.low
        high = np.inf if arg.high is None else arg.high
        bounded = arg.low is not None or arg.high is not None or not arg.special
        accepted = np.isfinite(real) & (real >= low) & (real <= high)
        return not (bounded or arg.whole) or bool(np.all(accepted & ((real == np.round(real)) | (not arg.whole))))

    def _attrs(self, entry: Entry, types: Types, sample: Sample, inputs: Inputs) -> dict[str, Any]:
        arrays: list[Any] = [
            self.sketch.narrow(x) if isinstance(a, Arg) else [self.sketch.narrow(r) for r in x]  # type: ignore[arg-type]  # one for one
            for a, x in zip(sample.inputs, inputs, strict=True)
        ]
        return Trial(entry.op, types, sample, 0).attrs(arrays)

    def composite(self) -> bool:
        """Returns a function of `tf`, often with its gradient."""
        c: Composite = self.choose(COMPOSITES)
        arg = Arg(low=c.low, high=c.high)
        dtype = self.choose(("float32", "float32", "float64"))
        connected = 0.0 if self.chance(0.3) else 0.75
        shapes = list(c.shapes)
        inputs: list[Ref] = []
        for i, shape in enumerate(shapes):
            integers = c.name == "nn.embedding_lookup" and i == 1
            ref = None if integers or not self.chance(connected) else self.pick([dtype])
            if ref is not None and self._is_accepted(ref, arg):
                have = self.sketch.value(ref).shape
                if i == 0 and c.alike and len(have) == len(shape):
                    shapes = [have if s == shape else s for s in shapes]
                    shape = have
                ref = self.adapted(ref, shape)
            else:
                ref = None
            spec = Arg(low=0, high=1) if integers else arg
            inputs.append(ref or self.leaf("int32" if integers else dtype, shape, spec, kinks=0.3))
        attrs = {k: self.choose(v) for k, v in c.options.items()}
        if c.names:
            attrs["inputs"] = c.names
        given: Inputs = (tuple(inputs),) if c.as_list else tuple(inputs)
        number = self.sketch.add(Step("call", c.name, given, attrs))
        if number is None:
            return False
        if self.chance(0.5):
            self.gradient((number, 0))
        return True

    def gradient(self, of: Ref | None = None) -> bool:
        """Derivatives of a late value, or of a given one, by values that it depends on."""
        y = of or self.pick(DIFFERENTIABLE)
        if y is None or not self._has_gradient(y):
            return False
        above = self.sketch.ancestors(y) - {y[0]}
        xs = [r for r in self.sketch.refs(DIFFERENTIABLE) if r[0] in above and self.sketch.steps[r[0]].kind != "const"]
        if not xs:
            return False
        near = [r for r in self.sketch.steps[y[0]].refs() if r in xs]
        xs = near if near and self.chance(0.4) else xs
        chosen = [xs[int(i)] for i in self.rng.permutation(len(xs))[: 1 + self.chance(0.4)]]
        return self.sketch.add(Step("grad", inputs=(self._losses(y), tuple(chosen)))) is not None

    def _has_gradient(self, y: Ref) -> bool:
        step = self.sketch.steps[y[0]]
        return (
            self.sketch.dtype(y) in DIFFERENTIABLE and self.sketch.order[y[0]] < MOST_ORDER and step.kind not in SOURCES
        )

    def _losses(self, y: Ref) -> tuple[Ref, ...]:
        """Returns what is differentiated: a value, its mean or sum, or it and another value."""
        what = self.rng.random()
        if what < 0.2:
            number = self.sketch.add(Step("call", self.choose(("reduce_mean", "reduce_sum")), (y,)))
            return (y,) if number is None else ((number, 0),)
        other = self.pick(DIFFERENTIABLE) if what < 0.35 else None
        return (y, other) if other is not None and self._has_gradient(other) else (y,)

    # The end

    def finish(self) -> Program:
        """Returns the program: its last values and some others are fetched, and the shapes
        of feeds are known in part.
        """
        steps = list(self.sketch.steps)
        used = {s for step in steps for s, _ in step.refs()}
        computed = [r for r in self.sketch.refs() if steps[r[0]].kind not in SOURCES] or self.sketch.refs()
        ends = [r for r in computed if r[0] not in used]
        outputs = ends[-4:] + [self.choose(computed) for _ in range(2 * bool(computed) * self.chance(0.5))]
        if len(self.sketch.values) < len(steps):  # the last one could not be built
            outputs = [*outputs, (len(steps) - 1, 0)]
        for i, step in enumerate(steps):
            if step.kind == "feed":
                steps[i] = replace(step, known=self._known(step))
        program, where = Program(tuple(steps), tuple(dict.fromkeys(outputs))), self.rng.random()
        if where < ON_DEVICE:
            return program.placed(lambda step, number: "device")
        return program.placed(lambda step, number: self._device(step)) if where < ON_DEVICE + MIXED else program

    def _known(self, step: Step) -> tuple[int | None, ...] | None:
        assert step.value is not None
        what = self.rng.random()
        if what < 0.4:
            return step.value.shape
        return None if what < 0.6 else tuple(None if self.chance(0.5) else d for d in step.value.shape)

    def _device(self, step: Step) -> str:
        if self.chance(0.3):
            return ""
        return "device" if self.chance(0.6) else "host"


SOURCES = ("input", "feed", "const", "variable")

SHAPES: tuple[tuple[int, ...], ...] = (
    (),
    (1,),
    (4,),
    (2, 3),
    (2, 3),
    (3, 1),
    (2, 1, 3),
    (0, 3),
    (7,),
    (5, 2),
    (2, 2, 2),
)
