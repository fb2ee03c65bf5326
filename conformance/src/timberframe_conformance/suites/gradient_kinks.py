"""Declared gradients where formulas break: at zeros, ties and limits of ranges, and of segments of nothing.

They concern no device: gradient graphs are evaluated in float64 by references, and compared with slopes of the op's own
reference on either side (`truth/one_sided.py`). Where both sides agree, the gradient must be that slope; where they
differ, anything between them will do (a subgradient), where the function jumps also NaN; where neither is determined,
as at a pole, anything. Elements are moved by themselves, and all of them together, as the shares of elements that tie
must add up to what moving all of them gives. Second derivatives are compared with slopes of the first in the same way,
but where these jump.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from timberframe import device as device_scope
from timberframe_conformance.backward import (
    Setting,
    dense_gradients,
    is_no_derivative,
    make_setting,
    placeholder,
    positions_of,
)
from timberframe_conformance.case import Case, CaseFailedError, Measured, Types, generator
from timberframe_conformance.cases.kinks import KINDS, kink_arrays, kink_samples
from timberframe_conformance.cases.trials import Trial, in_float64, trial_case
from timberframe_conformance.drive import flatten
from timberframe_conformance.truth.graphs import Evaluator
from timberframe_conformance.truth.one_sided import side
from timberframe_conformance.truth.reference import evaluate, quiet
from timberframe_core.dtypes import as_dtype
from timberframe_core.errors import InvalidArgumentError, InvalidTypeError, NotFoundError, UnimplementedError
from timberframe_core.ops.definition.accuracy import Residual
from timberframe_core.ops.definition.opdef import OpDef
from timberframe_sdk.reference import widen

if TYPE_CHECKING:
    from timberframe_conformance.target import Target

SAMPLES = 4
ROWS = 6
"""Elements of the result that are judged."""
RELATIVE = 1e-6
"""Error that a gradient may have beside the bound of a slope, as a fraction of the slopes and of the function."""

ABSOLUTE = 2.0**-40
NEARBY, NEAR, STEP = 64, 2.0**-16, 2.0**-26
"""Points nearby that are tried, how far away they are, and the steps of differences there."""

Arrays = Sequence[np.ndarray]
Direction = dict[int, np.ndarray]
"""Arrays that are added to the inputs, by position."""


def kink_cases(op: OpDef, types: Types) -> Iterator[Case]:
    """Yields a case of first gradients at zeros, one at ties, and one of second gradients at zeros."""
    if isinstance(op.accuracy, Residual):  # eigenvectors and the like are not unique where eigenvalues tie
        return
    samples = kink_samples(op, types, SAMPLES)
    trials = [in_float64(Trial(op, types, s, n)) for n, s in samples]
    wanted = [*((kind, "first", _first) for kind in KINDS), (KINDS[0], "second", _second)]
    for number, (kind, order, make) in enumerate(wanted):
        chosen = trials[number % 2 :: 2] or trials[:1]
        if chosen:
            judged = functools.partial(_judge, make, kind, chosen)
            yield trial_case("gradient", chosen[0], judged, f"{kind}-{order}")


@dataclass
class Function:
    """A function of a setting's inputs, and what a graph declares its gradients to be.

    of: all elements of its value. gradients: of the element with this index, or of the sum of all, by each of the
    setting's differentiable inputs. each, together: in how many directions elements are moved by themselves, and all.
    """

    of: Callable[[Arrays], np.ndarray]
    gradients: Callable[[int | None], list[np.ndarray]]
    order: int
    each: int
    together: int


Make = Callable[[Setting, "Target"], Function]


def _judge(
    make: Make, kind: str, trials: Sequence[Trial], trial: Trial, case_id: str, target: Target
) -> Measured | None:
    judged, note = 0, "differences determine no slope at these points"
    for k, each in enumerate(trials):
        rng = generator(f"{case_id}/{each.detail}")
        arrays = kink_arrays(each, kind, k == 0, rng)
        if not _has_value(each, arrays):
            continue
        try:
            with quiet():
                setting = make_setting(each, case_id, target, arrays)
                if setting.xs and not is_no_derivative(setting.op, setting.flat):
                    judged += _compare(setting, make(setting, target), rng)
        except CaseFailedError as e:
            raise CaseFailedError(f"{each.detail}: {e}") from None
        except (UnimplementedError, NotFoundError, InvalidTypeError) as e:  # no gradient of this order or dtype
            note = str(e)
    return Measured(note="" if judged else note)


def _has_value(trial: Trial, arrays: Sequence[np.ndarray | list[np.ndarray]]) -> bool:
    """Returns whether the op takes these inputs; a singular matrix, for one, is an error."""
    try:
        evaluate(trial.op, trial.attrs(arrays), [widen(x) for x in flatten(arrays)])
    except InvalidArgumentError:
        return False
    return True


def _first(setting: Setting, target: Target) -> Function:
    seeded = [i for i, u in enumerate(setting.seeds) if u is not None]
    evaluator = Evaluator(setting.first, list(setting.values))
    like = [setting.values[t] for t in setting.given]

    def of(at: Arrays) -> np.ndarray:
        found = evaluate(setting.op, setting.attrs, at)
        return _joined([found[i] for i in seeded])

    def gradients(row: int | None) -> list[np.ndarray]:
        values = {**setting.values, **dict(zip(setting.given, _seeds(row, like), strict=True))}
        return evaluator.wide(list(values.values()))

    return Function(of, gradients, 1, 6, 2)


def _second(setting: Setting, target: Target) -> Function:
    with setting.graph.as_default(), device_scope(target.spec):
        given = [placeholder(as_dtype(setting.values[x].dtype), setting.values[x].shape) for x in setting.xs]
        tensors = dense_gradients(setting.first, setting.xs, given)
    values = {**setting.values, **{t: _factors(setting.values[t]) for t in setting.given}}
    fed = list(values)
    first, second = Evaluator(setting.first, fed), Evaluator(tensors, [*fed, *given])
    positions = dict(zip(setting.xs, setting.positions, strict=True))
    like = [setting.values[x] for x in setting.xs]

    def of(at: Arrays) -> np.ndarray:
        return _joined(first.wide([at[positions[t]] if t in positions else values[t] for t in fed]))

    def gradients(row: int | None) -> list[np.ndarray]:
        return second.wide([*values.values(), *_seeds(row, like)])

    return Function(of, gradients, 2, 4, 1)


def _factors(like: np.ndarray) -> np.ndarray:
    """Factors of different sizes, none of them 0."""
    return (1 + np.arange(like.size).reshape(like.shape) % 5 / 4).astype(like.dtype)


def _joined(arrays: Arrays) -> np.ndarray:
    return np.concatenate([np.ravel(a) for a in arrays]) if arrays else np.zeros(0)


def _seeds(row: int | None, like: Arrays) -> list[np.ndarray]:
    """Ones in the shapes of some arrays; or zeros, but for a one at the place `row` among all their elements."""
    if row is None:
        return [np.ones_like(a) for a in like]
    result = []
    for a in like:
        unit = np.zeros_like(a)
        if 0 <= row < a.size:
            unit.flat[row] = 1
        row -= a.size
        result.append(unit)
    return result


def _compare(setting: Setting, function: Function, rng: np.random.Generator) -> int:
    """Returns the number of determined slopes; raises CaseFailedError where a gradient lies outside its sides."""
    start = [widen(x) for x in setting.flat]
    at_start = function.of(start)
    rows = np.sort(rng.permutation(at_start.size)[:ROWS])
    gradients = [function.gradients(int(row)) for row in rows]
    of_all = function.gradients(None)
    judged = 0
    for label, direction in _directions(setting, function, rng):

        def along(t: float, direction: Direction = direction) -> np.ndarray:
            return function.of([x + t * direction[k] if k in direction else x for k, x in enumerate(start)])

        found = _sides(along, at_start)
        if not ((found.judged & ~found.jumps).all() or np.isfinite(_along(setting, of_all, direction))):
            continue  # a pole, which other elements' seeds of 0 turn into NaN
        declared = np.full(at_start.shape, np.nan)
        declared[rows] = [_along(setting, g, direction) for g in gradients]
        known = np.isin(np.arange(at_start.size), rows) & found.judged
        known &= (function.order == 1) | ~found.jumps
        if "nan_at_zero" in setting.op.gradient_notes:
            known &= ~np.isnan(declared)
        wrong = known & ~found.allow(declared)
        judged += int(known.sum())
        if wrong.any():
            found.widen(_slopes_nearby(function.of, start, direction, rng))
            wrong &= ~found.allow(declared)
        if wrong.any():
            i = int(np.argmax(wrong))
            given = str([np.round(x, 4).tolist() for x in start])
            raise CaseFailedError(
                f"the declared gradient gives element {i} the slope {declared[i]:.9g} as {label} moves; differences "
                f"give {found.low[i]:.9g} on one side and {found.high[i]:.9g} on the other, for inputs {given[:300]}; "
                "the definition of the op is wrong, on every device"
            )
    return judged


@dataclass
class Sides:
    """Between what slopes a gradient must lie, for each element of a function.

    judged: whether a side determines them, and the function has a value that is that of a side. jumps: whether that of
    the other differs.
    """

    low: np.ndarray
    high: np.ndarray
    slack: np.ndarray
    judged: np.ndarray
    jumps: np.ndarray

    def allow(self, declared: np.ndarray) -> np.ndarray:
        """Returns whether each slope lies between them; where the function jumps there need be none."""
        inside = (declared >= self.low - self.slack) & (declared <= self.high + self.slack)
        return np.asarray(inside | (self.jumps & np.isnan(declared)))

    def widen(self, others: Iterable[np.ndarray]) -> None:
        """Takes in more slopes."""
        for slopes in others:
            self.low, self.high = np.fmin(self.low, slopes), np.fmax(self.high, slopes)


def _sides(f: Callable[[float], np.ndarray], at_start: np.ndarray) -> Sides:
    right, left = side(f, 1), side(f, -1)
    known = np.isfinite(right.slopes) | np.isfinite(left.slopes)
    low, high = np.fmin(right.slopes, left.slopes), np.fmax(right.slopes, left.slopes)
    size = np.nan_to_num(np.abs(at_start), posinf=0)
    slack = np.nan_to_num(right.bounds) + np.nan_to_num(left.bounds) + ABSOLUTE
    slack += RELATIVE * (np.abs(np.nan_to_num(low)) + np.abs(np.nan_to_num(high)) + size)
    far = [np.abs(s.limits - at_start) > RELATIVE * (1 + size) for s in (right, left)]
    return Sides(low, high, slack, known & np.isfinite(at_start) & ~(far[0] & far[1]), far[0] | far[1])


def _slopes_nearby(
    f: Callable[[Arrays], np.ndarray], start: Arrays, direction: Direction, rng: np.random.Generator
) -> Iterator[np.ndarray]:
    """Slopes along a direction at points nearby: of what is neither convex nor concave the gradient may be any of them.

    So is that of the second largest element where several tie (Clarke's generalised gradient).
    """
    for _ in range(NEARBY):
        moved = [x + NEAR * rng.uniform(-1, 1, x.shape) if k in direction else x for k, x in enumerate(start)]
        ends = [f([x + t * direction[k] if k in direction else x for k, x in enumerate(moved)]) for t in (STEP, -STEP)]
        yield (ends[0] - ends[1]) / (2 * STEP)


def _along(setting: Setting, gradients: Arrays, direction: Direction) -> float:
    """Returns the slope that gradients declare along a direction."""
    total = 0.0
    for position, gradient in zip(setting.positions, gradients, strict=True):
        if position in direction:
            v = direction[position]
            total += float(np.sum(widen(gradient)[v != 0] * v[v != 0]))
    return total


def _directions(setting: Setting, function: Function, rng: np.random.Generator) -> Iterator[tuple[str, Direction]]:
    """Yields single elements, and all of them; with what a message calls them."""
    constant = positions_of(setting.op.constant_inputs, setting.op.inputs, setting.attrs)
    names = dict(zip(setting.positions, setting.names, strict=True))
    moving = [p for p in setting.positions if p not in constant and setting.flat[p].dtype.kind == "f"]
    places = [(p, i) for p in moving for i in range(setting.flat[p].size)]
    both = "both_triangles" in setting.op.gradient_notes
    for number in sorted(rng.permutation(len(places))[: function.each]):
        p, i = places[number]
        v = np.zeros(setting.flat[p].shape)
        v.flat[i] = 1
        index = [int(n) for n in np.unravel_index(i, v.shape)]
        yield f"{names[p]} at {index}", {p: _symmetric(v) if both else v}
    alone = len(places) < 2 or "every_tie" in setting.op.gradient_notes
    for number in range(0 if alone else function.together):
        signs = {p: rng.choice((-1.0, 1.0), setting.flat[p].shape) for p in moving}
        yield "all of it", {p: _symmetric(v) if both else v if number else np.ones_like(v) for p, v in signs.items()}


def _symmetric(v: np.ndarray) -> np.ndarray:
    return np.asarray((v + np.swapaxes(v, -1, -2)) / 2)
