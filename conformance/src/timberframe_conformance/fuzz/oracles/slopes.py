"""Gradients against central differences, both by references in float64: what tf.gradients made is judged, not kernels.

A gradient is judged along a few directions in which the differences are conclusive: the extrapolation has converged,
and the slopes on both sides agree (at a kink they do not, and any subgradient is correct).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from timberframe_conformance.case import CaseFailedError
from timberframe_conformance.fuzz.expected import evaluate, functions_of, tainted
from timberframe_conformance.fuzz.subject import Subject, oracle
from timberframe_conformance.truth.differences import Slope, directions, slope
from timberframe_conformance.truth.graphs import WIDE
from timberframe_core.ops.definition.formats import FORMATS
from timberframe_core.ops.definition.opdef import NotDifferentiable

DIRECTIONS = 3
LARGEST = 1e4
"""At larger values, differences with a fixed step mean nothing."""

AWAY = frozenset(
    {
        "StopGradient",
        "PyFunc",
        "TensorScatterMax",
        "TensorScatterMin",
        "SoftmaxCrossEntropyWithLogits",
        "Xlogy",
        "Xlog1py",
        "Xdivy",
    }
)
"""Ops whose gradient is not the derivative of the reference at values that programs have, by intention.

Scatters with repeated indices, the softmax loss of labels that do not sum to 1, x log y at x = 0. What is so at all
values stands in the definitions, as `gradient_notes`.
"""
NOTED = frozenset({"leaves_rounding_out", "of_distribution", "both_triangles", "overwritten_values"})

DIVIDED = frozenset({"Cumprod"})
"""Ops whose gradient divides by their factors and omits what would be divided by 0, as TensorFlow's does."""


@oracle("slopes")
def slopes(s: Subject) -> int:
    """Each gradient is the slope that differences of the differentiated function give."""
    count = 0
    if s.program.has_updates or s.program.queues:  # tf.gradients does not differentiate through variables and queues
        return 0
    for step, made in zip(s.program.steps, s.built.steps, strict=True):
        if step.kind == "grad" and not _at_own_kink(s):
            ys, xs = ([s.built.steps[i][o] for i, o in refs] for refs in step.inputs)  # type: ignore[misc]  # its inputs are lists
            for x, gradient in zip(xs, made, strict=True):
                count += _judge(s, ys, x, gradient)
    return count


def _at_own_kink(s: Subject) -> bool:
    """Returns whether a weighted logistic loss has a logit of 0.

    There its gradient is TensorFlow's, the sum of those of Relu and Abs at 0, which is no slope.
    """
    logits = [
        s.built.steps[step.inputs[1][0]][step.inputs[1][1]]  # type: ignore[index]  # one value, no list
        for step in s.program.steps
        if step.kind == "call" and step.op == "nn.weighted_cross_entropy_with_logits"
    ]
    try:
        return any(np.any(x == 0) for x in evaluate(logits, s.built.feeds, s.built.initializers))
    except Exception:  # the other oracles report it
        return True


def _judge(s: Subject, ys: Sequence[Any], x: Any, gradient: Any) -> int:
    between = _between(ys, x)
    if not all(_has_slope(op, x.op.graph) for op in between) or tainted([*ys, gradient]):
        return 0
    products = [op.inputs[0] for op in between if op.type in DIVIDED]
    try:
        start, values, *factors = evaluate([x, gradient, *products], s.built.feeds, s.built.initializers)
    except Exception:  # the other oracles report it
        return 0
    if any(np.any(f == 0) for f in factors):
        return 0
    if not (np.all(np.isfinite(values)) and np.all(np.abs(start) < LARGEST) and start.size):
        return 0

    def total(at: np.ndarray, noisy: Any = None) -> float:
        found = evaluate(ys, {**s.built.feeds, x: at.astype(np.float64)}, s.built.initializers, noisy)
        return float(sum(np.sum(v) for v in found))

    rng = s.rng
    try:
        here = total(start)
        noise = 8 * max(abs(total(start, Noise(np.random.default_rng(i))) - here) for i in range(3)) + 2.0**-48 * abs(
            here
        )
        unsure = evaluate([gradient], s.built.feeds, s.built.initializers, Noise(rng))[0]
    except Exception:
        return 0
    if unsure.shape != values.shape:
        return 0
    allowed = 64 * np.abs(unsure - values) + 2.0**-36 * np.abs(values)
    if not (np.isfinite(noise) and np.all(np.isfinite(allowed))):
        return 0
    return sum(
        _along(f"{gradient.name} for {x.name}", total, start, values, noise, v, float(np.sum(allowed * np.abs(v))))
        for v in directions(start.shape, start.dtype, DIRECTIONS, rng)
    )


