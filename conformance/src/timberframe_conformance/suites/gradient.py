"""Gradients: what `tf.gradients` gives for each op, on the device, in first and second order.

Two questions are kept apart. Does the device compute the gradient graph right? Its result is held against the same
graph evaluated in float64 by the ops' references. Is the declared gradient the derivative? That evaluation is held
against central differences of the op's own reference (see `truth/differences.py`); the second derivative against those
of the first gradient.

A gradient that the device computes may be off by what the declared accuracies of all nodes on the way amount to: each
node is evaluated in float64 and moved up or down at random by what its op may err in the graph's dtype; the largest
change of the gradient in two such evaluations, or the unit of its largest element where that is more, is allowed eight
times, since errors of equal sign add up to more than random ones. (Errors of float64 are taken from float32, and scaled
by 2^-29, the ratio of the unit roundoffs.)

For complex numbers a gradient is dL/dx + i dL/dy, as in TensorFlow, for L = Re(sum(conj(u) f)).
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

import timberframe
from timberframe import device as device_scope
from timberframe.dtypes import resource
from timberframe.graph.apply import apply_op, convert_to_tensor
from timberframe.ops.opdef import NotDifferentiable, OpDef
from timberframe_conformance import drive
from timberframe_conformance.case import Case, CaseFailedError, Measured, Types, generator
from timberframe_conformance.cases.smooth import (
    NoSmoothPointError,
    empty_sample,
    floating,
    ordinary,
    smooth_arrays,
    smooth_samples,
)
from timberframe_conformance.cases.trials import Trial, fits, samples_of
from timberframe_conformance.cases.types import is_expected
from timberframe_conformance.suites.forward import is_callable, supported
from timberframe_conformance.tolerance.limits import allowed_error
from timberframe_conformance.tolerance.ulp import FORMATS
from timberframe_conformance.truth.differences import STEP, Slope, directions, slope
from timberframe_conformance.truth.graphs import NARROWER, Evaluator
from timberframe_conformance.truth.reference import evaluate, evaluate_loudly, quiet, widen

if TYPE_CHECKING:
    from timberframe_conformance.target import Target

SUITE = "gradient"
tf: Any = timberframe

WIDE = frozenset({"float64", "complex128"})
SAMPLES = 3
"""Samples in float64; every other set of dtypes gets one."""
DIRECTIONS = 4
"""Directions for each input along which differences are taken; together they touch every element."""
MIXED = 3
"""Sets of several floating dtypes that an op is tried in at most."""
STEPS = (STEP, STEP / 256)
DETERMINED = 1e-4
"""A difference counts if its bound is below this part of the derivative, or of what the function itself amounts to."""
NOTHING = 1e-30
"""What is below it is taken for zero: functions that are zero throughout have no size to compare with."""

FIRST_OUTPUT = frozenset({"FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3"})
"""Ops whose gradient is that of their first output, the others being statistics, as in TensorFlow."""

CONSTANT_INPUTS: Mapping[str, tuple[int, ...]] = {
    "Sign": (0,),  # of complex numbers x / |x|, whose angle does vary
}
"""Inputs that an op's gradient takes as constants though its results vary with them, as TensorFlow's does."""


WRITE_TWICE = frozenset({"DynamicStitch", "ParallelDynamicStitch", "TensorScatterUpdate"})
"""Ops whose gradient reaches each value written to a place, also those that a later one overwrites, as TensorFlow's."""


def collect(target: Target, ops: Sequence[OpDef]) -> Iterator[Case]:
    """Cases for differentiable ops by dtypes and order, and one for each op that declares that it has no gradient."""
    for op in ops:
        if not is_callable(op) or any(a.dtype is resource for a in op.inputs):
            continue
        groups, _ = supported(op, target)
        combinations = [t for group in groups.values() for t in group]
        if isinstance(op.gradient, NotDifferentiable):
            yield from _plain_cases(op, combinations, "none", _none)
        elif op.name == "PreventGradient":
            yield from _plain_cases(op, combinations, "refused", _refused)
        elif op.gradient is not None:
            yield from _cases(op, combinations)


