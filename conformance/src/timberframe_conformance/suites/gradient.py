"""Gradients: what `tf.gradients` gives for each op, on the device, in first and second order.

Two questions are kept apart. Does the device compute the gradient graph right? Its result is compared with the same
graph evaluated in float64 by the ops' references. Is the declared gradient the derivative? That concerns no device: the
same graph in float64, wherever the op allows it and whatever the device holds, is evaluated by references and compared
with central differences of the op's own reference (see `truth/differences.py`); the second derivative with those of the
first gradient.

For complex numbers a gradient is dL/dx + i dL/dy, as in TensorFlow, for L = Re(sum(conj(u) f)).
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

import timberframe
from timberframe import device as device_scope
from timberframe_conformance import drive
from timberframe_conformance.backward import (
    DIRECTIONS,
    FEW,
    SLACK,
    Evaluated,
    Setting,
    compare_differences,
    dense_gradients,
    has_free_phases,
    is_no_derivative,
    make_setting,
    placeholder,
    random_weights,
    run_setting,
    weighted,
)
from timberframe_conformance.case import LEVELS, Case, CaseFailedError, Measured, Types, generator
from timberframe_conformance.cases.smooth import (
    empty_sample,
    floating,
    smooth_samples,
)
from timberframe_conformance.cases.trials import Trial, fits, in_float64, samples_of, trial_case
from timberframe_conformance.cases.types import is_expected
from timberframe_conformance.levels.requirement import BREADTH, level_of
from timberframe_conformance.suites.forward import is_callable, supported
from timberframe_conformance.suites.gradient_kinks import kink_cases
from timberframe_conformance.suites.gradient_limits import limit_cases
from timberframe_conformance.tolerance.limits import allowed_error
from timberframe_conformance.truth.reference import evaluate, quiet
from timberframe_core.dtypes import as_dtype, resource
from timberframe_core.errors import InvalidTypeError, NotFoundError, UnimplementedError
from timberframe_core.graph.apply import apply_op
from timberframe_core.ops.definition.formats import FORMATS
from timberframe_core.ops.definition.opdef import MissingGradient, NotDifferentiable, OpDef
from timberframe_sdk import reference
from timberframe_sdk.reference import widen

if TYPE_CHECKING:
    from timberframe_conformance.target import Target

SUITE = "gradient"
tf: Any = timberframe

WIDE = frozenset({"float64", "complex128"})
SAMPLES, SAMPLES_WITH_ATTRS, LEAST_ATTRS = 3, 6, 2
"""Samples in float64: of most ops, and of ops with at least LEAST_ATTRS attrs; other sets of dtypes get one."""
MIXED = 3
"""Sets of several floating dtypes that an op is tried in at most."""


def collect(target: Target, ops: Sequence[OpDef]) -> Iterator[Case]:
    """Cases for differentiable ops by dtypes and order, and one for each op that declares that it has no gradient."""
    for op in ops:
        state = any(a.dtype is resource for a in op.inputs)
        if "of_distribution" in op.gradient_notes:  # differences would jump at rejections; the random suite checks it
            continue
        if not is_callable(op) or (state and isinstance(op.gradient, NotDifferentiable)):
            continue
        groups, _ = supported(op, target)
        combinations = [t for group in groups.values() for t in group]
        if isinstance(op.gradient, NotDifferentiable):
            yield from _plain_cases(op, combinations, "none", _none)
        elif op.name == "PreventGradient" or isinstance(op.gradient, MissingGradient):
            yield from _plain_cases(op, combinations, "refused", _refused)
        elif op.gradient is not None and combinations:
            yield from _cases(op, combinations)
            yield from kink_cases(op, _real(op, combinations))
            yield from limit_cases(op, _real(op, combinations))


def _cases(op: OpDef, combinations: Sequence[Types]) -> Iterator[Case]:
    by_dtypes: dict[frozenset[str], list[Types]] = {}
    of_networks = {types for types in combinations if level_of(op, types) != BREADTH}
    for types in sorted(combinations, key=lambda types: types not in of_networks):
        by_dtypes.setdefault(floating(types), []).append(types)
    widest = {"float64"} if any("float64" in k for k in by_dtypes) else {"float32"}
    mixed = [k for k in by_dtypes if len(k) > 1 and not k <= WIDE][MIXED:]
    for i, (dtypes, found) in enumerate(by_dtypes.items()):
        if dtypes in mixed:
            continue
        attrs = sum(a.kind != "type" for a in op.attrs.values())
        most = SAMPLES_WITH_ATTRS if attrs >= LEAST_ATTRS else SAMPLES
        asked = [types for types in found if types in of_networks]  # whatever other dtypes the device has
        thorough = dtypes == widest or bool(asked)
        found = asked or found
        count = most if thorough or not dtypes else 1
        samples = smooth_samples(op, found[0], most)
        if count == 1 and samples:
            samples = [samples[i % len(samples)]]
        for k, (number, sample) in enumerate(samples[:count]):
            types = next((t for t in (*found[k % len(found) :], *found) if fits(op, sample, t)), found[0])
            trial = Trial(op, types, sample, number, known=(k + i) % 2 == 0)
            exact = dtypes <= WIDE or not any(d <= WIDE for d in by_dtypes)
            yield _case(trial, "first", functools.partial(_first, differences=exact))
            if (dtypes <= WIDE or dtypes == widest) and k == 0:
                yield _case(trial, "second", _second)
        if thorough:
            yield from (_case(Trial(op, found[0], s, n), "first", _first) for n, s in empty_sample(op, found[0]))


def _real(op: OpDef, combinations: Sequence[Types]) -> Types:
    """Returns the dtypes to try kinks in: those of networks, whatever else the device holds; real ones if possible."""
    order = ("float64", "float32", "float16", "bfloat16")

    def rank(types: Types) -> tuple[bool, int]:
        ranks = [order.index(t) if t in order else len(order) for t in floating(types)]
        return level_of(op, types) == BREADTH, min(ranks, default=len(order))

    return min(combinations, key=rank)


Run = Callable[[Trial, str, "Target"], Measured | None]


def _plain_cases(op: OpDef, combinations: Sequence[Types], what: str, run: Run) -> Iterator[Case]:
    """Yields one case, in float32 if possible, and with floating inputs and outputs."""
    ranked = sorted(combinations, key=lambda t: (-sum(v in FORMATS for _, v in t), "float32" not in floating(t)))
    for types in ranked[:1]:
        fitting = [(k, s) for k, s in enumerate(samples_of(op)) if fits(op, s, types)]
        for number, sample in fitting[:1]:
            yield _case(Trial(op, types, sample, number), what, run)


def _case(trial: Trial, order: str, run: Run) -> Case:
    level = "training" if order == "first" and trial.level != LEVELS[-1] else LEVELS[-1]
    expected = is_expected(trial.op.name, dict(trial.types)) is not False
    judged = functools.partial(_without_warnings, run)
    return trial_case(SUITE, trial, judged, f"{order}-{trial.detail}", level=level, expected=expected)


def _without_warnings(run: Run, trial: Trial, case_id: str, target: Target) -> Any:
    with quiet():
        try:
            return run(trial, case_id, target)
        except UnimplementedError as e:
            if "partly_refused" in trial.op.gradient_notes and "gradient" in str(e):
                return Measured(note=str(e))
            raise
        except InvalidTypeError as e:
            if is_expected(trial.op.name, dict(trial.types)) is False:  # dtypes for which TensorFlow has no kernel
                return Measured(note=f"the gradient has no such dtypes: {e}")
            raise


def _first(trial: Trial, case_id: str, target: Target, differences: bool = True) -> Measured | None:
    """differences: whether to check the declared gradient, too."""
    setting = make_setting(trial, case_id, target)
    if not setting.xs:
        return Measured(note="there is nothing to differentiate")
    measured, gradients = run_setting(setting, setting.first, target)
    if not differences or is_no_derivative(trial.op, setting.flat):
        return measured
    wide = _in_float64(trial, case_id, target)
    if wide is not None:
        setting, gradients = wide, Evaluated(wide.first, wide.values).wide
    _compare_first(setting, gradients, generator(case_id))
    return measured


def _in_float64(trial: Trial, case_id: str, target: Target) -> Setting | None:
    """Returns the setting in float64; None where it is so already, or an op of the gradient has no float64."""
    wide = in_float64(trial)
    if wide is trial:
        return None
    try:
        return make_setting(wide, case_id, target)
    except InvalidTypeError:
        return None


def _compare_first(setting: Setting, gradients: Sequence[np.ndarray], rng: np.random.Generator) -> None:
    """Raises CaseFailedError where a first gradient is not the derivative of the op's reference."""
    op, attrs = setting.op, setting.attrs

    def outputs(values: Sequence[np.ndarray]) -> tuple[np.ndarray, ...]:
        return reference.evaluate(op, attrs, values)

    start = [widen(x) for x in setting.flat]
    at_start = evaluate(op, attrs, start)
    noise, natural = 0.0, 0.0
    errors = allowed_error(op, attrs, start, at_start, [y.dtype for y in at_start])
    for y, u, error in zip(at_start, setting.seeds, errors, strict=True):
        if u is not None:
            unit = 2.0 ** -FORMATS[y.dtype.name].precision
            size, values = np.abs(widen(u)), np.where(u == 0, 0, y)
            errors_of_y = np.where(u == 0, 0, unit * np.abs(values) if error is None else error)
            noise += 2 * float(np.sum(size * errors_of_y))
            natural += float(np.sum(size * np.abs(values)))
    if not natural:  # a function that is zero is as large as what it is computed from, which its error is a part of
        natural = noise / 2.0**-53

    def value(at: Sequence[np.ndarray]) -> float:
        return weighted(outputs(at), setting.seeds)

    compare_differences(setting, gradients, value, start, noise, natural, rng)


