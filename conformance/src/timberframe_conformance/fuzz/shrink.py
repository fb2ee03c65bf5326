"""Shrinks a failing program to a small one that fails in the same way.

Candidates come from a few rules, from coarse to fine: fewer steps, fewer fetches, a value in place of the step that
computes it, an input in place of a step, simpler devices, feeds and values, smaller sizes. Whatever still fails is
kept, and the rules begin again, until none helps or the time is up.

Why not Hypothesis: it keeps and shrinks the choices that a value was drawn by. Each op that is added to the registry
changes what the same choices draw, so its database would forget old failures; and a program that ends its process must
be shrunk by another one, to which it travels as data in any case.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np

from timberframe_conformance.fuzz.build import build
from timberframe_conformance.fuzz.expected import evaluate
from timberframe_conformance.fuzz.program import Program, Ref, Step, is_ref, renamed, to_json

Fails = Callable[[Program], bool]


def shrink(program: Program, fails: Fails, seconds: float = 30.0, tries: int = 2_000) -> Program:
    """Returns the smallest program found that still fails. It is the given one where nothing smaller does."""
    end = time.monotonic() + seconds
    current = without_unused(program)
    if not fails(current):
        current = program
    seen = {to_json(current)}
    progress = True
    while progress:
        progress = False
        for candidate in candidates(current):
            if time.monotonic() > end or tries <= 0:
                return current
            candidate = without_unused(candidate)
            key = to_json(candidate)
            if key in seen:
                continue
            seen.add(key)
            tries -= 1
            if fails(candidate):
                current, progress = candidate, True
                break
    return current


def candidates(program: Program) -> Iterator[Program]:
    """Simpler programs, the smallest first; not all of them are valid."""
    last = len(program.steps) - 1
    for i, step in enumerate(program.steps):
        if step.kind not in ("input", "feed", "const") and (i < last or program.outputs != ((i, 0),)):
            yield Program(program.steps[: i + 1], ((i, 0),))
    for output in program.outputs:
        if len(program.outputs) > 1:
            yield replace(program, outputs=(output,))
    for output in program.outputs:
        if len(program.outputs) > 2:
            yield replace(program, outputs=tuple(o for o in program.outputs if o != output))
    yield from _values_for_steps(program)
    yield from _inputs_for_steps(program)
    yield from _fewer_list_inputs(program)
    yield from _simpler_bodies(program)
    yield from _simpler_leaves(program)


def without_unused(program: Program) -> Program:
    """Returns the program without unused steps; parameters of bodies stay."""
    needed = {s for s, _ in program.outputs}
    for i in range(len(program.steps) - 1, -1, -1):
        if i in needed:
            needed.update(s for s, _ in program.steps[i].refs())
    kept = [i for i, s in enumerate(program.steps) if i in needed or s.kind == "input"]
    numbers = {old: new for new, old in enumerate(kept)}
    steps = [replace(program.steps[i], inputs=renamed(program.steps[i].inputs, numbers)) for i in kept]
    return Program(tuple(steps), tuple((numbers[s], o) for s, o in program.outputs))


def _values_for_steps(program: Program) -> Iterator[Program]:
    """Fed values in place of steps, the last first: that drops all that they were computed from."""
    values = _values(program)
    for i in range(len(program.steps) - 1, -1, -1):
        step = program.steps[i]
        if step.kind in ("input", "feed", "const", "variable") or i not in values:
            continue
        used = {o for s in program.steps for n, o in s.refs() if n == i} | {o for n, o in program.outputs if n == i}
        if len(used) == 1 and max(used) < len(values[i]):
            value = values[i][max(used)]
            feed = Step("feed", value=value, known=value.shape)
            yield _replaced(program, i, feed)


def _values(program: Program) -> dict[int, list[np.ndarray]]:
    """Returns what each step gives, in its dtype, where references compute it."""
    try:
        built = build(_undeviced(program))
    except Exception:  # the program fails because it cannot be built
        return {}
    found = {}
    for i, tensors in enumerate(built.steps):
        try:
            wide = evaluate(tensors, built.feeds, built.initializers)
        except Exception:
            continue
        with np.errstate(all="ignore"):
            found[i] = [np.asarray(w).astype(t.dtype.base_dtype.numpy) for w, t in zip(wide, tensors, strict=True)]
    return found


def _undeviced(program: Program) -> Program:
    return program.placed(lambda step, number: "")


def _replaced(program: Program, i: int, step: Step) -> Program:
    """With another step at i, of which every use takes the first output."""
    return _redirected(_with(program, i, step), i, (i, 0))


def _redirected(program: Program, i: int, ref: Ref) -> Program:
    """With another value wherever an output of step i is used."""
    return _mapped(program, lambda r: ref if r[0] == i else r)


def _mapped(program: Program, change: Callable[[Ref], Ref]) -> Program:
    def inputs(step: Step) -> Step:
        given = tuple(change(x) if is_ref(x) else tuple(map(change, x)) for x in step.inputs)
        return replace(step, inputs=given)

    return Program(tuple(map(inputs, program.steps)), tuple(map(change, program.outputs)))


def _inputs_for_steps(program: Program) -> Iterator[Program]:
    """Yields an input in place of a step's results."""
    for i in range(len(program.steps) - 1, -1, -1):
        for ref in dict.fromkeys(program.steps[i].refs()):
            yield _redirected(program, i, ref)


