"""Graphs of gradients: built around one op, run on a device, and compared with references and differences.

A gradient that a device computes may differ by what the declared accuracies of all nodes that it depends on add up to:
each node is evaluated in float64 and perturbed up or down at random by the error that its op is allowed in the graph's
dtype; the largest change of the gradient in two such evaluations, or the unit of its largest element where that is
more, is allowed eight times, since errors of equal sign add up to more than random ones. (Errors of float64 are taken
from float32, and scaled by 2^-29, the ratio of the unit roundoffs.)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

import timberframe
from timberframe import device as device_scope
from timberframe_conformance import drive
from timberframe_conformance.case import CaseFailedError, Measured, generator
from timberframe_conformance.cases.smooth import NoSmoothPointError, ordinary, smooth_arrays
from timberframe_conformance.cases.trials import Trial
from timberframe_conformance.tolerance.compare import compare
from timberframe_conformance.tolerance.ulp import FORMATS
from timberframe_conformance.truth.differences import STEP, Slope, directions, slope
from timberframe_conformance.truth.graphs import NARROWER, Evaluator
from timberframe_conformance.truth.reference import evaluate
from timberframe_core.dtypes import resource
from timberframe_core.graph.apply import apply_op, convert_to_tensor
from timberframe_core.graph.inference import arg_ranges
from timberframe_core.ops.definition.accuracy import Residual
from timberframe_core.ops.definition.opdef import OpDef
from timberframe_core.ops.definition.signature import ArgDef
from timberframe_sdk.reference import widen

if TYPE_CHECKING:
    from timberframe_conformance.target import Target

tf: Any = timberframe

DIRECTIONS = 4
"""Directions for each input along which differences are taken; together they touch every element."""
STEPS = (STEP, STEP / 256)
DETERMINED = 1e-4
"""A difference is used if its error bound is below this fraction of the derivative, or of the function's size."""
NOTHING = 1e-30
"""Smaller values count as zero: functions that are zero everywhere have no size to compare with."""

SELF_ADJOINT = frozenset({"Cholesky"})
"""Ops that read one triangle but whose gradient covers both, as TensorFlow's does: for self-adjoint matrices."""

WRITE_TWICE = frozenset({"DynamicStitch", "ParallelDynamicStitch", "TensorScatterUpdate"})
"""Ops whose gradient also reaches values that a later write overwrites, as TensorFlow's does."""


@dataclass
class Setting:
    """A graph of one op and the gradients of its floating outputs.

    xs: the floating inputs that are fed; positions, names: their indices among the flat inputs (`flat`) and their names
    in messages. first: the gradients, zeros where there is none. seeds: what the outputs are weighted with. values: of
    all that is fed, and of variables by their handles. setup: operations to run first.
    """

    graph: Any
    xs: list[Any]
    positions: list[int]
    first: list[Any]
    seeds: list[np.ndarray | None]
    values: dict[Any, np.ndarray]
    flat: list[np.ndarray]
    attrs: Mapping[str, Any]
    op: OpDef
    names: list[str]
    setup: list[Any]
    outputs: list[Any]

    @property
    def feeds(self) -> dict[Any, np.ndarray]:
        """What a session is fed."""
        return {t: x for t, x in self.values.items() if t.dtype is not resource}