def _second(trial: Trial, case_id: str, target: Target) -> Measured | None:
    setting = make_setting(trial, case_id, target)
    if not setting.xs:
        return Measured(note="there is nothing to differentiate")
    try:
        second, weights = _second_gradients(setting, case_id, target)
    except NotFoundError as e:
        if not any(isinstance(op.gradient, MissingGradient) for op in setting.graph.get_operations()):
            raise
        return Measured(note=str(e))
    measured, gradients = run_setting(setting, second, target)
    if has_free_phases(trial.op, setting.flat):
        return measured
    wide = _in_float64(trial, case_id, target)
    if wide is not None:
        setting = wide
        second, weights = _second_gradients(setting, case_id, target)
        gradients = Evaluated(second, setting.values).wide
    _compare_second(setting, gradients, weights, generator(case_id + "/differences"))
    return measured


def _second_gradients(setting: Setting, case_id: str, target: Target) -> tuple[list[Any], list[np.ndarray | None]]:
    """Gradients of the first gradients, in the setting's graph, and what the first ones are weighted with."""
    rng = generator(case_id + "/weights")
    weights: list[np.ndarray | None] = []
    with setting.graph.as_default(), device_scope(target.spec):
        given = []
        for x in setting.xs:
            array = setting.values[x]
            weights.append(random_weights(array, array.dtype, rng))
            given.append(placeholder(as_dtype(array.dtype), array.shape))
            setting.values[given[-1]] = np.asarray(weights[-1])
        return dense_gradients(setting.first, setting.xs, given), weights