def _cases(op: OpDef, combinations: Sequence[Types]) -> Iterator[Case]:
    by_dtypes: dict[frozenset[str], list[Types]] = {}
    for types in combinations:
        by_dtypes.setdefault(floating(types), []).append(types)
    mixed = [k for k in by_dtypes if len(k) > 1 and not k <= WIDE][MIXED:]
    for turn, (dtypes, found) in enumerate(by_dtypes.items()):
        if dtypes in mixed:
            continue
        count = SAMPLES if dtypes == {"float64"} or not dtypes else 1
        samples = smooth_samples(op, found[0], SAMPLES)
        if count == 1 and samples:
            samples = [samples[turn % len(samples)]]
        for k, (number, sample) in enumerate(samples[:count]):
            types = next((t for t in (*found[k % len(found) :], *found) if fits(op, sample, t)), found[0])
            trial = Trial(op, types, sample, number, known=(k + turn) % 2 == 0)
            exact = dtypes <= WIDE or not any(d <= WIDE for d in by_dtypes)
            yield _case(trial, "first", functools.partial(_first, differences=exact))
            if dtypes <= WIDE and k == 0:
                yield _case(trial, "second", _second)
        if dtypes == {"float64"}:
            yield from (_case(Trial(op, found[0], s, n), "first", _first) for n, s in empty_sample(op, found[0]))


Run = Callable[[Trial, str, "Target"], Measured | None]


def _plain_cases(op: OpDef, combinations: Sequence[Types], what: str, run: Run) -> Iterator[Case]:
    """One case, in float32 if there is that."""
    ranked = sorted(combinations, key=lambda t: ("float32" not in floating(t), not floating(t)))
    for types in ranked[:1]:
        fitting = [(k, s) for k, s in enumerate(samples_of(op)) if fits(op, s, types)]
        for number, sample in fitting[:1]:
            yield _case(Trial(op, types, sample, number), what, run)


def _case(trial: Trial, order: str, run: Run) -> Case:
    detail = f"{order}-{trial.detail}"
    case_id = Case(SUITE, trial.op.name, trial.types, detail, lambda _: None).id
    level = "models" if trial.op.level == "models" else "training"
    expected = is_expected(trial.op.name, dict(trial.types)) is not False
    return Case(
        SUITE, trial.op.name, trial.types, detail, functools.partial(_quietly, run, trial, case_id), level, expected
    )  # fmt: skip


def _quietly(run: Run, trial: Trial, case_id: str, target: Target) -> Any:
    with quiet():
        return run(trial, case_id, target)


@dataclass
class Setting:
    """A graph of one op and the gradients of its floating outputs.

    xs: the floating inputs that are fed; positions: their places among the flat inputs. first: the gradients, zeros
    where there is none. seeds: what the outputs are weighted with. values: of all that is fed.
    """

    graph: Any
    xs: list[Any]
    positions: list[int]
    ys: list[Any]
    first: list[Any]
    seeds: list[np.ndarray | None]
    values: dict[Any, np.ndarray]
    flat: list[np.ndarray]
    attrs: Mapping[str, Any]
    op: OpDef
    names: list[str] = field(default_factory=list)


def _setting(trial: Trial, case_id: str, target: Target) -> Setting:
    """The graph. Raises CaseFailedError where the function has no ordinary values."""
    rng = generator(case_id)
    try:
        arrays = smooth_arrays(trial, rng)
    except NoSmoothPointError:
        raise CaseFailedError("no values were found at which the function is finite; the sample needs some") from None
    attrs, flat = trial.attrs(arrays), drive.flatten(arrays)
    built = drive.build(trial.op, attrs, arrays, target.spec, known=trial.known)
    positions = [i for i, t in enumerate(built.inputs) if t in built.feeds and t.dtype.name in FORMATS]
    outputs = evaluate(trial.op, attrs, [widen(x) for x in flat])
    ys = [i for i, t in enumerate(built.fetches) if t.dtype.name in FORMATS]
    if trial.op.name in FIRST_OUTPUT:
        ys = ys[:1]
    values = dict(built.feeds)
    seeds: list[np.ndarray | None] = [None] * len(built.fetches)
    with built.graph.as_default(), device_scope(target.spec):
        given = []
        for i in ys:
            t = built.fetches[i]
            seeds[i] = _weights(outputs[i], t.dtype.numpy, rng)
            given.append(_placeholder(t, outputs[i].shape))
            values[given[-1]] = seeds[i]
        xs = [built.inputs[i] for i in positions]
        first = _gradients([built.fetches[i] for i in ys], xs, given)
    names = [f"input {i}" for i in positions]
    return Setting(
        built.graph, xs, positions, [built.fetches[i] for i in ys], first, seeds, values, flat, attrs, trial.op, names
    )