def _fewer_list_inputs(program: Program) -> Iterator[Program]:
    for i, step in enumerate(program.steps):
        for k, given in enumerate(step.inputs):
            if not is_ref(given) and len(given) > 1:
                for drop in range(len(given)):
                    fewer = (*given[:drop], *given[drop + 1 :])
                    inputs = (*step.inputs[:k], fewer, *step.inputs[k + 1 :])
                    attrs = {n: v for n, v in step.attrs.items() if n != "N"}
                    yield _with(program, i, replace(step, inputs=inputs, attrs=attrs))


def _with(program: Program, i: int, step: Step) -> Program:
    return replace(program, steps=(*program.steps[:i], step, *program.steps[i + 1 :]))


def _simpler_bodies(program: Program) -> Iterator[Program]:
    for i, step in enumerate(program.steps):
        for k, body in enumerate(step.bodies):
            for simpler in (
                *_inputs_for_steps(body),
                *_fewer_list_inputs(body),
                *_simpler_bodies(body),
                *_leaves(body),
            ):
                bodies = (*step.bodies[:k], without_unused(simpler), *step.bodies[k + 1 :])
                yield _with(program, i, replace(step, bodies=bodies))


def _simpler_leaves(program: Program) -> Iterator[Program]:
    if any(s.device for s in program.all_steps()):
        yield _undeviced(program)
    for i, step in enumerate(program.steps):
        if step.device:
            yield _with(program, i, replace(step, device=""))
        if step.kind == "variable":
            yield _with(program, i, replace(step, kind="const"))
        if step.kind == "feed" and step.value is not None and step.known != step.value.shape:
            yield _with(program, i, replace(step, known=step.value.shape))
    yield from _smaller(program)
    yield from _leaves(program)


def _leaves(program: Program) -> Iterator[Program]:
    """Plainer values."""
    for i, step in enumerate(program.steps):
        x = step.value
        if x is None or x.dtype.kind not in "fV" or not x.size:
            continue
        with np.errstate(all="ignore"):
            plain = (np.zeros_like(x), np.ones_like(x), np.round(x.astype(np.float64)).astype(x.dtype))
        for other in plain:
            if np.any(other != x):
                yield _with(program, i, replace(step, value=other))


def _smaller(program: Program) -> Iterator[Program]:
    """Yields one size everywhere made 1 or 2."""
    sizes = {d for s in program.steps if s.value is not None for d in s.value.shape if d > 1}
    for size in sorted(sizes, reverse=True):
        for wanted in (1, 2):
            if wanted < size:
                yield replace(program, steps=tuple(_cut(s, size, wanted) for s in program.steps))


def _cut(step: Step, size: int, wanted: int) -> Step:
    if step.value is None or size not in step.value.shape:
        return step
    value = step.value[tuple(slice(wanted) if d == size else slice(None) for d in step.value.shape)]
    known = step.known and tuple(wanted if d == size else d for d in step.known)
    return replace(step, value=np.ascontiguousarray(value).reshape(value.shape), known=known)
