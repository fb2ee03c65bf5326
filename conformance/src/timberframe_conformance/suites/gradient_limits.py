"""Declared gradients of elementwise functions at zeros and towards the ends of their range, in arbitrary precision.

Far out float64 cannot tell a slope: a sigmoid's differences are 0 at 40, those of a square are rounding at 1e8. The
table of `truth/functions.py` can, and slopes of it on either side judge what the gradient's graph gives in float64.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import mpmath  # type: ignore[import-untyped]  # mpmath ships no types
import numpy as np
from mpmath import mp

from timberframe_conformance.backward import make_setting, positions_of
from timberframe_conformance.case import Case, CaseFailedError, Measured, Types
from timberframe_conformance.cases.smooth import floating
from timberframe_conformance.cases.trials import Trial, in_float64, trial_case
from timberframe_conformance.truth import precise
from timberframe_conformance.truth.graphs import Evaluator
from timberframe_conformance.truth.one_sided import precise_side
from timberframe_conformance.truth.reference import evaluate, quiet
from timberframe_core.ops.definition.opdef import OpDef
from timberframe_core.ops.definition.samples import Arg, Sample
from timberframe_sdk.reference import widen

if TYPE_CHECKING:
    from timberframe_conformance.target import Target

COMPLEX = frozenset({"complex64", "complex128"})
NEAR = (0.0, 0.5, 1.0, 2.0, -0.5, -1.0, -2.0)
FAR = (30.0, -30.0, 800.0, -800.0, 1e8, -1e8, 1e200, -1e200)
STEP, PRECISION = 2.0**-40, 1024
"""Step of differences, and the bits that hold the largest argument and the step's square."""
SLACK, ABSOLUTE = 1e-6, 2.0**-45


def limit_cases(op: OpDef, types: Types) -> Iterator[Case]:
    """Yields a case of the first gradient, for a function of one or two real arguments that is in the table."""
    if floating(types) & COMPLEX:
        return
    if precise.has_function(op.name) and 1 <= len(op.inputs) <= 2 and len(op.outputs) == 1:
        grid = [*itertools.product(NEAR, repeat=len(op.inputs))]
        if len(op.inputs) == 1:
            grid += [(x,) for x in FAR]
        sample = Sample([Arg(values=column) for column in zip(*grid, strict=True)])
        yield trial_case("gradient", in_float64(Trial(op, types, sample, 0)), _judge, "limits-first")


def _judge(trial: Trial, case_id: str, target: Target) -> Measured | None:
    op = trial.op
    with quiet():
        arrays = trial.arrays(case_id)
        setting = make_setting(trial, case_id, target, arrays)
        ones = {t: np.ones_like(setting.values[t]) for t in setting.given}
        gradients = Evaluator(setting.first, list(setting.values)).wide(list({**setting.values, **ones}.values()))
        (values,) = evaluate(op, setting.attrs, [widen(x) for x in setting.flat])
        columns = [np.asarray(x, np.float64) for x in setting.flat]
    constant = positions_of(op.constant_inputs, op.inputs, setting.attrs)
    judged = 0
    for position, gradient in zip(setting.positions, gradients, strict=True):
        if position in constant:
            continue
        for declared, value, *point in zip(gradient, values, *columns, strict=True):
            at = [float(x) for x in point]
            if not np.isfinite(value) or (np.isnan(declared) and _jumps(op.name, at, position, setting.attrs)):
                continue
            sides = _slopes(op.name, at, position, setting.attrs)
            known = [s for s in sides if np.isfinite(s)]
            if not known or (np.isnan(declared) and "nan_at_zero" in op.gradient_notes):
                continue
            judged += 1
            slack = ABSOLUTE + SLACK * max(map(abs, known))
            if not min(known) - slack <= declared <= max(known) + slack:
                raise CaseFailedError(
                    f"the declared gradient for input {position} at {at} is {declared:.9g}; differences give "
                    f"{sides[0]:.9g} on the right and {sides[1]:.9g} on the left, in arbitrary precision; the "
                    "definition of the op is wrong, on every device"
                )
    return Measured(note="" if judged else "differences determine no slope at these points")


def _along(op: str, at: Sequence[float], position: int, attrs: Any) -> Callable[[Any], Any | None]:
    """Returns the function of what is added to one argument; None where it has no real value."""

    def f(t: Any) -> Any | None:
        moved = [mpmath.mpf(x) + t if k == position else mpmath.mpf(x) for k, x in enumerate(at)]
        value = precise.value_at(op, moved, attrs)
        return None if isinstance(value, mpmath.mpc) else value

    return f


def _slopes(op: str, at: Sequence[float], position: int, attrs: Any) -> tuple[float, float]:
    """Returns the slopes on the right and on the left; NaN where they are not determined."""
    f = _along(op, at, position, attrs)
    with mp.workprec(PRECISION):
        return precise_side(f, 1, mpmath.mpf(STEP)), precise_side(f, -1, mpmath.mpf(STEP))


def _jumps(op: str, at: Sequence[float], position: int, attrs: Any) -> bool:
    """Returns whether both sides have a value, and these differ."""
    f = _along(op, at, position, attrs)
    with mp.workprec(PRECISION):
        right, left = f(mpmath.mpf(STEP)), f(-mpmath.mpf(STEP))
        return right is not None and left is not None and bool(abs(right - left) > SLACK)