def _placeholder(like: Any, shape: tuple[int, ...]) -> Any:
    known = like.static_shape == shape
    return apply_op("Placeholder", (), {"dtype": like.dtype, "shape": shape if known else None})


def _weights(y: np.ndarray, dtype: np.dtype, rng: np.random.Generator) -> np.ndarray:
    """Random numbers of modulus 1/2 to 1, 0 where the function is infinite or large.

    They are real where the function takes no other values, as a modulus does.
    """
    size = np.where(ordinary(y), rng.uniform(0.5, 1.0, y.shape), 0)
    if dtype.kind == "c" and (y.size == 0 or np.max(np.abs(np.imag(y))) > 2.0**-40 * np.max(np.abs(y))):
        return np.asarray(size * np.exp(2j * np.pi * rng.random(y.shape))).astype(dtype)
    return np.asarray(size * rng.choice((-1, 1), y.shape)).astype(dtype)


def _gradients(ys: Sequence[Any], xs: Sequence[Any], seeds: Sequence[Any]) -> list[Any]:
    """Dense gradients, with zeros for those that are None."""
    made = tf.gradients(list(ys), list(xs), grad_ys=list(seeds))
    return [apply_op("ZerosLike", [x]) if g is None else convert_to_tensor(g) for g, x in zip(made, xs, strict=True)]


def _first(trial: Trial, case_id: str, target: Target, differences: bool = True) -> Measured | None:
    """differences: whether to check the declared gradient too, which evaluates in float64 what needs that."""
    setting = _setting(trial, case_id, target)
    if not setting.xs:
        return Measured(note="there is nothing to differentiate")
    measured, wide = _run(setting, setting.first, target)
    if not differences or _leaves_tensorflow(trial.op.name, setting.flat):
        return measured
    rng = generator(case_id)
    op, attrs = trial.op, setting.attrs

    def outputs(values: Sequence[np.ndarray]) -> tuple[np.ndarray, ...]:
        return evaluate_loudly(op, attrs, values)

    start = [widen(x) for x in setting.flat]
    at_start = evaluate(op, attrs, start)
    noise, natural = 0.0, 0.0
    errors = allowed_error(op, attrs, start, at_start, [y.dtype for y in at_start])
    for y, u, error in zip(at_start, setting.seeds, errors, strict=True):
        if u is not None:
            unit = 2.0 ** -FORMATS[y.dtype.name].precision
            size, told = np.abs(widen(u)), np.where(u == 0, 0, y)
            errors_of_y = np.where(u == 0, 0, unit * np.abs(told) if error is None else error)
            noise += 2 * float(np.sum(size * errors_of_y))
            natural += float(np.sum(size * np.abs(told)))

    def value(at: Sequence[np.ndarray]) -> float:
        return _weighted(outputs(at), setting.seeds)

    _compare_differences(setting, wide, value, start, noise, natural, rng)
    return measured


def _leaves_tensorflow(op: str, flat: Sequence[np.ndarray]) -> bool:
    """Whether TensorFlow's gradient is not the derivative here."""
    indices = [x for x in flat if x.dtype.kind in "iu"]
    if op not in WRITE_TWICE or not indices:
        return False
    rows = np.concatenate([x.reshape(-1, x.shape[-1] if op == "TensorScatterUpdate" else 1) for x in indices])
    return len(np.unique(rows, axis=0)) < len(rows)