def make_setting(trial: Trial, case_id: str, target: Target) -> Setting:
    """The graph. Raises CaseFailedError if the function has no values of ordinary size."""
    rng = generator(case_id)
    try:
        arrays = smooth_arrays(trial, rng)
    except NoSmoothPointError:
        raise CaseFailedError("no values were found at which the function is finite; the sample needs some") from None
    attrs, flat = trial.attrs(arrays), drive.flatten(arrays)
    built = drive.build(trial.op, attrs, arrays, target.spec, known=trial.known)
    values = dict(built.feeds)
    values.update((t, x) for t, x in zip(built.inputs, flat, strict=True) if t.dtype is resource)
    positions = [i for i, t in enumerate(built.inputs) if t in values and flat[i].dtype.name in FORMATS]
    outputs = evaluate(trial.op, attrs, [widen(x) for x in flat])
    constant = positions_of(trial.op.constant_outputs, trial.op.outputs, attrs)
    ys = [i for i, t in enumerate(built.fetches) if t.dtype.name in FORMATS and i not in constant]
    seeds: list[np.ndarray | None] = [None] * len(built.fetches)
    with built.graph.as_default(), device_scope(target.spec):
        given = []
        for i in ys:
            t = built.fetches[i]
            seeds[i] = random_weights(outputs[i], t.dtype.numpy, rng)
            given.append(placeholder(t.dtype, outputs[i].shape, t.static_shape == outputs[i].shape))
            values[given[-1]] = seeds[i]
        xs = [built.inputs[i] for i in positions]
        first = dense_gradients([built.fetches[i] for i in ys], xs, given)
    names = [f"input {i}" for i in positions]
    rest = trial.op, names, built.setup, built.fetches
    return Setting(built.graph, xs, positions, first, seeds, values, flat, attrs, *rest)


def positions_of(names: Sequence[str], args: Sequence[ArgDef], attrs: Mapping[str, Any]) -> set[int]:
    """The flat positions of some of an op's inputs or outputs."""
    ranges = arg_ranges(args, attrs)
    return {i for name in names for i in ranges[name]}


def placeholder(dtype: Any, shape: tuple[int, ...], known: bool = True) -> Any:
    """A placeholder for an array of this shape; `known` makes the shape static."""
    return apply_op("Placeholder", (), {"dtype": dtype, "shape": shape if known else None})


def random_weights(y: np.ndarray, dtype: np.dtype, rng: np.random.Generator) -> np.ndarray:
    """Random numbers of modulus 1/2 to 1, 0 where the function is infinite or large.

    They are real if the function's values are, like those of a modulus.
    """
    size = np.where(ordinary(y), rng.uniform(0.5, 1.0, y.shape), 0)
    if dtype.kind == "c" and (y.size == 0 or np.max(np.abs(np.imag(y))) > 2.0**-40 * np.max(np.abs(y))):
        return np.asarray(size * np.exp(2j * np.pi * rng.random(y.shape))).astype(dtype)
    return np.asarray(size * rng.choice((-1, 1), y.shape)).astype(dtype)


def dense_gradients(ys: Sequence[Any], xs: Sequence[Any], seeds: Sequence[Any]) -> list[Any]:
    """Dense gradients, with zeros for those that are None."""
    made = tf.gradients(list(ys), list(xs), grad_ys=list(seeds))
    return [_zeros(x) if g is None else convert_to_tensor(g) for g, x in zip(made, xs, strict=True)]


def _zeros(x: Any) -> Any:
    value = apply_op("ReadVariableOp", [x], {"dtype": x.handle[0]}) if x.dtype is resource else x
    return apply_op("ZerosLike", [value])


def weighted(values: Sequence[np.ndarray], weights: Sequence[np.ndarray | None]) -> float:
    """Re(sum(conj(u) f)) over all that has a weight."""
    total = 0.0
    for y, u in zip(values, weights, strict=True):
        if u is not None:
            total += float(np.sum((np.conj(widen(u)) * np.where(u == 0, 0, widen(y))).real))
    return total


def evaluate_setting(
    setting: Setting, tensors: Sequence[Any], given: Mapping[Any, np.ndarray] | None = None
) -> tuple[list[np.ndarray], list[float]]:
    """The tensors in float64, and for each the error that all nodes' errors amount to, in unit roundoffs of its dtype.

    given: values of further tensors that are not computed.
    """
    known = {**setting.values, **(given or {})}
    fed = list(known)
    values = [known[t] for t in fed]
    evaluator = Evaluator(tensors, fed)
    wide, perturbed = evaluator.perturbed(values, np.random.default_rng(0), 2)
    amplified = []
    for i, (t, w) in enumerate(zip(tensors, wide, strict=True)):
        unit = FORMATS[NARROWER.get(t.dtype.name, t.dtype.numpy).name].unit_roundoff
        change = max(float(np.max(np.abs(d[i] - w), initial=0.0)) for d in perturbed)
        amplified.append(max(change / unit if np.isfinite(change) else 0.0, 2 * float(np.max(np.abs(w), initial=0.0))))
    return wide, amplified