def _compare_second(
    setting: Setting, gradients: Sequence[np.ndarray], weights: Sequence[np.ndarray | None], rng: np.random.Generator
) -> None:
    """Raises CaseFailedError where a second gradient is not the derivative of the first."""
    first = Evaluated(setting.first, setting.values)
    errors = [SLACK * 2.0**-53 * a for a in first.moves(FEW)]
    noise = sum(e * float(np.sum(np.abs(widen(np.asarray(w))))) for e, w in zip(errors, weights, strict=True))
    natural = sum(float(np.sum(np.abs(g))) for g in first.wide)
    start = [widen(x) for x in setting.flat]
    indices = {x: i for i, x in zip(setting.positions, setting.xs, strict=True)}
    others = [None if t in indices else widen(setting.values[t]) for t in setting.values]

    def value(at: Sequence[np.ndarray]) -> float:
        values = [at[indices[t]] if o is None else o for t, o in zip(setting.values, others, strict=True)]
        return weighted(first.evaluator.wide(values), weights)

    compare_differences(setting, gradients, value, start, noise, natural, rng, DIRECTIONS // 2)


def _refused(trial: Trial, case_id: str, target: Target) -> Measured | None:
    """Requesting the gradient is an error."""
    try:
        _none(trial, case_id, target)
    except LookupError:
        return None
    raise CaseFailedError(f"a gradient through {trial.op.name} raised nothing; LookupError is required")


def _none(trial: Trial, case_id: str, target: Target) -> Measured | None:
    """Checks that the gradient is None, and requesting it is no error."""
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