def _weighted(values: Sequence[np.ndarray], weights: Sequence[np.ndarray | None]) -> float:
    """Re(sum(conj(u) f)) over all that has a weight."""
    total = 0.0
    for y, u in zip(values, weights, strict=True):
        if u is not None:
            total += float(np.sum((np.conj(widen(u)) * np.where(u == 0, 0, widen(y))).real))
    return total


def _second(trial: Trial, case_id: str, target: Target) -> Measured | None:
    setting = _setting(trial, case_id, target)
    if not setting.xs:
        return Measured(note="there is nothing to differentiate")
    rng = generator(case_id + "/weights")
    weights: list[np.ndarray | None] = []
    with setting.graph.as_default(), device_scope(target.spec):
        given = []
        for x in setting.xs:
            array = setting.values[x]
            weights.append(_weights(array, array.dtype, rng))
            given.append(_placeholder(x, array.shape))
            setting.values[given[-1]] = np.asarray(weights[-1])
        second = _gradients(setting.first, setting.xs, given)
    measured, wide = _run(setting, second, target)
    fed = list(setting.values)
    evaluator = Evaluator(setting.first, fed)
    at_start, amplified = _evaluated(setting, setting.first)
    errors = [8 * 2.0**-53 * a for a in amplified]
    noise = sum(e * float(np.sum(np.abs(widen(np.asarray(w))))) for e, w in zip(errors, weights, strict=True))
    natural = sum(float(np.sum(np.abs(g))) for g in at_start)
    start = [widen(x) for x in setting.flat]
    places = {x: i for i, x in zip(setting.positions, setting.xs, strict=True)}
    others = [None if t in places else widen(setting.values[t]) for t in fed]

    def value(at: Sequence[np.ndarray]) -> float:
        values = [at[places[t]] if o is None else o for t, o in zip(fed, others, strict=True)]
        return _weighted(evaluator.wide(values), weights)

    _compare_differences(setting, wide, value, start, noise, natural, rng, DIRECTIONS // 2)
    return measured


def _evaluated(setting: Setting, tensors: Sequence[Any]) -> tuple[list[np.ndarray], list[float]]:
    """The tensors in float64, and for each how far the errors of all nodes take it, in unit roundoffs of its dtype."""
    fed = list(setting.values)
    values = [setting.values[t] for t in fed]
    evaluator = Evaluator(tensors, fed)
    wide = evaluator.wide(values)
    rng = np.random.default_rng(0)
    disturbed = [evaluator.perturbed(values, rng) for _ in range(2)]
    amplified = []
    for i, (t, w) in enumerate(zip(tensors, wide, strict=True)):
        unit = FORMATS[NARROWER.get(t.dtype.name, t.dtype.numpy).name].unit_roundoff
        change = max(float(np.max(np.abs(d[i] - w), initial=0.0)) for d in disturbed)
        amplified.append(max(change / unit if np.isfinite(change) else 0.0, 2 * float(np.max(np.abs(w), initial=0.0))))
    return wide, amplified


def _run(setting: Setting, tensors: Sequence[Any], target: Target) -> tuple[Measured, list[np.ndarray]]:
    """Runs gradients on the device and holds them against their evaluation by references, which it returns."""
    with target.session(setting.graph) as session:
        got = session.run(list(tensors), setting.values)
    wide, amplified = _evaluated(setting, tensors)
    measured = Measured()
    for name, x, g, w, factor in zip(setting.names, setting.xs, got, wide, amplified, strict=True):
        value, array = np.asarray(g), setting.values[x]
        form = FORMATS[array.dtype.name]
        a = 8 * max(form.unit_roundoff * factor, form.smallest)
        if value.dtype != array.dtype or value.shape != array.shape:
            raise CaseFailedError(
                f"the gradient for {name} is {value.dtype}{list(value.shape)}; it must be as the input, "
                f"{array.dtype}{list(array.shape)}"
            )
        if not value.size:
            continue
        error = np.abs(value.astype(w.dtype) - w)
        worst = int(np.argmax(np.where(np.isnan(error), np.inf, error)))
        if not error.flat[worst] <= a:
            place = [int(k) for k in np.unravel_index(worst, value.shape)]
            raise CaseFailedError(
                f"the gradient for {name} at {place} is {value.flat[worst]!r}, the references give {w.flat[worst]!r}: "
                f"off by {error.flat[worst]:.3g}, allowed {a:.3g}"
            )
        unit = float(np.max(np.abs(w))) * 2 * form.unit_roundoff
        if unit and (measured.max_ulp is None or error.flat[worst] / unit > measured.max_ulp):
            measured.max_ulp, measured.limit = float(error.flat[worst] / unit), a / unit
    return measured, wide


def _compare_differences(
    setting: Setting,
    gradients: Sequence[np.ndarray],
    value: Callable[[Sequence[np.ndarray]], float],
    start: list[np.ndarray],
    noise: float,
    natural: float,
    rng: np.random.Generator,
    count: int = DIRECTIONS,
) -> None:
    """Raises CaseFailedError where a gradient is not the derivative of `value` that differences show."""
    constant = CONSTANT_INPUTS.get(setting.op.name, ())
    for name, position, gradient in zip(setting.names, setting.positions, gradients, strict=True):
        if position in constant:
            continue
        x = start[position]
        few = max(1, min(count, 2 * count // len(setting.xs)))
        found = []
        for v in directions(x.shape, x.dtype, few, rng):

            def along(t: float, v: np.ndarray = v, x: np.ndarray = x, position: int = position) -> float:
                return value([*start[:position], x + t * v, *start[position + 1 :]])

            told = float(np.sum((np.conj(gradient) * v).real))
            # The points themselves are rounded, and the sum over up to MOST_ELEMENTS results is (pairwise: log2 n u).
            rounding = 2.0**-53 * float(np.sum(np.abs(gradient) * (np.abs(x) + 1))) + 2.0**-50 * natural
            size = float(np.sum(np.abs(gradient) * np.abs(v)))
            found.append((_determined(along, noise + rounding, natural), told, size))
        sure = [(s, told, size) for s, told, size in found if s is not None]
        for s, told, size in sure:
            # The gradient itself loses at most 13 of float64's 53 bits; differences lose more.
            allowed = s.bound + 2.0**-40 * size
            if not abs(s.value - told) <= allowed:
                raise CaseFailedError(
                    f"the declared gradient for {name} gives the slope {told!r} along a direction; central differences "
                    f"give {s.value!r}, which may be off by {allowed:.3g}"
                )
        if 2 * len(sure) < len(found):
            raise CaseFailedError(
                f"differences for {name} determine only {len(sure)} of {len(found)} slopes; the sample must have "
                "points where the function is smooth"
            )


def _determined(f: Callable[[float], float], noise: float, natural: float) -> Slope | None:
    """The slope by the first step that determines it; with the shorter one, fewer kinks are in reach."""
    for step in STEPS:
        s = slope(f, noise, step)
        if s.bound <= DETERMINED * (natural + abs(s.value)) + NOTHING:
            return s
    return None


def _refused(trial: Trial, case_id: str, target: Target) -> Measured | None:
    """Asking is an error."""
    try:
        _none(trial, case_id, target)
    except LookupError:
        return None
    raise CaseFailedError(f"a gradient through {trial.op.name} raised nothing; LookupError is required")


def _none(trial: Trial, case_id: str, target: Target) -> Measured | None:
    """Nothing flows through the op, and asking is no error."""
    arrays = trial.arrays(case_id)
    built = drive.build(trial.op, trial.attrs(arrays), arrays, target.spec, known=trial.known)
    with built.graph.as_default(), device_scope(target.spec):
        seeds = [apply_op("OnesLike", [y]) if y.dtype.name in FORMATS else None for y in built.fetches]
        made = tf.gradients(built.fetches, built.inputs, grad_ys=seeds) if built.inputs else []
    flowing = [i for i, g in enumerate(made) if g is not None]
    if flowing:
        reason = trial.op.gradient.reason if isinstance(trial.op.gradient, NotDifferentiable) else ""
        raise CaseFailedError(f"inputs {flowing} have a gradient; None is required, as {reason}")
    return None