def _along(
    what: str, total: Any, start: np.ndarray, values: np.ndarray, noise: float, v: np.ndarray, allowed: float
) -> int:
    gives = float(np.sum(values * v))
    before: Slope | None = None
    for step in (2.0**-11, 2.0**-15):
        try:
            totals = {k: total(start + k * step * v) for k in (-4, -2, -1, 0, 1, 2, 4)}
        except Exception:  # a step outside of the ops' domain
            continue
        rough = max(noise, 2.0**-48 * max(map(abs, totals.values())))  # they may be far larger than at the start
        found = slope(lambda t, step=step, totals=totals: totals[round(t / step)], rough, step)  # type: ignore[misc]  # mypy cannot see through the defaults
        right = (4 * totals[1] - totals[2] - 3 * totals[0]) / (2 * step)
        left = -(4 * totals[-1] - totals[-2] - 3 * totals[0]) / (2 * step)
        size = abs(found.value) + float(np.sum(np.abs(values * v)))
        bound = 4 * found.bound + 2.0**-30 * size + FORMATS["float64"].smallest_normal
        if not np.isfinite(found.value) or not bound <= 1e-3 * size + 1e-6:
            continue
        # Not beside the gradient: next to a pole a correct one is far larger than any difference of two steps.
        if not abs(right - left) <= 1e-3 * abs(found.value) + 1e-6 + 8 * rough / step:
            return 0
        if abs(found.value - gives) <= bound + allowed + 1e-4 * size:
            return 1
        largest = 0.0 if before is None else max(abs(before.value), abs(found.value))
        if before is not None and abs(before.value - found.value) <= 1e-2 * largest + 1e-6 + 8 * rough / step:
            raise CaseFailedError(
                f"the gradient {what} gives the slope {gives!r} along {np.round(v, 3).tolist()!r:.120}; differences "
                f"give {found.value!r}, which may be off by {bound:.3g}"
            )
        before = found  # a function that changes within one step has another slope for the smaller step
    return 0


class Noise:
    """Perturbs every float64 result by a few units in the last place, to show the effect of rounding."""

    def __init__(self, rng: np.random.Generator) -> None:
        self.rng = rng

    def __call__(self, op: Any, inputs: Sequence[Any], outputs: tuple[Any, ...]) -> tuple[Any, ...]:
        return tuple(y * (1 + 2.0**-49 * self.rng.uniform(-1, 1, y.shape)) if y.dtype in WIDE else y for y in outputs)


def _between(ys: Sequence[Any], x: Any) -> list[Any]:
    """Returns the operations on the paths from x to ys."""
    depends: dict[Any, bool] = {}

    def reaches(t: Any) -> bool:
        if t is x:
            return True
        if t not in depends:
            depends[t] = False
            found = [reaches(u) for u in t.op.inputs]  # a list, so that all paths are followed
            depends[t] = any(found)
        return depends[t]

    for y in ys:
        reaches(y)
    return list({t.op: None for t, found in depends.items() if found})


def _has_slope(op: Any, graph: Any) -> bool:
    """Returns whether an op's gradient is the derivative of its reference; for those in DIVIDED
    only where no factor is 0.
    """
    inside = [inner for name in functions_of(op) for inner in graph.find_function(name).get_operations()]
    if any(inner.type in DIVIDED or not _has_slope(inner, graph) for inner in inside):
        return False
    if op.type in AWAY or NOTED.intersection(op.op_def.gradient_notes):
        return False
    if op.type == "Cast" and not all(t.dtype.name in FORMATS for t in (*op.inputs, *op.outputs)):
        return False
    if op.op_def.constant_inputs or op.op_def.constant_outputs:
        return False
    floating = any(t.dtype.name in FORMATS for t in op.outputs) and any(t.dtype.name in FORMATS for t in op.inputs)
    gradient = op.op_def.gradient
    return not floating or not isinstance(gradient, NotDifferentiable) or gradient.constant