def run_setting(setting: Setting, tensors: Sequence[Any], target: Target) -> tuple[Measured, list[np.ndarray]]:
    """Runs gradients on the device and compares them with their evaluation by references, which it returns.

    Results that are not unique, such as eigenvectors, are taken from the device, because gradients depend on the
    choice.
    """
    free = setting.outputs if isinstance(setting.op.accuracy, Residual) else []
    with target.session(setting.graph) as session:
        for operation in setting.setup:
            session.run(operation, setting.feeds)
        got, *own = session.run([list(tensors), *free], setting.feeds)
    pure, amplified = evaluate_setting(setting, tensors)
    wide = pure
    if free:
        wide, amplified = evaluate_setting(setting, tensors, dict(zip(free, own, strict=True)))
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
        errors = compare(value, w, array.dtype, np.asarray(a))
        error = errors.error
        worst = int(np.argmax(np.where(errors.wrong, np.inf, error)))
        if errors.wrong.any():
            index = [int(k) for k in np.unravel_index(worst, value.shape)]
            raise CaseFailedError(
                f"the gradient for {name} at {index} is {value.flat[worst]!r}, the references give {w.flat[worst]!r}: "
                f"off by {error.flat[worst]:.3g}, allowed {a:.3g}"
            )
        unit = float(np.max(np.abs(w))) * 2 * form.unit_roundoff
        if unit and (measured.max_ulp is None or error.flat[worst] / unit > measured.max_ulp):
            measured.max_ulp, measured.limit = float(error.flat[worst] / unit), a / unit
    return measured, pure


def compare_differences(
    setting: Setting,
    gradients: Sequence[np.ndarray],
    value: Callable[[Sequence[np.ndarray]], float],
    start: list[np.ndarray],
    noise: float,
    natural: float,
    rng: np.random.Generator,
    count: int = DIRECTIONS,
) -> None:
    """Raises CaseFailedError if a gradient differs from the derivative of `value` by central differences."""
    constant = positions_of(setting.op.constant_inputs, setting.op.inputs, setting.attrs)
    for name, position, gradient in zip(setting.names, setting.positions, gradients, strict=True):
        if position in constant:
            continue
        x = start[position]
        most = max(1, min(count, 2 * count // len(setting.xs)))
        found = []
        for v in directions(x.shape, x.dtype, most, rng):
            if setting.op.name in SELF_ADJOINT:
                v = (v + np.conj(np.swapaxes(v, -1, -2))) / 2

            def along(t: float, v: np.ndarray = v, x: np.ndarray = x, position: int = position) -> float:
                return value([*start[:position], x + t * v, *start[position + 1 :]])

            declared = float(np.sum((np.conj(gradient) * v).real))
            # The points themselves are rounded, and the sum over up to MOST_ELEMENTS results is (pairwise: log2 n u).
            rounding = 2.0**-53 * float(np.sum(np.abs(gradient) * (np.abs(x) + 1))) + 2.0**-50 * natural
            size = float(np.sum(np.abs(gradient) * np.abs(v)))
            found.append((_determined(along, noise + rounding, natural), declared, size))
        determined = [(s, declared, size) for s, declared, size in found if s is not None]
        for s, declared, size in determined:
            # The gradient itself loses at most 13 of float64's 53 bits; differences lose more.
            allowed = s.bound + 2.0**-40 * size
            if not abs(s.value - declared) <= allowed:
                raise CaseFailedError(
                    f"the declared gradient for {name} gives the slope {declared!r} along a direction; central "
                    f"differences give {s.value!r}, which may be off by {allowed:.3g}"
                )
        if 2 * len(determined) < len(found):
            raise CaseFailedError(
                f"differences for {name} determine only {len(determined)} of {len(found)} slopes; the sample must have "
                "points where the function is smooth"
            )


def _determined(f: Callable[[float], float], noise: float, natural: float) -> Slope | None:
    """The slope by the first step size that determines it; a shorter step meets fewer kinks."""
    for step in STEPS:
        s = slope(f, noise, step)
        if s.bound <= DETERMINED * (natural + abs(s.value)) + NOTHING:
            return s
    return None
